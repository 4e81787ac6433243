"""`BlockSparseAttention` as a layer: its settings, and wrong ones."""

import numpy as np
import pytest
import tensorflow as tf

from etcmodel.layers.attention.block_sparse import BlockSparseAttention

HIDDEN = tf.constant(np.random.default_rng(0).normal(size=[2, 21, 8]), tf.float32)


@pytest.mark.parametrize("use_output_bias", [None, True])
def test_it_is_made_again_from_its_config(use_output_bias):
    layer = BlockSparseAttention(
        8,
        2,
        block_size=2,
        num_random_blocks=1,
        max_length=30,
        layer_number=3,
        is_seeded_always=True,
        use_output_bias=use_output_bias,
    )
    expected = layer(HIDDEN)
    again = BlockSparseAttention.from_config(layer.get_config())
    again.build(None)
    again.set_weights(layer.get_weights())
    np.testing.assert_array_equal(again(HIDDEN), expected)
    assert len(layer.weights) == (5 if use_output_bias else 4)


def test_without_blocks_all_attend_to_all():
    full = BlockSparseAttention(8, 2, block_size=None)
    expected = full(HIDDEN)
    in_blocks = BlockSparseAttention(8, 2, block_size=2, num_random_blocks=1)
    in_blocks.build(None)
    in_blocks.set_weights(full.get_weights())
    assert np.abs(in_blocks(HIDDEN) - expected).max() > 1e-4
    np.testing.assert_allclose(in_blocks(HIDDEN[:, :14]), full(HIDDEN[:, :14]), atol=1e-6)


def test_wrong_sizes_are_named():
    with pytest.raises(ValueError, match="`block_size` must be at least 1|block_size=-1"):
        BlockSparseAttention(8, 2, block_size=-1)
    with pytest.raises(ValueError, match="`hidden_size` must be a multiple of `num_heads`"):
        BlockSparseAttention(8, 3)
