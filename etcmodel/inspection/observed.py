"""Attention probabilities from `output_attentions`, by layer and side of the queries."""

import dataclasses
import functools

import numpy as np
import tensorflow as tf

from etcmodel.inspection import calls
from etcmodel.models.longformer import modeling as longformer
from etcmodel.ops.interception import intercept


@dataclasses.dataclass(frozen=True)
class Probabilities:
    """The attention probabilities of an encoder's layers.

    Attributes:
        rows: dict from (layer, side of the queries) to a function from a list of queries to a dict
            from the side of the keys to float32 [queries, batch, num_heads, keys].
        num_keys: (long_len, global_len).
        batch: int.
    """

    rows: dict
    num_keys: tuple
    batch: int


def probabilities(model, inputs):
    """Records the attention of the encoder's layers, in one call without dropout.

    Args:
        model: one whose system is `observed`, or a model that contains one.
        inputs: dict. See `hidden_states`.
    Returns:
        `Probabilities`. GMAT's memory is the global side; the global tokens of the others are on
        the long side.
    """
    encoder, seen = calls.encoder_of(model), []

    def observe(_, call, *args, **kwargs):
        calls.check_eager()
        outputs = call(*args, **{**kwargs, "output_attentions": True})
        seen[:] = [dict(zip(_NAMES, args, strict=False), **kwargs), outputs]
        return outputs if isinstance(outputs, dict) else outputs[:-1]

    with intercept(encoder, by=observe):
        calls.call_encoder(model, inputs)
    if not seen:
        raise ValueError(
            f"{model.name!r} calls its encoder in a graph that is there already. Look into the "
            "model that it holds."
        )
    given, outputs = seen
    told = next(told for kind, told in kinds().items() if isinstance(encoder, kind))
    return told(encoder, given, outputs)


def kinds():
    """Returns the classes of the encoders that are observed: dict to `systems.System.observed`."""
    return calls.of_parts("observed")


_NAMES = ("input_ids", "attention_mask", "global_attention_mask")


def of_longformer(encoder, given, outputs):
    """See `systems.System.observed`."""
    *outputs, extras = outputs
    return _of_windows(encoder, given, given.get("global_attention_mask"), outputs[0], extras)


def of_led(encoder, given, outputs):
    """See `systems.System.observed`."""
    global_mask = given.get("global_attention_mask")
    if global_mask is None:
        global_mask = encoder.config.global_positions or None
    return _of_windows(encoder, given, global_mask, outputs["last_hidden_state"], outputs)


def _of_windows(encoder, given, global_mask, hidden, extras):
    shape = tuple(hidden.shape[:2])
    masks = given.get("attention_mask"), global_mask
    _, found = longformer.attention_of(*masks, shape, encoder.config, [])
    rows = {}
    for layer, block in enumerate(encoder.layers.attention_layers):
        local, of_globals = extras["attentions"][layer].numpy(), None
        if found is not None:
            of_globals = extras["global_attentions"][layer].numpy()
        rows[layer, "long"] = functools.partial(
            _window_rows, local, of_globals, found, block.inner_layer.windows
        )
    return Probabilities(rows, (shape[1], 0), shape[0])


def _window_rows(local, of_globals, global_tokens, windows, queries):
    """Probabilities by key, from those by global token and by position in the window."""
    batch, num_heads, length, _ = local.shape
    rows = np.zeros([len(queries), batch, num_heads, length], np.float32)
    num_slots = 0 if of_globals is None else of_globals.shape[-1]
    for head in range(num_heads):
        window = windows[head * len(windows) // num_heads]
        offsets = np.arange(-window.left, window.right + 1) * window.dilation
        keys = np.asarray(queries)[:, np.newaxis] + offsets
        row, column = np.nonzero((keys >= 0) & (keys < length))
        places = np.asarray(queries)[row]
        rows[row, :, head, keys[row, column]] = local[:, head, places, num_slots + column].T
    if global_tokens is None:
        return {"long": rows, "global": rows[..., :0]}
    positions = global_tokens.positions.numpy()
    for example, slot in zip(*np.nonzero(global_tokens.is_used.numpy()), strict=True):
        place = positions[example, slot]
        rows[:, example, :, place] += local[example, :, queries, slot]
        of_token = of_globals[example, :, :, slot]
        rows[np.equal(queries, place), example] = of_token
    return {"long": rows, "global": rows[..., :0]}


def of_gmat(encoder, given, outputs):
    """See `systems.System.observed`."""
    *outputs, extras = outputs
    batch, length, _ = outputs[0].shape
    memory_len = encoder.config.num_memory_tokens
    config, rows = encoder.config, {}
    layers = range(config.num_hidden_layers)
    first = config.num_compression_layers
    of_tokens = [x for x in layers if not first <= x < first + config.num_memory_layers]
    for side, name, numbers in (
        ("long", "attentions", of_tokens),
        ("global", "memory_attentions", layers if memory_len else ()),
    ):
        for layer, probs in zip(numbers, extras.get(name, ()), strict=bool(numbers)):
            rows[layer, side] = functools.partial(_memory_rows, probs.numpy(), (length, memory_len))
    return Probabilities(rows, (length, memory_len), batch)


def _memory_rows(probs, num_keys, queries):
    """Probabilities by side of the keys, from those for memory and, if there are any, tokens."""
    rows = probs[:, :, queries].transpose([2, 0, 1, 3])
    missing = sum(num_keys) - rows.shape[-1]
    rows = np.pad(rows, [[0, 0]] * 3 + [[missing, 0]])
    return {"long": rows[..., : num_keys[0]], "global": rows[..., num_keys[0] :]}


def of_bigbird(encoder, given, outputs):
    """See `systems.System.observed`."""
    *outputs, extras = outputs
    batch, length, _ = outputs[0].shape
    rows = {}
    for layer, (probs, counts) in enumerate(
        zip(extras["attentions"], encoder.pair_counts(given, length), strict=True)
    ):
        rows[layer, "long"] = functools.partial(
            _memory_rows, (probs * tf.cast(counts, tf.float32)).numpy(), (length, 0)
        )
    return Probabilities(rows, (length, 0), batch)
