"""Relative attention as functions of tensors: full, local, global-local (paper, section 3.2).

Logits are `(query . key + query . label_embedding + label_bias) / sqrt(size_per_head)`, where each
pair of tokens has a label; pairs that may not attend get -10000 added rather than -infinity, so
that a row without any allowed key averages over its keys instead of giving NaN.

What is float32 whatever the type of the inputs: the sum of the logits' parts, the softmax, its
gradient, and the sums of gradients over blocks of queries. The matrix products (queries, keys,
values and label embeddings, forward and backward) round to the type of the inputs, except for
float16 inputs: float16 could hold neither the products' sums nor small probabilities, so all of the
attention is float32 for them, and only its outputs and gradients round to float16.

Masks and labels come in one of two ways, with the same results: dense, as tensors over all pairs,
or as a `structure.GlobalLocalStructure`. AutoGraph is kept out: nothing here needs it, and its
conversion would take most of the time of a trace.
"""

import dataclasses

import tensorflow as tf

from etcmodel import tensor_utils
from etcmodel.ops import argument_checks, blockwise, layout
from etcmodel.ops import labels as labels_ops
from etcmodel.ops import masks as masks_ops
from etcmodel.ops.structure import KeyRules

__all__ = [
    "RelativeLabels",
    "SideKeys",
    "attend",
    "check_implementation",
    "global_attend",
    "local_attend",
    "long_attend",
]


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


@tf.autograph.experimental.do_not_convert
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
    rows = _full_layout(queries, tensor_utils.get_shape_list(keys)[1])
    group = _dense_group(keys, values, att_mask, att_ids, labels, rows)
    return blockwise.attend(queries, [group], rows, dropout_rate)


@tf.autograph.experimental.do_not_convert
def local_attend(
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
    implementation="auto",
):
    """Each query over the keys within `local_radius`, and over the side keys, in one softmax.

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
        implementation: 'auto' computes as few pairs as it can. 'sparse' (blocks of queries over
            three blocks of keys) and 'full' (one block over all keys) are those of the authors'
            release. They differ only for queries that may see nothing at all: such a query averages
            over the keys within the radius and the side keys, over the three blocks, or over
            all keys.
    Returns:
        float [batch, long_len, num_heads, value_size_per_head].
    Raises:
        ValueError: if `implementation` is unknown.
    """
    side_len = 0 if side is None else tensor_utils.get_shape_list(side.keys)[1]
    rows = _local_layout(queries, side_len, local_radius, implementation, is_dense=True)
    cut = local_radius - rows.radius  # Offsets beyond any key.
    att_mask, att_ids = (
        x[:, :, cut : 2 * local_radius + 1 - cut] if x is not None and cut else x
        for x in (att_mask, att_ids)
    )
    if att_ids is not None and rows.averages_outside:
        att_ids = _clip_to_sequence(tf.cast(att_ids, tf.int32), rows.radius)
    groups = [_dense_group(keys, values, att_mask, att_ids, labels, rows, is_local=True)]
    if side is not None:
        groups.append(
            _dense_group(side.keys, side.values, side.att_mask, side.att_ids, labels, rows)
        )
    return blockwise.attend(queries, groups, rows, dropout_rate)


@tf.autograph.experimental.do_not_convert
def long_attend(
    queries,
    long_keys_values,
    global_keys_values,
    structure,
    *,
    local_radius,
    labels=None,
    dropout_rate=0.0,
    implementation="auto",
):
    """Long queries over the long keys within the radius and over the global keys.

    Args:
        queries: float [batch, long_len, num_heads, size_per_head].
        long_keys_values: pair of float [batch, long_len, num_heads, size_per_head].
        global_keys_values: pair of float [batch, global_len, num_heads, size_per_head].
        structure: `structure.GlobalLocalStructure`.
        local_radius: int, at least 1. Keys visible on each side.
        labels: `RelativeLabels`, or None to ignore the structure's labels.
        dropout_rate: float. Dropout of attention probabilities.
        implementation: 'sparse' (blocks of queries over windows of keys), 'full' (one block over
            all keys) or 'auto' (what computes fewer pairs; sparse if the length is not known).
    Returns:
        float [batch, long_len, num_heads, size_per_head].
    Raises:
        ValueError: if `implementation` is unknown.
    """
    side_len = tensor_utils.get_shape_list(global_keys_values[0])[1]
    rows = _local_layout(queries, side_len, local_radius, implementation)
    groups = [
        _group(long_keys_values, structure.l2l(rows), labels, is_local=True),
        _group(global_keys_values, structure.l2g(rows), labels),
    ]
    return blockwise.attend(queries, groups, rows, dropout_rate)


