"""LongT5's encoder attention: a window, and summaries of blocks of tokens (Guo et al. 2022)."""

import tensorflow as tf
import tf_keras

from etcmodel import tensor_utils
from etcmodel.layers import base, normalization, sublayers
from etcmodel.layers.attention.projected import ProjectedAttention
from etcmodel.ops import offsets, transient_blocks
from etcmodel.ops.key_sets import KeySet
from etcmodel.ops.labels import LabelTables, OffsetLabels, RowOffsetLabels
from etcmodel.ops.masks import KeyMask
from etcmodel.ops.reach import Window


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class TransientGlobalAttention(ProjectedAttention):
    """LongT5's attention: each token attends to those within a radius, and to sums of blocks.

    The sum of each block is normalized; without blocks, attention is local only. Logits are
    unscaled unless a scale is given, and have T5's biases by logarithmic buckets: of the distance
    to a token, and of the number of blocks to another block.

    Args:
        hidden_size, num_heads, size_per_head, **kwargs: see `ProjectedAttention`.
        local_radius: int, at least 1. Tokens attended to on each side.
        global_block_size: int or None. Tokens per block; None for no blocks (local attention).
        max_distance: int. The last bucket is for tokens, or blocks, at this distance or farther.
        epsilon: float. Added in the normalization of the sums.
    Call args:
        inputs: float [batch, length, hidden_size].
        bias_table: float [num_buckets, num_heads].
        block_bias_table: float [num_buckets, num_heads], or None without blocks.
        att_mask: 0/1 int [batch, length] or None. 0 for padding, which no token attends to.
        block_numbers: int32 [batch, length], of `ops.transient_blocks.block_numbers`, or None
            without blocks.
        training: bool.
    Returns:
        float [batch, length, hidden_size].
    """

    def __init__(
        self,
        hidden_size,
        num_heads,
        size_per_head=None,
        *,
        local_radius=127,
        global_block_size=None,
        max_distance=128,
        epsilon=1e-6,
        scale=1.0,
        **kwargs,
    ):
        super().__init__(hidden_size, num_heads, size_per_head, scale=scale, **kwargs)
        self.local_radius = local_radius
        self.global_block_size = global_block_size
        self.max_distance = max_distance
        self.epsilon = epsilon
        self.block_norm = None
        if global_block_size is not None:
            self.block_norm = normalization.RmsNormalization(
                epsilon, name="block_norm", dtype=self.dtype_policy
            )

    def build(self, input_shape):
        if self.block_norm is not None:
            hidden = tf.TensorShape([None, None, self.hidden_size])
            sublayers.build_sublayer(self.block_norm, hidden)
        super().build(input_shape)

    def call(
        self,
        inputs,
        bias_table,
        block_bias_table=None,
        att_mask=None,
        block_numbers=None,
        training=None,
    ):
        buckets = offsets.LogBuckets(tensor_utils.get_shape_list(bias_table)[0], self.max_distance)
        around = KeySet(
            *self.keys_values(inputs),
            reach=Window(self.local_radius, self.local_radius),
            masks=() if att_mask is None else (KeyMask(att_mask),),
            labels=OffsetLabels(LabelTables(biases=bias_table), buckets),
        )
        blocks = []
        if self.block_norm is not None:
            blocks = self._blocks(inputs, LabelTables(biases=block_bias_table), block_numbers)
        return self.attend(self.split(self.query(inputs)), [around, *blocks], training)

    def _blocks(self, inputs, tables, numbers):
        """The key set of the blocks; none if the input is known to be shorter than one."""
        num_blocks = tensor_utils.get_shape_list(inputs)[1] // self.global_block_size
        if isinstance(num_blocks, int) and not num_blocks:
            return []
        sums = transient_blocks.block_sums(inputs, numbers, num_blocks)
        num_buckets = tensor_utils.get_shape_list(tables.biases)[0]
        return [
            KeySet(
                *self.keys_values(self.block_norm(sums)),
                masks=(KeyMask(transient_blocks.is_used(numbers, num_blocks)),),
                labels=RowOffsetLabels(
                    tables, offsets.LogBuckets(num_buckets, self.max_distance), numbers
                ),
            )
        ]

    def get_config(self):
        return {**super().get_config(), **base.config_entries(self, __class__)}
