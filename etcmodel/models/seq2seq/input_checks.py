"""Checks the inputs of encoders and decoders, once per call."""

import tensorflow as tf

from etcmodel.layers import sublayers
from etcmodel.ops import argument_checks

__all__ = ["KINDS", "of_decoder", "of_encoder"]

KINDS = ("padding", "a token")  # The meaning of 0 and 1 in a mask, as named in errors.

_ENCODER_AXES = {
    "input_ids": "batch length",
    "inputs_embeds": "batch length hidden_size",
    "attention_mask": "batch length",
    "position_ids": "batch? length",
}
_DECODER_AXES = {
    "encoder_output": "batch encoder_length hidden_size",
    "encoder_mask": "batch tokens*",
    "decoder_input_ids": "batch length",
    "decoder_inputs_embeds": "batch length hidden_size",
    "decoder_attention_mask": "batch length",
}
_ARE_IDS = ("input_ids", "decoder_input_ids", "position_ids")


@tf.autograph.experimental.do_not_convert
def of_encoder(given, hidden_size, vocab_size, is_mask_binary=True):
    """Checks the arguments of an encoder's call.

    Args:
        given: dict of `input_ids`, `inputs_embeds`, `attention_mask` and `position_ids`, some of
            which may be None or absent.
        hidden_size: int. Size of embeddings.
        vocab_size: int. Ids are below it.
        is_mask_binary: bool. Whether to check that the mask has only 0 and 1.
    Returns:
        dict like `given`, as tensors that depend on the checks.
    Raises:
        ValueError: in a line that names the argument, if they do not fit each other or the model.
            In a graph, values known only at run time raise `tf.errors.InvalidArgumentError`.
    """
    asserts = []
    sizes = {"hidden_size": hidden_size}
    sizes = argument_checks.check_shapes(given, _ENCODER_AXES, sizes, asserts)
    name = "inputs_embeds" if given.get("input_ids") is None else "input_ids"
    argument_checks.check_not_empty(name, sizes.get("length"), asserts=asserts)
    masks = ("attention_mask",) if is_mask_binary else ()
    return _after(asserts, _with_checked(given, masks, vocab_size, asserts))


@tf.autograph.experimental.do_not_convert
def of_decoder(given, hidden_size, vocab_size, mask_of_output, mask_kinds=KINDS):
    """Checks the arguments of a decoder's call.

    Args:
        given: dict by name of the tensors passed to a `seq2seq.decoder.Decoder`.
        hidden_size, vocab_size: see `of_encoder`.
        mask_of_output: function of `encoder_mask` that returns the mask of the encoder's output.
        mask_kinds: tuple of str. The meaning of 0, 1 … in `encoder_mask`.
    Returns:
        dict like `given`, as tensors that depend on the checks; `encoder_mask` is that of the
        encoder's output.
    Raises:
        ValueError: see `of_encoder`.
    """
    asserts = []
    sizes = {"hidden_size": hidden_size}
    sizes = argument_checks.check_shapes(given, _DECODER_AXES, sizes, asserts)
    if given["encoder_mask"] is not None:
        seen = argument_checks.checked_mask(
            "encoder_mask", given["encoder_mask"], mask_kinds, asserts=asserts
        )
        mask = {"encoder_mask": mask_of_output(tf.cast(seen, tf.bool))}
        axes = {"encoder_mask": "batch encoder_length"}
        argument_checks.check_shapes(mask, axes, sizes, asserts)
        given = {**given, **mask}
    given = _with_checked(given, ("decoder_attention_mask",), vocab_size, asserts)
    return _after(asserts, given)


def _with_checked(given, masks, vocab_size, asserts):
    """Checks token ids, and the masks of these names to be 0/1, and returns the arguments."""
    checked, words = dict(given), f"{vocab_size}, which is `vocab_size`"
    for name in ("input_ids", "decoder_input_ids"):
        if (ids := given.get(name)) is not None:
            checked[name] = argument_checks.checked_ids(
                name, ids, vocab_size, words, asserts=asserts
            )
    for name in masks:
        if (mask := given.get(name)) is not None:
            checked[name] = argument_checks.checked_mask(name, mask, KINDS, asserts=asserts)
    return checked


def _after(asserts, given):
    """The tensors, after the checks of a graph."""
    with tf.control_dependencies(asserts):
        return {name: _tensor(name, x) for name, x in given.items()}


def _tensor(name, x):
    if x is None:
        return None
    return tf.identity(sublayers.as_ids(x) if name in _ARE_IDS else tf.convert_to_tensor(x))
