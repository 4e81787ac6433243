"""Relative attention as functions of tensors: full, local, global-local (paper, section 3.2).

Logits are `(query . key + query . label_embedding + label_bias) / sqrt(size_per_head)`, where each
pair of tokens has a label; pairs that may not attend get -10000 added rather than -infinity, so
that a row without any allowed key averages over its keys instead of giving NaN.

Precision: the sum of the logits' parts, the softmax, its gradient, and the sums of gradients over
blocks of queries are float32, whatever the dtype of the inputs. The matrix products (of queries,
keys, values and label embeddings, forward and backward) have the dtype of the inputs. For float16
inputs all of the attention is float32, since float16 can represent neither the sums of the products
nor small probabilities; only outputs and gradients are rounded to float16.

Masks and labels are given in one of two ways, with the same results: as dense tensors over all
pairs, or as a `structure.GlobalLocalStructure`; both become `structure.KeyRules`. AutoGraph is
disabled: nothing here needs it, and its conversion would take most of the time of tracing.
"""

import dataclasses

import tensorflow as tf

from etcmodel.ops import argument_checks, blockwise, pair_values, reach
from etcmodel.ops import labels as labels_ops
from etcmodel.ops import masks as masks_ops
from etcmodel.ops.key_sets import KeySet
from etcmodel.ops.masks import MASKED_LOGIT
from etcmodel.ops.reach import ALL, Window
from etcmodel.ops.shapes import get_shape_list
from etcmodel.ops.structure import KeyRules
from etcmodel.ops.tiles import TILE_ROWS, current_tiling


@dataclasses.dataclass(frozen=True)
class ReleaseWhole(Window):
    """A window whose other pairs are masked (-10,000), not absent; for one tile of all rows."""

    outside = MASKED_LOGIT


@dataclasses.dataclass(frozen=True)
class ReleaseBlocks(ReleaseWhole):
    """The same with the release's blocks; both sides of the window have the same width."""

    @property
    def wanted_rows(self):
        return self.left + 1

    def most_rows_together(self, tile_rows):
        return 0

    def tile_rows(self, rows):
        return self.wanted_rows

    def keys_per_row(self, tile_rows, num_keys):
        return 3 * self.wanted_rows

    def view(self, tiles, num_keys):
        block = self.wanted_rows
        return reach.WindowedKeys(self, tiles, num_keys, left=block, right=block)


def clip_to_sequence(local, local_radius):
    """Sets the entries of positions beyond the ends to 0, in [batch, long_len, window]."""
    long_len = get_shape_list(local)[1]
    position = tf.range(long_len)[:, tf.newaxis] + tf.range(-local_radius, local_radius + 1)
    return local * tf.cast((position >= 0) & (position < long_len), local.dtype)


_RELEASE_REACHES = {
    "sparse": ReleaseBlocks,
    "full": ReleaseWhole,
}


@dataclasses.dataclass(frozen=True)
class RelativeLabels:
    """The tables of relative labels.

    Attributes:
        emb_table: float [relative_vocab_size, num_heads, size_per_head].
        bias_table: float [relative_vocab_size, num_heads].
        use_one_hot_lookup: bool. Whether to look up the label logits of dense ids by matrix
            products.
    """

    emb_table: tf.Tensor
    bias_table: tf.Tensor
    use_one_hot_lookup: bool = False

    @property
    def tables(self):
        """`labels.LabelTables`."""
        return labels_ops.LabelTables(self.emb_table, self.bias_table)

    def of_ids(self, ids):
        """`labels.Labels` of dense ids, `pair_values.PairValues`."""
        kind = labels_ops.OneHotIdLabels if self.use_one_hot_lookup else labels_ops.IdLabels
        return kind(self.tables, ids)


