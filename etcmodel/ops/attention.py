"""Relative attention as functions of tensors: full, and local with side keys (paper, appendix A).

Logits are `(query . key + query . label_embedding + label_bias) / sqrt(size_per_head)`, where each
pair of tokens has a label; pairs that may not attend get -10000 added rather than -infinity, so
that a row without any allowed key averages instead of giving NaN. Logits and softmax are float32
whatever the type of the inputs.
"""

import dataclasses
import math

import tensorflow as tf

from etcmodel import tensor_utils
from etcmodel.ops import dropout as dropout_ops

__all__ = ["RelativeLabels", "SideKeys", "attend", "local_attend_full", "local_attend_sparse"]

MASKED_LOGIT = -10000.0


@dataclasses.dataclass(frozen=True)
class RelativeLabels:
    """What the labels of pairs of tokens stand for.

    Attributes:
        emb_table: float [relative_vocab_size, num_heads, size_per_head].
        bias_table: float [relative_vocab_size, num_heads].
        use_one_hot_lookup: bool. Spread label scores to pairs by matrix products, not gathers.
    """

    emb_table: tf.Tensor
    bias_table: tf.Tensor
    use_one_hot_lookup: bool = False

    def logits(self, queries, att_ids):
        """Label part of the logits.

        The product with the few distinct labels is taken first and then spread to the pairs, so
        that nothing of shape [query, key, size] ever exists.

        Args:
            queries: [batch, query_len, num_heads, size_per_head].
            att_ids: int [batch, query_len, key_len].
        Returns:
            [batch, num_heads, query_len, key_len].
        """
        emb_table = tf.cast(self.emb_table, queries.dtype)
        bias_table = tf.cast(self.bias_table, queries.dtype)
        by_label = tf.einsum("bqhd,rhd->bqrh", queries, emb_table) + bias_table
        if self.use_one_hot_lookup:
            spread = tensor_utils.batch_gather_by_one_hot(by_label, att_ids, batch_dims=2)
        else:
            spread = tf.gather(by_label, att_ids, batch_dims=2)
        return tf.transpose(spread, [0, 3, 1, 2])


def attend(queries, keys, values, *, att_mask=None, att_ids=None, labels=None, dropout_rate=0.0):
    """Every query over every key.

    Args:
        queries: float [batch, query_len, num_heads, size_per_head].
        keys: float [batch, key_len, num_heads, size_per_head].
        values: float [batch, key_len, num_heads, value_size_per_head].
        att_mask: bool or 0/1 int [batch, query_len, key_len], or None for no mask.
        att_ids: int [batch, query_len, key_len] or None. Labels of the pairs.
        labels: `RelativeLabels`, with `att_ids`.
        dropout_rate: float. Dropout of attention probabilities.
    Returns:
        float [batch, query_len, num_heads, value_size_per_head].
    """
    logits = tf.einsum("bqhd,bkhd->bhqk", queries, keys)
    logits = _finish_logits(logits, queries, att_mask, att_ids, labels)
    probs = _probs(logits, dropout_rate, values.dtype)
    return tf.einsum("bhqk,bkhv->bqhv", probs, values)


def local_attend_full(queries, keys, values, *, local_radius, side=None, **options):
    """Local attention computed as masked full attention; the arguments of `local_attend_sparse`.

    For short inputs, where blocks would be mostly padding.
    """
    long_len = tensor_utils.get_shape_list(queries)[1]
    window = tf.ones([1, long_len, 2 * local_radius + 1], tf.int32)
    mask = options.get("att_mask")
    mask = window if mask is None else tf.cast(mask, tf.int32)
    att_mask = _local_to_full(mask, local_radius, long_len)
    att_ids = options.get("att_ids")
    if att_ids is not None:
        att_ids = _local_to_full(tf.cast(att_ids, tf.int32), local_radius, long_len)
    labels, dropout_rate = options.get("labels"), options.get("dropout_rate", 0.0)
    if side is None:
        return attend(
            queries,
            keys,
            values,
            att_mask=att_mask,
            att_ids=att_ids,
            labels=labels,
            dropout_rate=dropout_rate,
        )

    logits = tf.einsum("bqhd,bkhd->bhqk", queries, keys)
    logits = _finish_logits(logits, queries, att_mask, att_ids, labels)
    side_logits = side.logits(queries, labels)
    probs = _probs(tf.concat([logits, side_logits], axis=-1), dropout_rate, values.dtype)
    all_values = tf.concat([values, side.values], axis=1)
    return tf.einsum("bhqk,bkhv->bqhv", probs, all_values)


@dataclasses.dataclass(frozen=True)
class SideKeys:
    """Keys that every local query sees besides its window: the global input.

    Attributes:
        keys: float [batch, side_len, num_heads, size_per_head].
        values: float [batch, side_len, num_heads, value_size_per_head].
        att_mask: bool or 0/1 int [batch, long_len, side_len], or None.
        att_ids: int [batch, long_len, side_len], or None.
    """

    keys: tf.Tensor
    values: tf.Tensor
    att_mask: tf.Tensor | None = None
    att_ids: tf.Tensor | None = None

    def logits(self, queries, labels):
        """float32 [batch, num_heads, long_len, side_len]."""
        logits = tf.einsum("bqhd,bkhd->bhqk", queries, self.keys)
        return _finish_logits(logits, queries, self.att_mask, self.att_ids, labels)


