"""Checks and completes the inputs of a `GmatModel`, once per call."""

from typing import NamedTuple

import tensorflow as tf

from etcmodel import tensor_utils
from etcmodel.models import padding
from etcmodel.ops import argument_checks

__all__ = ["Inputs", "checked", "checked_memory", "from_first_token"]

_AXES = {
    "input_ids": "batch length",
    "inputs_embeds": "batch length hidden_size",
    "attention_mask": "batch length",
    "token_type_ids": "batch? length",
    "position_ids": "batch? length",
    "memory_ids": "batch num_memory_tokens",
    "memory_mask": "batch num_memory_tokens",
}
# The config's entries for the sizes of the tables of ids, and what the ids are.
_TABLES = {
    "input_ids": ("vocab_size", "which is `vocab_size`"),
    "memory_ids": ("vocab_size", "which is `vocab_size`"),
    "token_type_ids": ("type_vocab_size", "which is `type_vocab_size`"),
    "position_ids": ("max_length", "`position_period` times `num_position_quotients`"),
}


class Inputs(NamedTuple):
    """Inputs of one call: see `GmatModel`.

    Attributes:
        batch: int or int32 scalar.
        input_ids: int [batch, length], or None.
        inputs_embeds: float [batch, length, hidden_size], or None.
        attention_mask: bool [batch, length], or None.
        token_type_ids: int [batch or 1, length].
        position_ids: int [batch or 1, length].
        memory_ids: int [batch, num_memory_tokens], or None.
        memory_mask: bool [batch, num_memory_tokens], or None.
    """

    batch: object
    input_ids: tf.Tensor | None
    inputs_embeds: tf.Tensor | None
    attention_mask: tf.Tensor | None
    token_type_ids: tf.Tensor
    position_ids: tf.Tensor
    memory_ids: tf.Tensor | None
    memory_mask: tf.Tensor | None


@tf.autograph.experimental.do_not_convert
def checked(config, given):
    """Checks the arguments of a model's call and returns its `Inputs`.

    Args:
        config: `GmatConfig`.
        given: dict of arguments by name; None or absent if not given. The length is taken from
            `input_ids`, `inputs_embeds` or, for decompression, `attention_mask`.
    Raises:
        ValueError: in one line that names the argument, if inputs are inconsistent with each other
            or the model. In a graph, values known only at run time raise
            `tf.errors.InvalidArgumentError`.
    """
    given = {name: given.get(name) for name in _AXES}
    memory = [name for name in ("memory_ids", "memory_mask") if given[name] is not None]
    if memory and not config.num_memory_tokens:
        argument_checks.fail(
            f"A model with `num_memory_tokens` 0 takes no `{memory[0]}`: it has no memory."
        )
    sizes = {name: getattr(config, name) for name in ("hidden_size", "num_memory_tokens")}
    asserts = []
    argument_checks.check_shapes(given, _AXES, sizes, asserts)
    given = {name: _tensor(config, name, x, asserts) for name, x in given.items()}
    names = ("input_ids", "inputs_embeds", "attention_mask")
    first = next((given[name] for name in names if given[name] is not None), None)
    if first is None:
        argument_checks.fail(
            "Nothing says how long the text is: give `input_ids` or `inputs_embeds`, or an "
            "`attention_mask` to `decompress`."
        )
    batch, length = tensor_utils.get_shape_list(tf.convert_to_tensor(first))[:2]
    positions = given["position_ids"]
    if positions is None:
        positions = _tensor(config, "position_ids", tf.range(length)[tf.newaxis], asserts)
    with tf.control_dependencies(asserts):  # All depends on these.
        positions = tf.identity(positions)
        given = {name: None if x is None else tf.identity(x) for name, x in given.items()}
    types = given["token_type_ids"]
    types = tf.zeros_like(positions) if types is None else types
    return Inputs(batch, **{**given, "position_ids": positions, "token_type_ids": types})


@tf.autograph.experimental.do_not_convert
def from_first_token(batch):
    """Moves each text to the start of its row, and leading padding behind it.

    Args:
        batch: dict of arguments of `GmatModel` by name.
    Returns:
        dict like `batch`.
    Raises:
        ValueError: naming the argument, if shapes are inconsistent; or if there is padding before a
            text whose hidden states or attentions by position are requested.
    """
    if batch.get("attention_mask") is None:
        return batch
    rows = {
        name: x for name, x in batch.items() if "length" in _AXES.get(name, "") and x is not None
    }
    argument_checks.check_shapes(rows, _AXES)
    is_token = tf.cast(rows["attention_mask"], tf.bool)
    if batch.get("output_hidden_states") or batch.get("output_attentions"):
        asserts, words = [], "Hidden states and attentions of texts need padding at the end alone."
        begins = is_token[:, 0] | ~tf.reduce_any(is_token, axis=1)
        argument_checks.check(tf.reduce_all(begins), words, asserts=asserts)
        with tf.control_dependencies(asserts):
            return {**batch, "attention_mask": tf.identity(rows["attention_mask"])}
    return {**batch, **{name: padding.from_first_real(x, is_token) for name, x in rows.items()}}


def _tensor(config, name, x, asserts):
    """An argument as a checked tensor; None if it is not given."""
    if x is None or name == "inputs_embeds":
        return x
    if name in ("attention_mask", "memory_mask"):
        return argument_checks.checked_mask(name, x, ("padding", "a token"), asserts=asserts)
    entry, words = _TABLES[name]
    num_rows = getattr(config, entry)
    return argument_checks.checked_ids(name, x, num_rows, f"{num_rows}, {words}", asserts=asserts)


@tf.autograph.experimental.do_not_convert
def checked_memory(config, memory, batch):
    """Checks a memory to decompress: float [batch, num_memory_tokens, hidden_size].

    Args:
        config: `GmatConfig`.
        memory: float tensor.
        batch: int or int32 scalar.
    Raises:
        ValueError: see `checked`.
    """
    sizes = {name: getattr(config, name) for name in ("hidden_size", "num_memory_tokens")}
    axes, asserts = {"memory": "batch num_memory_tokens hidden_size"}, []
    argument_checks.check_shapes({"memory": memory}, axes, {**sizes, "batch": batch}, asserts)
    with tf.control_dependencies(asserts):
        return tf.identity(memory)
