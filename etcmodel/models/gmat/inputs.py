"""What a `GmatModel` checks and derives of its inputs, once a call."""

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
# The entries of the config that say how many rows the tables of ids have, and what these are.
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
    """The `Inputs` of what a model was called with.

    Args:
        config: `GmatConfig`.
        given: dict of arguments by name; None, or not there, where not given. One of `input_ids`,
            `inputs_embeds` and, for what is decompressed, `attention_mask` tells the length.
    Raises:
        ValueError: in one line that names the argument, if they do not fit each other or the model.
            For what only a running graph knows, it raises `tf.errors.InvalidArgumentError`.
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
    """The arguments of a call with each text at the left, and the padding that was before behind.

    Args:
        batch: dict of arguments of `GmatModel` by name.
    Returns:
        dict like `batch`.
    Raises:
        ValueError: naming the argument, if shapes do not fit; or if there is padding before a text
            whose hidden states or attentions by place are asked for.
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
    """A memory to decompress, as a tensor: float [batch, num_memory_tokens, hidden_size].

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
