"""Attention to projected keys and values that are never computed: few queries, many keys.

The projections move to the queries and to the outputs. For a query q and an input x
`q · (x W_k + b_k) = (W_k q) · x + q · b_k`, whose last part is the same for all keys and leaves the
softmax as it is; and since probabilities sum to 1, `sum p (x W_v + b_v) = (sum p x) W_v + b_v`.
"""

import math

import tensorflow as tf

from etcmodel.ops import blockwise
from etcmodel.ops.key_sets import KeySet
from etcmodel.ops.shapes import get_shape_list

__all__ = ["attend", "most_queries"]


def most_queries(num_keys, num_heads, input_size):
    """The most queries for which `attend` is to be used: it clearly takes less time for them.

    Half of those for which it takes as many operations as projections do.

    Args:
        num_keys: int or scalar tensor.
        num_heads: int.
        input_size: int, the size of all heads, too.
    Returns:
        int or scalar tensor.
    """
    return num_keys * input_size // (2 * ((num_heads - 1) * num_keys + input_size))


@tf.autograph.experimental.do_not_convert
def attend(queries, inputs, key_kernel, value_kernel, value_bias, *, masks=()):
    """Attention of each query to keys and values that are projections of the inputs.

    The biases of keys change nothing. There is no dropout of probabilities: those that are left
    would not sum to 1.

    Args:
        queries: float [batch, num_rows, num_heads, size_per_head].
        inputs: float [batch, num_keys, input_size].
        key_kernel: float [input_size, num_heads * size_per_head].
        value_kernel: float [input_size, num_heads * value_size_per_head].
        value_bias: float [num_heads * value_size_per_head].
        masks: tuple of `masks.Mask`, that are the same for all queries.
    Returns:
        float [batch, num_rows, num_heads, value_size_per_head].
    """
    batch, rows, num_heads, size = get_shape_list(queries)
    input_size = inputs.shape[-1]
    key_kernel, value_kernel = (
        tf.reshape(x, [input_size, num_heads, -1]) for x in (key_kernel, value_kernel)
    )
    folded = tf.einsum("brhs,ihs->brhi", queries, key_kernel)
    # The heads become queries of one head that sees the inputs.
    folded = tf.reshape(folded, [batch, rows * num_heads, 1, input_size])
    keys = inputs[:, :, tf.newaxis]
    mixed = blockwise.attend(folded, [KeySet(keys, keys, masks=masks)], scale=1 / math.sqrt(size))
    mixed = tf.reshape(mixed, [batch, rows, num_heads, input_size])
    outputs = tf.einsum("brhi,ihs->brhs", mixed, value_kernel)
    return outputs + tf.reshape(value_bias, [num_heads, -1])
