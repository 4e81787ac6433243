"""Attention in steps of tiles of queries, with a backward pass that recomputes probabilities.

Neither pass keeps more than one step's logits. The forward pass keeps, besides inputs and outputs,
the logarithm of each query's softmax normalizer. The backward pass recomputes the probabilities
from it, without another softmax. Dropout is seeded, so that both passes have the same mask. The key
sets define which pairs attend, and with which labels: this module knows no attention pattern.
"""

import dataclasses

import numpy as np
import tensorflow as tf

from etcmodel.ops import dropout as dropout_ops
from etcmodel.ops import interception
from etcmodel.ops.compilation import is_compiled_whole, traced_once
from etcmodel.ops.computation import computation_of
from etcmodel.ops.gradients import custom_gradient
from etcmodel.ops.key_sets import PreparedKeySet
from etcmodel.ops.shapes import get_shape_list
from etcmodel.ops.tiles import TILE_ROWS, Tiling, current_tiling, most_rows_together

__all__ = ["attend", "attention_probs", "probs_of_steps"]

# The number of pairs of a query and a key from which on tracing takes less time than twelve eager
# layers save.
_LEAST_EAGER_PAIRS = 1 << 21


@interception.interceptable
def attend(queries, key_sets, *, scale=None, query_positions=None, tiling=None, dropout_rate=0.0):
    """Attends from each query to the keys of all sets, in one softmax.

    Args:
        queries: float [batch, num_rows, num_heads, size_per_head].
        key_sets: list of `key_sets.KeySet`. If one of them is prepared, as for decoding, nothing is
            kept for a backward pass. Those known to have no keys are left out.
        scale: float. The factor by which logits are scaled. None: 1 / sqrt(size_per_head).
        query_positions: int32 [num_rows] or None. Positions of the queries among the keys, instead
            of 0, 1, …. It cannot be combined with reaches that gather keys by the position of the
            query.
        tiling: `tiles.Tiling`. None: `tiles.current_tiling()`.
        dropout_rate: float. Dropout rate of attention probabilities.
    Returns:
        float [batch, num_rows, num_heads, value_size_per_head].
    Raises:
        ValueError: if the key sets need the rows in different orders, or a reach needs as many keys
            as queries and their numbers differ; or, giving both shapes, if a set's own queries are
            known to be shaped otherwise than the call's.

    >>> from etcmodel.ops import blockwise, key_sets, reach
    >>> queries = keys = tf.zeros([1, 4, 1, 8])
    >>> window = key_sets.KeySet(keys, tf.eye(4)[None, :, None], reach.Window(left=1, right=0))
    >>> blockwise.attend(queries, [window])[0, :, 0].numpy()
    array([[1. , 0. , 0. , 0. ],
           [0.5, 0.5, 0. , 0. ],
           [0. , 0.5, 0.5, 0. ],
           [0. , 0. , 0.5, 0.5]], dtype=float32)
    """
    queries = tf.convert_to_tensor(queries)
    seed = dropout_ops.new_seed() if dropout_rate else None
    tiling = tiling or current_tiling()  # Determines what is traced once.
    return _attend(queries, key_sets, scale, query_positions, tiling, dropout_rate, seed)


def _is_large(queries, key_sets, *_):
    batch, num_rows, num_heads, _ = queries.shape
    keys = [min(x.num_keys, x.reach.keys_per_row(TILE_ROWS, x.num_keys)) for x in key_sets]
    return batch * num_rows * num_heads * sum(keys) >= _LEAST_EAGER_PAIRS


@traced_once(is_large=_is_large)
def _attend(queries, key_sets, scale, query_positions, tiling, *dropout):
    """`attend`; if a graph does not know the number of rows, it has tiles for short inputs, too.

    Otherwise a window of 512 costs as much for ten rows as for a thousand. XLA compiles for each
    length.
    """

    def attend_by(tiling, call):
        return call(queries, key_sets, scale, query_positions, tiling, *dropout)

    num_rows = get_shape_list(queries)[1]
    most = most_rows_together([key_set.reach for key_set in key_sets], tiling)
    if isinstance(num_rows, int) or most == 0 or is_compiled_whole():
        return attend_by(tiling, _attend_by_tiles)
    whole = dataclasses.replace(tiling, rows="all")
    # A branch's gradients need its tensors as arguments of a function of its own.
    alone = traced_once(_attend_by_tiles)
    return tf.cond(
        num_rows <= most, lambda: attend_by(whole, alone), lambda: attend_by(tiling, alone)
    )


