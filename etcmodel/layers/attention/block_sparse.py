"""BigBird's attention in blocks of tokens, with its projections (Zaheer et al. 2020)."""

import tf_keras

from etcmodel import tensor_utils
from etcmodel.layers import base
from etcmodel.layers.attention.projected import ProjectedAttention
from etcmodel.ops import block_sparse


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class BlockSparseAttention(ProjectedAttention):
    """Blocks attend to their neighbors, to the first and the last one, and to random ones.

    See `ops.block_sparse`. Inputs of up to `(5 + 2 * num_random_blocks) * block_size` tokens have
    full attention.

    Args:
        hidden_size, num_heads, size_per_head, **kwargs: see `ProjectedAttention`.
        block_size: int or None. Tokens per block; None: all attend to everything.
        num_random_blocks: int. Random blocks of each block.
        max_length: int. The longest input of the model, on which random blocks depend.
        layer_number: int. The seed of random blocks, and the layer's place among given ones.
        is_seeded_always: bool. Whether random blocks are the seeded ones not in training alone;
            otherwise all are the first block in evaluation.
    Call args:
        inputs: float [batch, length, hidden_size].
        token_mask: bool [batch, length] or None. False for padding.
        lengths: int32 [batch] or None. See `ops.block_sparse.attend`.
        random_blocks: int32 [num_layers, num_heads, number of blocks - 2, num_random_blocks], of
            all layers; or None for the layer's own.
        training: bool.
    Returns:
        float [batch, length, hidden_size].

    >>> from etcmodel.layers.attention.block_sparse import BlockSparseAttention
    >>> layer = BlockSparseAttention(8, num_heads=2, block_size=2, num_random_blocks=1)
    >>> layer(tf.zeros([1, 16, 8])).shape
    TensorShape([1, 16, 8])
    """

    def __init__(
        self,
        hidden_size,
        num_heads,
        size_per_head=None,
        *,
        block_size=64,
        num_random_blocks=3,
        max_length=4096,
        layer_number=0,
        is_seeded_always=False,
        **kwargs,
    ):
        super().__init__(hidden_size, num_heads, size_per_head, **kwargs)
        base.check_at_least_1(block_size=block_size or 1, max_length=max_length)
        self.block_size = block_size
        self.num_random_blocks = num_random_blocks
        self.max_length = max_length
        self.layer_number = layer_number
        self.is_seeded_always = is_seeded_always

    def call(self, inputs, token_mask=None, lengths=None, random_blocks=None, training=None):
        length = tensor_utils.get_shape_list(inputs)[1]
        attended = block_sparse.attend(
            self.split(self.query(inputs)),
            *self.keys_values(inputs),
            self.block_size,
            self.num_random_blocks,
            **self._pattern(length, lengths, random_blocks, training),
            token_mask=token_mask,
            dropout_rate=self.att_dropout_prob if training else 0.0,
        )
        return self.output_projection(self.merge(attended))

    def _pattern(self, length, lengths, random_blocks, training):
        """Arguments of `ops.block_sparse.attend` and `pair_counts`: dict."""
        has_random = self.block_size is not None and self.num_random_blocks > 0
        if random_blocks is not None:
            random_blocks = random_blocks[self.layer_number]
        elif has_random and (training or self.is_seeded_always):
            released = block_sparse.RELEASED_LENGTHS if lengths is None else ()
            options = (self.num_heads, self.block_size, self.num_random_blocks, self.max_length)
            random_blocks = block_sparse.seeded_blocks(
                self.layer_number, *options, length, released
            )
        return {"random_blocks": random_blocks, "lengths": lengths}

    def attention_probs(self, inputs, token_mask=None, **pattern):
        """Computes the probabilities of a call without dropout.

        Args: see the call.
        Returns:
            float32 [batch, num_heads, length, length]; see `ops.block_sparse.attention_probs`.
        """
        length = tensor_utils.get_shape_list(inputs)[1]
        queries, (keys, _) = self.split(self.query(inputs)), self.keys_values(inputs)
        counts = self.pair_counts(length, **pattern)
        return block_sparse.attention_probs(queries, keys, counts, token_mask)

    def pair_counts(self, length, lengths=None, random_blocks=None, training=None):
        """How often pairs of tokens count: see `ops.block_sparse.pair_counts`."""
        pattern = self._pattern(length, lengths, random_blocks, training)
        return block_sparse.pair_counts(length, self.block_size, self.num_random_blocks, **pattern)

    def get_config(self):
        return {**super().get_config(), **base.config_entries(self, __class__)}