@dataclasses.dataclass(frozen=True)
class SideKeys:
    """Keys that every query of local attention attends to besides its window: the global input.

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
def attend(
    queries,
    keys,
    values,
    *,
    att_mask=None,
    att_ids=None,
    labels=None,
    dropout_rate=0.0,
    tiling=None,
):
    """Full attention: each query attends to all keys.

    Here and in `local_attend` masks and ids are checked, in a graph when it runs; code compiled by
    XLA omits the checks.

    Args:
        queries: float [batch, query_len, num_heads, size_per_head].
        keys: float [batch, key_len, num_heads, size_per_head].
        values: float [batch, key_len, num_heads, value_size_per_head].
        att_mask: bool or 0/1 int [batch, query_len, key_len], or None for no mask.
        att_ids: int [batch, query_len, key_len] or None. Labels of the pairs.
        labels: `RelativeLabels`, with `att_ids`.
        dropout_rate: float. Dropout rate of attention probabilities.
        tiling: `tiles.Tiling`. None: `tiles.current_tiling()`.
    Returns:
        float [batch, query_len, num_heads, value_size_per_head].
    Raises:
        ValueError: naming the argument, if a mask has values other than 0 and 1, or an id is not a
            label. Values known only when a graph runs raise `tf.errors.InvalidArgumentError`
            instead.
    """
    key_set = key_set_of((keys, values), dense_rules(att_mask, att_ids), labels)
    return blockwise.attend(queries, [key_set], tiling=tiling, dropout_rate=dropout_rate)


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
    tiling=None,
):
    """Local attention: each query attends to keys within `local_radius` and to side keys.

    Both kinds of keys share one softmax.

    Args:
        queries: float [batch, long_len, num_heads, size_per_head].
        keys: float [batch, long_len, num_heads, size_per_head].
        values: float [batch, long_len, num_heads, value_size_per_head].
        local_radius: int, at least 1. Keys attended to on each side.
        att_mask: bool or 0/1 int [batch, long_len, 2 * local_radius + 1], or None.
        att_ids: int [batch, long_len, 2 * local_radius + 1], or None.
        side: `SideKeys` or None.
        labels: `RelativeLabels`, with `att_ids`.
        dropout_rate: float. Dropout rate of attention probabilities.
        implementation: 'auto' computes as few pairs as possible. 'sparse' (blocks of queries over
            three blocks of keys) and 'full' (one block over all keys) are those of the authors'
            release. Their results differ only for a query that may not attend to any key: it
            averages over the keys within the radius and the side keys ('auto'), over the three
            blocks, or over all keys.
        tiling: `tiles.Tiling`. None: `tiles.current_tiling()`.
    Returns:
        float [batch, long_len, num_heads, value_size_per_head].
    Raises:
        ValueError: if `implementation` is unknown; see also `attend`.
    """
    check_implementation(implementation)
    sets = [((keys, values), dense_rules(att_mask, att_ids, local_radius, implementation))]
    if side is not None:
        rules = dense_rules(side.att_mask, side.att_ids, prefix="side_")
        sets.append(((side.keys, side.values), rules))
    options = (local_radius, labels, dropout_rate, implementation, tiling)
    return _attend_long(queries, sets, *options)


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
    tiling=None,
):
    """Attends from long queries to the long keys within the radius and to the global keys.

    Args:
        queries: float [batch, long_len, num_heads, size_per_head].
        long_keys_values: pair of float [batch, long_len, num_heads, size_per_head].
        global_keys_values: pair of float [batch, global_len, num_heads, size_per_head].
        structure: `structure.GlobalLocalStructure`, or what has its `l2l`, `l2g` and `global_keys`.
        local_radius: int, at least 1. Keys attended to on each side.
        labels: `RelativeLabels`, or None to ignore the structure's labels.
        dropout_rate: float. Dropout rate of attention probabilities.
        implementation: 'sparse' (blocks of queries over windows of keys), 'full' (one block over
            all keys) or 'auto' (whichever computes fewer pairs; if the length is not known when
            tracing, an export chooses when it runs, and otherwise it is sparse).
        tiling: `tiles.Tiling`. None: `tiles.current_tiling()`.
    Returns:
        float [batch, long_len, num_heads, size_per_head].
    Raises:
        ValueError: if `implementation` is unknown.
    """
    check_implementation(implementation)
    sets = [
        (long_keys_values, structure.l2l(local_radius, implementation)),
        (global_keys_values, structure.l2g()),
    ]
    options = (local_radius, labels, dropout_rate, implementation, tiling)
    return _attend_long(queries, sets, *options)


@tf.autograph.experimental.do_not_convert
def global_attend(
    queries,
    global_keys_values,
    long_keys_values,
    structure,
    *,
    labels=None,
    dropout_rate=0.0,
    tiling=None,
):
    """Attends from global queries to all global and all long keys.

    Args: see `long_attend`.

    Returns:
        float [batch, global_len, num_heads, size_per_head].
    """
    sets = structure.global_keys(global_keys_values, long_keys_values)
    key_sets = [key_set_of(*one, labels) for one in sets]
    return blockwise.attend(queries, key_sets, tiling=tiling, dropout_rate=dropout_rate)


def check_implementation(implementation):
    """Raises ValueError if there is no such implementation of local attention."""
    if implementation not in ("auto", "sparse", "full"):
        argument_checks.fail(
            f"`att_implementation` must be 'auto', 'sparse' or 'full'. Received: {implementation!r}"
        )


@tf.autograph.experimental.do_not_convert
def dense_rules(att_mask, att_ids, local_radius=None, implementation="auto", prefix=""):
    """The `structure.KeyRules` of a mask and labels given as dense tensors, which are checked.

    Args:
        att_mask: bool or 0/1 int [batch or 1, num_rows, num_keys], or None.
        att_ids: int, shaped likewise, or None. Labels.
        local_radius: int. If given, the last axis has the 2 * local_radius + 1 keys of a window.
        implementation: see `local_attend`.
        prefix: str. Of the names `att_mask` and `relative_att_ids` in errors.
    Raises:
        ValueError: see `attend`.
    """
    masks, reach = (), None
    if implementation != "auto":
        reach = _RELEASE_REACHES[implementation](local_radius, local_radius)
        if att_ids is not None:
            att_ids = argument_checks.whole_ids(f"{prefix}relative_att_ids", att_ids)
            att_ids = clip_to_sequence(tf.cast(att_ids, tf.int32), local_radius)

    def pairs(x):
        if local_radius is None:
            return pair_values.Dense(x)
        return pair_values.ByOffset(x, local_radius)

    def labels_of(labels):
        name, number = f"{prefix}relative_att_ids", labels.emb_table.shape[0]
        ids = argument_checks.table_ids(name, att_ids, number, "relative_vocab_size")
        return labels.of_ids(pairs(tf.cast(ids, tf.int32)))

    if att_mask is not None:
        att_mask = argument_checks.mask_of(f"{prefix}att_mask", att_mask)
        masks = (masks_ops.ValueMask(pairs(att_mask)),)
    return KeyRules(masks, None if att_ids is None else labels_of, reach)


def _attend_long(queries, sets, local_radius, labels, dropout_rate, implementation, tiling):
    """Attends to sets of (keys and values, `KeyRules`); keys of the first are in a window."""
    if implementation != "auto":
        tiling = tiling or current_tiling()
        rows = "all" if implementation == "full" else tiling.rows or TILE_ROWS
        tiling = dataclasses.replace(tiling, rows=rows)
    radius, long_len = local_radius, get_shape_list(queries)[1]
    if isinstance(long_len, int):
        radius = min(local_radius, max(long_len - 1, 1))
    own, *others = sets
    key_sets = [key_set_of(*own, labels, Window(radius, radius))]
    key_sets += [key_set_of(*other, labels) for other in others]
    return blockwise.attend(queries, key_sets, tiling=tiling, dropout_rate=dropout_rate)


def key_set_of(keys_values, rules, labels, reach=ALL):
    """Returns the `KeySet` of a pair of keys and values.

    Args:
        keys_values: pair of float [batch, num_keys, num_heads, size_per_head].
        rules: `structure.KeyRules`.
        labels: `RelativeLabels`, or None to ignore the labels of the rules.
        reach: `reach.Reach`, where the rules have none.
    """
    has_labels = labels is not None and rules.labels is not None
    return KeySet(
        *keys_values,
        reach=rules.reach or reach,
        masks=rules.masks,
        labels=rules.labels(labels) if has_labels else None,
    )
