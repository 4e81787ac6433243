"""What a `GmatModel` checks and derives of its inputs, once a call."""

from typing import NamedTuple

import tensorflow as tf

from etcmodel import tensor_utils
from etcmodel.layers import sublayers
from etcmodel.ops import argument_checks

__all__ = ["Inputs", "checked", "checked_memory"]

_AXES = {
    "input_ids": "batch length",
    "inputs_embeds": "batch length hidden_size",
    "attention_mask": "batch length",
    "token_type_ids": "batch? length",
    "position_ids": "batch? length",
    "memory_ids": "batch num_memory_tokens",
    "memory_mask": "batch num_memory_tokens",
}


class Inputs(NamedTuple):
    """Inputs of one call: see `GmatModel`.

    Attributes:
        batch: int or int32 scalar.
        input_ids: int [batch, length], or None.
        inputs_embeds: float [batch, length, hidden_size], or None.
        attention_mask: 0/1 int [batch, length], or None.
        token_type_ids: int [batch or 1, length].
        position_ids: int [batch or 1, length].
        memory_ids: int [batch, num_memory_tokens], or None.
        memory_mask: 0/1 int [batch, num_memory_tokens], or None.
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
    given = {name: None if x is None else sublayers.as_ids(x) for name, x in given.items()} | {
        "inputs_embeds": given["inputs_embeds"]
    }
    names = ("input_ids", "inputs_embeds", "attention_mask")
    first = next((given[name] for name in names if given[name] is not None), None)
    if first is None:
        argument_checks.fail(
            "Nothing says how long the text is: give `input_ids` or `inputs_embeds`, or an "
            "`attention_mask` to `decompress`."
        )
    batch, length = tensor_utils.get_shape_list(tf.convert_to_tensor(first))[:2]
    positions, types = given["position_ids"], given["token_type_ids"]
    positions = tf.range(length)[tf.newaxis] if positions is None else positions
    words = f"{config.max_length}, `position_period` times `num_position_quotients`"
    argument_checks.check_range(
        "position_ids", positions, 0, config.max_length, words, asserts=asserts
    )
    with tf.control_dependencies(asserts):
        positions = tf.identity(positions)  # On which all depends.
    types = tf.zeros_like(positions) if types is None else types
    return Inputs(batch, **{**given, "position_ids": positions, "token_type_ids": types})


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