@tf.autograph.experimental.do_not_convert
def global_attend(
    queries, global_keys_values, long_keys_values, structure, *, labels=None, dropout_rate=0.0
):
    """Global queries over all global and all long keys; the arguments of `long_attend`.

    Returns:
        float [batch, global_len, num_heads, size_per_head].
    """
    num_keys = [
        tensor_utils.get_shape_list(keys)[1] for keys, _ in (global_keys_values, long_keys_values)
    ]
    rows = _full_layout(queries, sum(num_keys))
    groups = [
        _group(global_keys_values, structure.g2g(rows), labels),
        _group(long_keys_values, structure.g2l(rows), labels),
    ]
    return blockwise.attend(queries, groups, rows, dropout_rate)


def _clip_to_sequence(local, local_radius):
    """Sets to 0 what a local tensor [batch, long_len, window] says of places beyond the ends."""
    long_len = tensor_utils.get_shape_list(local)[1]
    position = tf.range(long_len)[:, tf.newaxis] + tf.range(-local_radius, local_radius + 1)
    return local * tf.cast((position >= 0) & (position < long_len), local.dtype)


def check_implementation(implementation):
    """Raises ValueError if there is no such implementation of local attention."""
    if implementation not in ("auto", "sparse", "full"):
        argument_checks.fail(
            f"`att_implementation` must be 'auto', 'sparse' or 'full'. Received: {implementation!r}"
        )


def _local_layout(queries, side_len, local_radius, implementation, is_dense=False):
    check_implementation(implementation)
    batch, long_len, num_heads, _ = tensor_utils.get_shape_list(queries)
    is_known = isinstance(long_len, int)
    # No key is farther away than that.
    reach = min(local_radius, max(long_len - 1, 1)) if is_known else local_radius
    if implementation == "full" or (
        implementation == "auto" and is_known and long_len <= layout.sparse_window(reach)
    ):
        is_release = is_dense and implementation == "full"
        return layout.whole_layout(long_len, reach, averages_outside=is_release)
    if is_dense and implementation == "sparse":
        logits_per_row = batch * num_heads * (3 * (local_radius + 1) + side_len)
        return layout.release_layout(long_len, logits_per_row, local_radius)
    logits_per_row = batch * num_heads * (layout.sparse_window(reach) + side_len)
    return layout.block_layout(long_len, logits_per_row, reach)


def _full_layout(queries, num_keys):
    batch, query_len, num_heads, _ = tensor_utils.get_shape_list(queries)
    return layout.block_layout(query_len, batch * num_heads * num_keys)


def _group(keys_values, rules, labels, is_local=False):
    has_labels = labels is not None and rules.spread is not None
    return blockwise.KeyGroup(
        *keys_values,
        masks=rules.masks,
        spread=rules.spread if has_labels else None,
        emb_table=labels.emb_table if has_labels else None,
        bias_table=labels.bias_table if has_labels else None,
        is_local=is_local,
    )


def _dense_group(keys, values, att_mask, att_ids, labels, rows, is_local=False):
    masks, spread = (), None
    if att_mask is not None:
        masks = (masks_ops.DenseMask(rows.pad(att_mask), by_offset=is_local),)
    if att_ids is not None and labels is not None:
        spread = labels_ops.IdSpread(
            rows.pad(tf.cast(att_ids, tf.int32)),
            by_offset=is_local,
            use_one_hot_lookup=labels.use_one_hot_lookup,
        )
    return _group((keys, values), KeyRules(masks, spread), labels, is_local)
