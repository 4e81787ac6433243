"""Checks and completes the inputs of a `LongformerModel`, once per call."""

from typing import NamedTuple

import tensorflow as tf

from etcmodel.ops import argument_checks, global_tokens

__all__ = ["KINDS", "Inputs", "attention_of", "checked", "position_ids_of"]

KINDS = ("padding", "local", "global")  # The meaning of 0, 1 and 2 in an `attention_mask`.

_AXES = {
    "input_ids": "batch length",
    "inputs_embeds": "batch length hidden_size",
    "attention_mask": "batch length",
    "token_type_ids": "batch? length",
    "position_ids": "batch? length",
}


class Inputs(NamedTuple):
    """Inputs of one call.

    Attributes:
        input_ids: int32 [batch, length], or None.
        inputs_embeds: float [batch, length, hidden_size], or None: one of the two.
        token_type_ids: int [batch or 1, length].
        position_ids: int [batch or 1, length].
        token_mask: bool [batch, length] or None. True for tokens, False for padding.
        global_tokens: `ops.global_tokens.GlobalTokens` or None.
    """

    input_ids: tf.Tensor | None
    inputs_embeds: tf.Tensor | None
    token_type_ids: tf.Tensor
    position_ids: tf.Tensor
    token_mask: tf.Tensor | None
    global_tokens: object


def position_ids_of(input_ids, pad_token_id):
    """RoBERTa's positions: padding has `pad_token_id`, other tokens count up from there.

    Args:
        input_ids: int [batch, length].
        pad_token_id: int.
    Returns:
        int32 [batch, length].
    """
    is_token = tf.cast(tf.not_equal(input_ids, pad_token_id), tf.int32)
    return pad_token_id + tf.cumsum(is_token, axis=1) * is_token


@tf.autograph.experimental.do_not_convert
def checked(config, given, global_attention_mask):
    """Checks the arguments of a model's call and returns its `Inputs`.

    Args:
        config: `LongformerConfig`.
        given: dict of the other arguments of the call by name; None if not given.
        global_attention_mask: see `LongformerModel`.
    Raises:
        ValueError: in one line that names the argument, what is wanted and what is found. In a
            graph, values known only at run time raise `tf.errors.InvalidArgumentError` with that
            line. Compiled by XLA a graph cannot raise: ids and positions are then clipped to the
            tables, and tokens beyond `max_global_tokens` are local.
    """
    ids, embeds = given["input_ids"], given["inputs_embeds"]
    if (ids is None) == (embeds is None):
        argument_checks.fail("Give `input_ids` or `inputs_embeds`, one of them.")
    asserts = []
    argument_checks.check_shapes(given, _AXES, {"hidden_size": config.hidden_size}, asserts)
    ids = _ids(config, given, "input_ids", "vocab_size", asserts)
    shape = tf.shape(embeds if ids is None else ids)
    static = tf.TensorShape((embeds if ids is None else ids).shape)
    batch, length = (shape[i] if static[i] is None else static[i] for i in range(2))
    name = "inputs_embeds" if ids is None else "input_ids"
    argument_checks.check_not_empty(name, length, asserts=asserts)
    types = _ids(config, given, "token_type_ids", "type_vocab_size", asserts)
    if types is None:
        types = tf.zeros([1, length], tf.int32)
    positions = _positions(config, given["position_ids"], ids, length, asserts)
    token_mask, found = attention_of(
        given["attention_mask"], global_attention_mask, (batch, length), config, asserts
    )
    inputs = Inputs(ids, embeds, types, positions, token_mask, found)
    if not asserts:
        return inputs
    with tf.control_dependencies(asserts):
        # All depends on these.
        return inputs._replace(
            input_ids=None if ids is None else tf.identity(ids),
            token_type_ids=tf.identity(types),
            position_ids=tf.identity(positions),
        )


def _ids(config, given, name, entry, asserts):
    """An argument as a tensor, checked against an entry of the config; None if it is not given."""
    if given[name] is None:
        return None
    num_rows = getattr(config, entry)
    words = f"{num_rows}, which is `{entry}`"
    return argument_checks.checked_ids(name, given[name], num_rows, words, asserts=asserts)


def _positions(config, positions, ids, length, asserts):
    """Positions, given or derived, after checks: int [batch or 1, length]."""
    if positions is None and ids is not None:
        positions = position_ids_of(ids, config.pad_token_id)
    elif positions is None:
        positions = (config.pad_token_id + 1 + tf.range(length))[tf.newaxis]
    limit = config.max_position_embeddings
    words = (
        f"{limit}, the rows of the table of positions, which is enough for "
        f"{limit - config.pad_token_id - 1} tokens"
    )
    return argument_checks.checked_ids("position_ids", positions, limit, words, asserts=asserts)


@tf.autograph.experimental.do_not_convert
def attention_of(attention_mask, global_attention_mask, shape, config, asserts):
    """Derives padding and global tokens from the two masks.

    Args:
        attention_mask: int or bool [batch, length], or None; see `LongformerModel`.
        global_attention_mask: see `LongformerModel`.
        shape: (batch, length), int or scalar tensors.
        config: with `autoregressive` and `max_global_tokens`, as `LongformerConfig`.
        asserts: list, to which a graph adds its checks; see `argument_checks.check`.
    Returns:
        (token_mask, global_tokens): bool [batch, length] and `ops.global_tokens.GlobalTokens`; each
        may be None.
    Raises:
        ValueError: see `checked`.
    """
    token_mask = is_global = None
    if attention_mask is not None:
        attention_mask = argument_checks.checked_mask(
            "attention_mask", attention_mask, KINDS, asserts=asserts
        )
        token_mask, is_global = attention_mask > 0, attention_mask > 1
    if global_attention_mask is not None:
        chosen = global_tokens.mask_of(global_attention_mask, *shape, asserts)
        is_global = chosen if is_global is None else (chosen & token_mask) | is_global
    _check_globals(config, is_global, asserts)
    if is_global is None or config.autoregressive:
        return token_mask, None
    return token_mask, global_tokens.find(is_global, config.max_global_tokens)


def _check_globals(config, is_global, asserts):
    if is_global is None:
        return
    most = tf.reduce_max(tf.reduce_sum(tf.cast(is_global, tf.int32), axis=1))
    if config.autoregressive:
        words = "An autoregressive model can have no global tokens: all would see them. Received:"
        argument_checks.check(most < 1, words, most, asserts=asserts)
    elif config.max_global_tokens is not None:
        words = (
            f"An example must have at most `max_global_tokens`, {config.max_global_tokens}, "
            "global tokens. Received:"
        )
        argument_checks.check(most <= config.max_global_tokens, words, most, asserts=asserts)