def _attend_by_tiles(queries, key_sets, *options):
    # A second set costs passes over all pairs, also one that is empty, as without global tokens.
    empty = [isinstance(x.num_keys, int) and x.num_keys == 0 for x in key_sets]
    empty[0] &= not all(empty)
    unused = [x for x, is_empty in zip(key_sets, empty, strict=True) if is_empty]
    key_sets = [x for x, is_empty in zip(key_sets, empty, strict=True) if not is_empty]
    computation = computation_of(queries, key_sets, *options, by_heads=True)
    tensors = computation.tensors()
    if any(isinstance(key_set, PreparedKeySet) for key_set in key_sets):
        outputs, _ = computation.forward(*computation.cast(queries, *tensors))
        return tf.cast(outputs, queries.dtype)

    # The casts are inside, so that the backward pass keeps the uncast arguments, but the outputs
    # before rounding: gradients of labels are small differences of large sums.
    @custom_gradient
    def run(*arguments):
        used, others = arguments[: 1 + len(tensors)], arguments[1 + len(tensors) :]
        outputs, normalizers = computation.forward(*computation.cast(*used))

        def grad(gradient):
            # Delays the recomputation until it is needed; earlier, it would only use memory.
            with tf.control_dependencies([gradient]):
                gradients = computation.backward(
                    computation.cast(*used), outputs, normalizers, gradient
                )
            gradients = [tf.cast(x, of.dtype) for x, of in zip(gradients, used, strict=True)]
            return [*gradients, *map(tf.zeros_like, others)]

        return tf.cast(outputs, queries.dtype), grad

    return run(queries, *tensors, *(tensor for x in unused for tensor in x.tensors()))


@tf.autograph.experimental.do_not_convert
def attention_probs(queries, key_sets, *, scale=None, query_positions=None):
    """Computes the probabilities of all pairs at once, for inspection; equal to `attend`'s.

    Args:
        queries: float [batch, num_rows, num_heads, size_per_head].
        key_sets: list of `key_sets.KeySet`.
        scale: see `attend`.
        query_positions: see `attend`.
    Returns:
        list with float32 [batch, num_heads, num_rows, num_keys] for each key set; 0 for pairs that
        do not exist. For each query the probabilities of all sets sum to 1.
    """
    queries = tf.convert_to_tensor(queries)
    whole = Tiling(rows="all")
    computation = computation_of(queries, key_sets, scale, query_positions, whole)
    arguments = computation.cast(queries, *computation.tensors())
    probs = computation.probs(computation.tiles.step(0), *arguments)
    return [tf.transpose(tf.squeeze(x, 2), [1, 0, 2, 3]) for x in probs]


def probs_of_steps(queries, key_sets, rows, *, scale=None, query_positions=None, tiling=None):
    """Yields the probabilities of some rows, one of `attend`'s steps at a time, computed eagerly.

    No more logits exist at a time than in `attend`, and keys are gathered in the same way.

    Args:
        queries: float [batch, num_rows, num_heads, size_per_head].
        key_sets: list of `key_sets.KeySet`.
        rows: sequence of int. Positions of the requested rows.
        scale: see `attend`.
        query_positions: int32 [num_rows] or None.
        tiling: `tiles.Tiling`. None: `tiles.current_tiling()`.
    Yields:
        (positions, by_set) for each step with such rows, as arrays. positions: int [n], of the
        rows. by_set: a list with (keys, probs) for each key set: int [n, window], the positions
        of the gathered keys, where positions outside the sequence are padding; and float32
        [n, batch, num_heads, window].
    """
    queries = tf.convert_to_tensor(queries)
    computation = computation_of(queries, key_sets, scale, query_positions, tiling)
    arguments, tiles = computation.cast(queries, *computation.tensors()), computation.tiles
    for number in range(tiles.num_steps):
        step = tiles.step(0 if tiles.num_steps == 1 else tf.constant(number))
        positions = step.row_positions().numpy()
        found = np.isin(positions, rows)
        if found.any():
            by_set = []
            all_probs = computation.probs(step, *arguments)
            for view, probs in zip(computation.views, all_probs, strict=True):
                by_row = np.transpose(probs, [2, 3, 1, 0, 4])
                keys = view.positions(step).numpy()[:, np.newaxis]
                keys = np.broadcast_to(keys, [*found.shape, keys.shape[-1]])
                by_set.append((keys[found], by_row[found]))
            yield positions[found], by_set
