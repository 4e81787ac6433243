"""Attention over key sets, pair by pair: what each reach, mask and kind of labels means.

Every question about a pair of a query and a key is answered on its own, in plain Python; only the
sums over pairs are TensorFlow's, in float64, so that it can differentiate them.
"""

import math

import numpy as np
import tensorflow as tf

from etcmodel.ops import labels, masks, offsets, pair_values, reach
from etcmodel.ops import structure as links
from etcmodel.ops.shapes import get_shape_list


def sees(kind, query, key):
    """Whether a pair exists."""
    if isinstance(kind, reach.Window):
        steps, rest = divmod(key - query, kind.dilation)
        return rest == 0 and -kind.left <= steps <= kind.right
    if isinstance(kind, reach.Chunk):
        return (query + kind.shift) // kind.size == (key + kind.shift) // kind.size
    assert isinstance(kind, reach.All)
    return True


def allows(mask, kind, batch, query, key):
    """Whether a mask allows a pair that exists."""
    if isinstance(mask, masks.ValueMask):
        return bool(pair_value(mask.values, kind, batch, query, key))
    if isinstance(mask, masks.SegmentMask):
        return mask.query_ids[batch, query] == mask.key_ids[batch, key]
    if isinstance(mask, masks.KeyMask):
        return bool(mask.mask[batch, key])
    if isinstance(mask, masks.CausalMask):
        return key <= query
    assert isinstance(mask, masks.LinkMask)
    is_ignored = mask.ignored_rows is not None and mask.ignored_rows[batch, query]
    return is_ignored or any(is_linked(x, batch, query, key) for x in mask.links)


def pair_value(values, kind, batch, query, key):
    return int(values.values[batch, query, column(values, kind, query, key)])


def column(values, kind, query, key):
    """Where a query's values have that of a key."""
    if isinstance(values, pair_values.Dense):
        return key
    return values.left + (key - query) // getattr(kind, "dilation", 1)


def is_linked(link, batch, query, key):
    if isinstance(link, links.LinksOfQueries):
        return link.ids[batch, query] == key
    return link.ids[batch, key] == query


def label(kind_of_labels, kind, batch, query, key):
    """The label of a pair."""
    if isinstance(kind_of_labels, labels.OffsetLabels):
        return offset_label(kind_of_labels.function, key - query)
    if isinstance(kind_of_labels, labels.IdLabels):
        return pair_value(kind_of_labels.ids, kind, batch, query, key)
    result = kind_of_labels.unlinked
    for some_links, its_label in kind_of_labels.relations:
        if any(is_linked(link, batch, query, key) for link in some_links):
            result = its_label
    return result


def offset_label(function, offset):
    if isinstance(function, offsets.ClippedOffsets):
        clipped = min(abs(offset), function.max_distance)
        return clipped + function.max_distance if offset < 0 else clipped
    if isinstance(function, offsets.LogBuckets):
        half = function.num_buckets // 2
        return (half if offset > 0 else 0) + bucket(abs(offset), half, function.max_distance)
    return bucket(max(0, -offset), function.num_buckets, function.max_distance)


def bucket(distance, num_buckets, max_distance):
    exact = num_buckets // 2
    if distance < exact:
        return distance
    share = math.log(distance / exact) / math.log(max_distance / exact)
    # A border that is met exactly belongs to the bucket above it.
    return min(exact + int(share * (num_buckets - exact) + 1e-9), num_buckets - 1)


def probs(queries, key_sets, scale=None, positions=None):
    """float64 [batch, rows, heads, keys of all sets]."""
    queries = tf.cast(queries, tf.float64)
    scale = 1 / math.sqrt(queries.shape[-1]) if scale is None else scale
    logits = [_logits(queries, key_set, scale, positions) for key_set in key_sets]
    return tf.nn.softmax(tf.concat(logits, -1), axis=-1)


def attend(queries, key_sets, **options):
    """float64 [batch, rows, heads, value_size]."""
    return outputs(probs(queries, key_sets, **options), key_sets)


def outputs(weights, key_sets):
    """The values, weighted."""
    values = tf.concat([tf.cast(key_set.values, tf.float64) for key_set in key_sets], 1)
    return tf.einsum("bqhk,bkhs->bqhs", weights, values)


def _logits(queries, key_set, scale, positions):
    if key_set.queries is not None:
        queries = tf.cast(key_set.queries, tf.float64)
    batch, rows, heads, _ = queries.shape
    num_keys = get_shape_list(key_set.keys)[1]
    exists = np.zeros([batch, rows, num_keys], bool)
    allowed, ids = exists.copy(), np.zeros(exists.shape, int)
    for at in np.ndindex(exists.shape):
        row, place, key = at
        query = place if positions is None else int(positions[place])
        exists[at] = sees(key_set.reach, query, key)
        if exists[at]:
            allowed[at] = all(allows(m, key_set.reach, row, query, key) for m in key_set.masks)
            if isinstance(key_set.labels, labels.TableLabels):
                ids[at] = label(key_set.labels, key_set.reach, row, query, key)
    logits = tf.einsum("bqhs,bkhs->bqhk", queries, tf.cast(key_set.keys, tf.float64))
    if isinstance(key_set.labels, labels.TableLabels):
        tables = key_set.labels.tables
        if tables.embeddings is not None:
            by_label = tf.einsum("bqhs,lhs->bqlh", queries, tf.cast(tables.embeddings, tf.float64))
            logits += tf.transpose(tf.gather(by_label, ids, batch_dims=2), [0, 1, 3, 2])
        if tables.biases is not None:
            biases = tf.gather(tf.cast(tables.biases, tf.float64), ids)
            logits += tf.transpose(biases, [0, 1, 3, 2])
    bias = np.where(exists, np.where(allowed, 0.0, masks.MASKED_LOGIT), -np.inf)
    logits = logits * scale + bias[:, :, np.newaxis]
    if isinstance(key_set.labels, labels.PairBiases):
        logits += _pair_biases(key_set, exists, heads)
    return logits


def _pair_biases(key_set, exists, heads):
    """float64 [batch, rows, heads, keys]; 0 where a pair does not exist."""
    values = tf.cast(key_set.labels.values.values, tf.float64)
    batch, rows, _ = exists.shape
    values = tf.broadcast_to(values, [batch, heads, rows, values.shape[-1]])
    columns = np.zeros(exists.shape, int)
    for row, query, key in np.argwhere(exists):
        columns[row, query, key] = column(key_set.labels.values, key_set.reach, query, key)
    by_head = np.repeat(columns[:, np.newaxis], heads, axis=1)
    by_pair = tf.gather(values, by_head, batch_dims=3)  # [batch, heads, rows, keys]
    by_pair = tf.where(exists[:, np.newaxis], by_pair, tf.zeros([], tf.float64))
    return tf.transpose(by_pair, [0, 2, 1, 3])
