"""Attention to projected keys and values without computing them: few queries, many keys.

The projections move to the queries and to the outputs. For a query q and an input x
`q · (x W_k + b_k) = (W_k q) · x + q · b_k`, whose last part is the same for all keys and does not
change the softmax; and since probabilities sum to 1, `sum p (x W_v + b_v) = (sum p x) W_v + b_v`.
"""

import math

import tensorflow as tf

from etcmodel.ops import blockwise
from etcmodel.ops.key_sets import KeySet
from etcmodel.ops.shapes import get_shape_list

__all__ = ["attend_folded", "most_queries"]


def most_queries(num_keys, num_heads, input_size):
    """Returns the most queries for which `attend` should be used: it clearly takes less time then.

    That is half of the number for which it takes as many operations as projections.

    Args:
        num_keys: int or scalar tensor.
        num_heads: int.
        input_size: int, also the total size of all heads.
    Returns:
        int or scalar tensor.
    """
    return num_keys * input_size // (2 * ((num_heads - 1) * num_keys + input_size))


@tf.autograph.experimental.do_not_convert
def attend_folded(queries, inputs, key_kernel, value_kernel, value_bias, *, masks=()):
    """Attends from each query to keys and values that are projections of the inputs.

    The biases of keys have no effect. There is no dropout of probabilities: the remaining ones
    would not sum to 1.

    Args:
        queries: float [batch, num_rows, num_heads, size_per_head].
        inputs: float [batch, num_keys, input_size].
        key_kernel: float [input_size, num_heads * size_per_head].
        value_kernel: float [input_size, num_heads * value_size_per_head].
        value_bias: float [num_heads * value_size_per_head].
        masks: tuple of `masks.Mask`, the same for all queries.
    Returns:
        float [batch, num_rows, num_heads, value_size_per_head].
    """
    batch, rows, num_heads, size = get_shape_list(queries)
    input_size = inputs.shape[-1]
    key_kernel, value_kernel = (
        tf.reshape(x, [input_size, num_heads, -1]) for x in (key_kernel, value_kernel)
    )
    folded = tf.einsum("brhs,ihs->brhi", queries, key_kernel)
    # The heads become queries of a single head that attends to the inputs.
    folded = tf.reshape(folded, [batch, rows * num_heads, 1, input_size])
    keys = inputs[:, :, tf.newaxis]
    mixed = blockwise.attend(folded, [KeySet(keys, keys, masks=masks)], scale=1 / math.sqrt(size))
    mixed = tf.reshape(mixed, [batch, rows, num_heads, input_size])
    outputs = tf.einsum("brhi,ihs->brhs", mixed, value_kernel)
    return outputs + tf.reshape(value_bias, [num_heads, -1])