def local_attend_sparse(
    queries,
    keys,
    values,
    *,
    local_radius,
    att_mask=None,
    att_ids=None,
    side=None,
    labels=None,
    dropout_rate=0.0,
):
    """Each query over the keys within `local_radius`, and over the side keys, in one softmax.

    Queries are taken in blocks of `local_radius + 1`; a block and its two neighbours hold all keys
    that its queries may see.

    Args:
        queries: float [batch, long_len, num_heads, size_per_head].
        keys: float [batch, long_len, num_heads, size_per_head].
        values: float [batch, long_len, num_heads, value_size_per_head].
        local_radius: int, at least 1. Keys visible on each side.
        att_mask: bool or 0/1 int [batch, long_len, 2 * local_radius + 1], or None.
        att_ids: int [batch, long_len, 2 * local_radius + 1], or None.
        side: `SideKeys` or None.
        labels: `RelativeLabels`, with `att_ids`.
        dropout_rate: float. Dropout of attention probabilities.
    Returns:
        float [batch, long_len, num_heads, value_size_per_head].
    """
    batch, long_len, num_heads, _ = tensor_utils.get_shape_list(queries)
    value_size = tensor_utils.get_shape_list(values)[-1]
    block_len = local_radius + 1
    blocks = [tensor_utils.split_into_blocks(x, block_len, axis=1) for x in (queries, keys, values)]
    # All blocks of all examples become one batch: [batch * num_blocks, (3 *) block_len, ...].
    block_queries, block_keys, block_values = (
        tensor_utils.flatten_dims(x, 0, 1)
        for x in (blocks[0], *map(tensor_utils.concat_3_blocks, blocks[1:]))
    )
    num_blocks = tensor_utils.get_shape_list(blocks[0])[1]

    mask = tf.ones([batch, long_len, 2 * local_radius + 1], tf.int32)
    mask = mask if att_mask is None else tf.cast(att_mask, tf.int32)
    mask = _local_to_blocks(_clip_to_sequence(mask, local_radius), block_len)
    if att_ids is not None:
        att_ids = _clip_to_sequence(tf.cast(att_ids, tf.int32), local_radius)
        att_ids = _local_to_blocks(att_ids, block_len)
    logits = tf.einsum("nqhd,nkhd->nhqk", block_queries, block_keys)
    logits = _finish_logits(logits, block_queries, mask, att_ids, labels)
    if side is None:
        probs = _probs(logits, dropout_rate, values.dtype)
        output = tf.einsum("nhqk,nkhv->nqhv", probs, block_values)
        return tf.reshape(output, [batch, -1, num_heads, value_size])[:, :long_len]

    side_len = tensor_utils.get_shape_list(side.keys)[1]
    padded_len = num_blocks * block_len
    side_logits = side.logits(queries, labels)
    side_logits = tensor_utils.pad_to_multiple(side_logits, block_len, axis=2)
    side_logits = tf.reshape(side_logits, [batch, num_heads, num_blocks, block_len, side_len])
    side_logits = tf.reshape(
        tf.transpose(side_logits, [0, 2, 1, 3, 4]), [-1, num_heads, block_len, side_len]
    )
    probs = _probs(tf.concat([logits, side_logits], axis=-1), dropout_rate, values.dtype)
    local_probs, side_probs = tf.split(probs, [3 * block_len, side_len], axis=-1)
    output = tf.einsum("nhqk,nkhv->nqhv", local_probs, block_values)
    output = tf.reshape(output, [batch, padded_len, num_heads, value_size])
    side_probs = tf.reshape(side_probs, [batch, num_blocks, num_heads, block_len, side_len])
    side_output = tf.einsum("bnhqk,bkhv->bnqhv", side_probs, side.values)
    output += tf.reshape(side_output, [batch, padded_len, num_heads, value_size])
    return output[:, :long_len]


def _finish_logits(logits, queries, att_mask, att_ids, labels):
    """Adds the label part, scales, masks: float32 [batch, num_heads, query_len, key_len]."""
    if att_ids is not None and labels is not None:
        logits += labels.logits(queries, tf.cast(att_ids, tf.int32))
    logits = tf.cast(logits, tf.float32) / math.sqrt(queries.shape[-1])
    if att_mask is None:
        return logits
    adder = (1.0 - tf.cast(att_mask, tf.float32)) * MASKED_LOGIT
    return logits + adder[:, tf.newaxis]


def _probs(logits, dropout_rate, dtype):
    """Softmax over the keys, with dropout."""
    probs = tf.cast(tf.nn.softmax(logits, axis=-1), dtype)
    return dropout_ops.dropout(probs, dropout_rate) if dropout_rate else probs


def _clip_to_sequence(local, local_radius):
    """Sets to 0 what a local tensor [batch, long_len, window] says of places beyond the ends."""
    long_len = tensor_utils.get_shape_list(local)[1]
    position = tf.range(long_len)[:, tf.newaxis] + tf.range(-local_radius, local_radius + 1)
    inside = (position >= 0) & (position < long_len)
    return local * tf.cast(inside, local.dtype)


def _local_to_full(local, local_radius, long_len):
    """[batch, long_len, 2 * local_radius + 1] to [batch, long_len, long_len]; 0 elsewhere."""
    # Skewed, row i begins at column i, which is key i - local_radius.
    skewed = tensor_utils.skew_elements_right(local, axis=2)
    return skewed[:, :, local_radius : local_radius + long_len]


def _local_to_blocks(local, block_len):
    """[batch, long_len, window] to [batch * num_blocks, block_len, 3 * block_len]; 0 elsewhere."""
    blocks = tensor_utils.split_into_blocks(local, block_len, axis=1)
    blocks = tensor_utils.flatten_dims(blocks, 0, 1)
    # Query i of a block has key i at column block_len + i of the three blocks, so its window,
    # which begins block_len - 1 keys before, begins at column i + 1.
    skewed = tensor_utils.skew_elements_right(blocks, axis=2)
    return tf.pad(skewed, [[0, 0], [0, 0], [1, 1]])
