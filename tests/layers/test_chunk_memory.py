"""Attention of chunks and a memory, against a dense mask over all pairs."""

import hypothesis
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import strategies as st

from etcmodel.layers.attention.chunk_memory import ChunkMemoryAttention


def dense(layer, inputs, memory, mask, memory_mask):
    """The layer's outputs by attention over all pairs, in NumPy."""
    length, num_memory = inputs.shape[1], memory.shape[1]
    everything = np.concatenate([inputs, memory], 1).astype(np.float64)
    chunks = (np.arange(length) + layer.shift) // (layer.chunk_size or 10**6)
    exists = np.ones([length + num_memory] * 2, bool)
    exists[:length, :length] = chunks[:, np.newaxis] == chunks
    allowed = np.concatenate([mask, memory_mask], 1)[:, np.newaxis, np.newaxis] > 0

    def attended(query, key, value, output):
        def heads(projection):
            x = everything @ projection.kernel.numpy() + projection.bias.numpy()
            x = x.reshape(*x.shape[:2], layer.num_heads, layer.size_per_head)
            return x.transpose(0, 2, 1, 3)

        logits = heads(query) @ heads(key).swapaxes(2, 3) / np.sqrt(layer.size_per_head)
        logits = np.where(exists, logits + np.where(allowed, 0, -10000.0), -np.inf)
        probs = np.exp(logits - logits.max(-1, keepdims=True))
        probs /= probs.sum(-1, keepdims=True)
        mixed = (probs @ heads(value)).transpose(0, 2, 1, 3).reshape(*everything.shape[:2], -1)
        return mixed @ output.kernel.numpy() + output.bias.numpy()

    tokens = attended(layer.query, layer.key, layer.value, layer.output_projection)
    of_memory = attended(
        layer.memory_query,
        layer.memory_key,
        layer.memory_value,
        layer.memory_output_projection,
    )
    return tokens[:, :length], of_memory[:, length:]


@hypothesis.settings(max_examples=25)
@hypothesis.given(
    length=st.integers(1, 90),
    num_memory=st.integers(1, 6),
    chunk=st.tuples(st.integers(1, 40), st.integers(0, 39)).filter(lambda x: x[1] < x[0]),
    own=st.tuples(st.booleans(), st.booleans()),
    seed=st.integers(0, 2**16),
)
def test_it_is_attention_under_a_dense_mask(length, num_memory, chunk, own, seed):
    rng = np.random.default_rng(seed)
    layer = ChunkMemoryAttention(
        8,
        2,
        chunk_size=chunk[0],
        shift=chunk[1],
        use_bias=True,
        has_own_memory_projections=own[0],
        has_own_memory_output=own[1],
    )
    inputs, memory = (rng.normal(size=(2, n, 8)).astype(np.float32) for n in (length, num_memory))
    masks = [(rng.random((2, n)) < 0.7).astype(np.int32) for n in (length, num_memory)]
    masks[1][:, 0] = 1
    layer(inputs, memory)
    for variable in layer.weights:
        variable.assign(rng.normal(size=variable.shape, scale=0.5))
    found = layer(inputs, memory, *masks)
    for one, wanted in zip(found, dense(layer, inputs, memory, *masks), strict=True):
        np.testing.assert_allclose(one, wanted, atol=2e-5)


@pytest.mark.parametrize("own", [(False, False), (True, False), (False, True), (True, True)])
def test_weights_of_its_own_are_what_it_says(own):
    layer = ChunkMemoryAttention(
        8, 2, chunk_size=3, has_own_memory_projections=own[0], has_own_memory_output=own[1]
    )
    layer(np.zeros((1, 4, 8), np.float32), np.zeros((1, 2, 8), np.float32))
    assert len(layer.weights) == 4 + 3 * own[0] + own[1]
    again = ChunkMemoryAttention.from_config(layer.get_config())
    assert again.get_config() == layer.get_config()


def test_without_a_memory_chunks_do_not_meet():
    layer = ChunkMemoryAttention(8, 2, chunk_size=3, shift=1)
    inputs = np.random.default_rng(0).normal(size=(1, 8, 8)).astype(np.float32)
    changed = np.array(inputs)
    changed[0, 3] += 1
    differs = np.abs(layer(inputs) - layer(changed)).max(-1)[0] > 1e-7
    assert np.flatnonzero(differs).tolist() == [2, 3, 4]
    assert tf.is_tensor(layer(inputs))
