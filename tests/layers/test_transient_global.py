"""LongT5's attention in windows and blocks, against a dense mask over all pairs."""

import math

import hypothesis
import numpy as np
import tensorflow as tf
from hypothesis import strategies as st

from etcmodel.layers.attention.transient_global import TransientGlobalAttention
from etcmodel.ops import transient_blocks

BUCKETS, MAX_DISTANCE = 8, 20


def bucket(offset):
    """T5's bucket of the way from a query to a key."""
    half, exact, distance = BUCKETS // 2, BUCKETS // 4, abs(offset)
    number = distance
    if distance >= exact:
        share = math.log(distance / exact) / math.log(MAX_DISTANCE / exact)
        number = min(half - 1, exact + int(share * (half - exact)))
    return number + half * (offset > 0)


def dense(layer, inputs, tables, mask, numbers):
    """The layer's outputs by attention over all tokens and blocks at once, in NumPy."""
    length, num_heads = inputs.shape[1], layer.num_heads
    num_blocks = length // layer.global_block_size if layer.global_block_size else 0
    sums = np.zeros([len(inputs), num_blocks, inputs.shape[2]])
    for row, place in zip(*np.nonzero(numbers >= 0), strict=True):
        if num_blocks:
            sums[row, numbers[row, place]] += inputs[row, place]
    if num_blocks:
        sums /= np.sqrt((sums**2).mean(-1, keepdims=True) + layer.epsilon)
        sums *= layer.block_norm.weights[0].numpy()
    everything = np.concatenate([inputs, sums], axis=1)
    places, blocks = np.arange(length), np.arange(num_blocks)
    offsets = np.concatenate(
        [
            np.broadcast_to(places - places[:, np.newaxis], [len(inputs), length, length]),
            blocks - numbers[..., np.newaxis],
        ],
        axis=2,
    )
    is_token = np.broadcast_to(mask[:, np.newaxis] > 0, [len(inputs), length, length])
    near = np.abs(offsets[..., :length]) <= layer.local_radius
    is_block = blocks <= numbers.max(axis=1)[:, np.newaxis, np.newaxis]
    is_block = np.broadcast_to(is_block, [len(inputs), length, num_blocks])
    exists = np.concatenate([near & is_token, is_block], axis=2)
    exists |= (mask == 0)[..., np.newaxis]  # Any: what padding sees is not compared.
    exists = exists[:, np.newaxis]
    labels = np.vectorize(bucket)(offsets)
    biases = np.concatenate(
        [tables[0][labels[..., :length]], tables[1][labels[..., length:]]], axis=2
    ).transpose(0, 3, 1, 2)

    def heads(x, projection):
        x = x @ projection.kernel.numpy()
        return x.reshape(*x.shape[:2], num_heads, -1).transpose(0, 2, 1, 3)

    queries, keys = heads(inputs, layer.query), heads(everything, layer.key)
    logits = np.where(exists, queries @ keys.swapaxes(2, 3) + biases, -np.inf)
    probs = np.exp(logits - logits.max(-1, keepdims=True))
    probs /= probs.sum(-1, keepdims=True)
    mixed = (probs @ heads(everything, layer.value)).transpose(0, 2, 1, 3)
    return mixed.reshape(*inputs.shape[:2], -1) @ layer.output_projection.kernel.numpy()


@hypothesis.settings(max_examples=20)
@hypothesis.given(
    length=st.integers(1, 70),
    radius=st.integers(1, 30),
    block_size=st.none() | st.integers(1, 12),
    seed=st.integers(0, 2**16),
)
def test_it_is_attention_under_a_dense_mask(length, radius, block_size, seed):
    rng = np.random.default_rng(seed)
    layer = TransientGlobalAttention(
        8, 2, local_radius=radius, global_block_size=block_size, max_distance=MAX_DISTANCE
    )
    inputs = rng.normal(size=(2, length, 8)).astype(np.float32)
    tables = [rng.normal(size=(BUCKETS, 2)).astype(np.float32) for _ in range(2)]
    mask = (rng.random((2, length)) < 0.8).astype(np.int32)
    mask[:, 0] = 1
    numbers = transient_blocks.block_numbers(tf.constant(mask), block_size or length + 1)
    arguments = {"bias_table": tables[0], "att_mask": mask}
    if block_size:
        arguments |= {"block_bias_table": tables[1], "block_numbers": numbers}
    layer(inputs, **arguments)
    for variable in layer.weights:
        variable.assign(rng.normal(size=variable.shape, scale=0.5))
    found, wanted = layer(inputs, **arguments), dense(layer, inputs, tables, mask, numbers.numpy())
    np.testing.assert_allclose(found.numpy()[mask > 0], wanted[mask > 0], atol=5e-5)
