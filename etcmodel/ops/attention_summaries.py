"""Summaries of attention probabilities, computed stepwise in a graph, never for all pairs at once.

No more logits exist at a time than in `blockwise.attend`. The keys of all sets are numbered
consecutively: those of the second set follow those of the first.
"""

import tensorflow as tf

from etcmodel.ops.computation import computation_of, run_steps
from etcmodel.ops.shapes import get_shape_list

_NONE = -1


def top_probs(queries, key_sets, most_keys, *, scale=None, query_positions=None, tiling=None):
    """Finds the keys that each query attends to most, averaged over its heads.

    Args:
        queries: float [batch, num_rows, num_heads, size_per_head].
        key_sets: list of `key_sets.KeySet`.
        most_keys: int. How many keys to keep for each query.
        scale, query_positions, tiling: see `blockwise.attend`.
    Returns:
        (keys, probs): int32 and float32 [batch, num_rows, most_keys], the most probable first. If
        fewer keys have a probability above 0, the rest is -1 and 0.
    """
    computation, arguments = _computation(queries, key_sets, scale, query_positions, tiling)
    tiles, starts = computation.tiles, _starts(key_sets)

    def run(number):
        step = tiles.step(number)
        found, keys = [], []
        for view, start, probs in zip(
            computation.views, starts, computation.probs(step, *arguments), strict=True
        ):
            probs = tf.reduce_mean(probs, axis=0)  # [batch, tiles, rows, window]
            ids = _ids(view, step, start)[tf.newaxis, :, tf.newaxis]
            keys.append(tf.broadcast_to(ids, tf.shape(probs)))
            found.append(tf.where(ids >= 0, probs, 0.0))
        spare = [[0, 0]] * 3 + [[0, most_keys]]  # There may be fewer keys than requested.
        best, places = tf.math.top_k(tf.pad(tf.concat(found, -1), spare), most_keys)
        keys = tf.gather(tf.pad(tf.concat(keys, -1), spare), places, batch_dims=3)
        return [_by_row(tf.where(best > 0, keys, _NONE)), _by_row(best)], []

    length = tiles.step_rows if isinstance(tiles.step_rows, int) else None
    shape = [queries.shape[0], length, most_keys]
    specs = [tf.TensorSpec(shape, dtype) for dtype in (tf.int32, tf.float32)]
    stacked, _ = run_steps(run, tiles.num_steps, specs)
    return tuple(_restored(x, tiles) for x in stacked)


def mean_probs(queries, key_sets, weights, *, scale=None, query_positions=None, tiling=None):
    """Computes what some queries attend to together: the weighted sum of their probabilities.

    Args:
        queries, key_sets, scale, query_positions, tiling: see `top_probs`.
        weights: float32 [batch, num_rows]. The weight of each query; 0 for queries to ignore.
    Returns:
        float32 [batch, num_heads, num_keys of all sets].
    """
    computation, arguments = _computation(queries, key_sets, scale, query_positions, tiling)
    batch, _, num_heads, _ = get_shape_list(queries)
    tiles, arranged = computation.tiles, computation.tiles.arrange(weights)

    def run(number):
        step = tiles.step(number)
        of_rows = step.rows_of(arranged)  # [batch, tiles, rows]
        all_probs = computation.probs(step, *arguments)
        return [], [
            _sums_by_key(tf.einsum("hbtrk,btr->tkhb", probs, of_rows), _ids(view, step, 0), keys)
            for view, keys, probs in zip(computation.views, sizes, all_probs, strict=True)
        ]

    sizes = [key_set.num_keys for key_set in key_sets]
    zeros = [tf.zeros([keys, num_heads, batch]) for keys in sizes]
    _, sums = run_steps(run, tiles.num_steps, [], zeros)
    return tf.transpose(tf.concat(sums, 0), [2, 1, 0])


def _computation(queries, key_sets, *options):
    """(`Computation`, the arguments of its `probs` after the step)."""
    computation = computation_of(tf.convert_to_tensor(queries), key_sets, *options)
    return computation, computation.cast(queries, *computation.tensors())


def _starts(key_sets):
    """The number of the first key of each set."""
    starts = [0]
    for key_set in key_sets[:-1]:
        starts.append(starts[-1] + key_set.num_keys)
    return starts


def _ids(view, step, start):
    """int32 [tiles, window], or [1, window] where all tiles share the keys: the gathered keys.

    Padding is -1.
    """
    positions = view.positions(step)
    is_key = (positions >= 0) & (positions < view.num_keys)
    return tf.where(is_key, positions + start, _NONE)


def _sums_by_key(x, ids, num_keys):
    """Sums [tiles, window, num_heads, batch] by key: [num_keys, num_heads, batch]."""
    if ids.shape[0] == 1:
        x = tf.reduce_sum(x, axis=0, keepdims=True)
    shape = get_shape_list(x)
    flat = tf.reshape(x, [shape[0] * shape[1], *shape[2:]])
    return tf.math.unsorted_segment_sum(flat, tf.reshape(ids, [-1]), num_keys)


def _by_row(x):
    """[batch, tiles, rows, …] to [batch, tiles * rows, …]."""
    batch, num_tiles, rows, size = get_shape_list(x)
    return tf.reshape(x, [batch, num_tiles * rows, size])


def _restored(x, tiles):
    """[steps, batch, rows, size] to [batch, num_rows, size]."""
    num_steps, batch, rows, size = get_shape_list(x)
    x = tf.reshape(tf.transpose(x, [1, 0, 2, 3]), [batch, num_steps * rows, size])
    return tiles.restore(x)
