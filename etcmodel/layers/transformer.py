"""Transformer layers over a long and a global input (paper, section 3)."""

import tf_keras

from etcmodel import tensor_utils
from etcmodel.layers import base, initializers, stack
from etcmodel.layers.attention import FusedGlobalLocalAttention, RelativeAttention
from etcmodel.layers.attention.side_inputs import pairs_of
from etcmodel.ops.structure import GlobalLocalStructure

__all__ = ["GlobalLocalTransformerLayers", "RelativeTransformerLayers"]


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class RelativeTransformerLayers(stack.TransformerStack):
    """Transformer layers with full relative attention over one input.

    Args:
        hidden_size: int. Size of the input and output.
        num_hidden_layers: int, at least 1.
        num_attention_heads: int.
        intermediate_size: int. Feed-forward units; by default 4 times the hidden size.
        hidden_act: function or name. Feed-forward activation.
        hidden_dropout_prob: float. Dropout rate of the output of attention and feed-forward layers.
        attention_probs_dropout_prob: float. Dropout rate of attention probabilities.
        initializer_range: float. Standard deviation of the initial weights.
        relative_vocab_size: int or None. Number of relative labels; None for no labels.
        use_pre_activation_order: bool. See `ResidualBlock`.
        use_one_hot_lookup: bool. Whether to look up labels by matrix products.
        name: name of the layer.
    Call args:
        inputs: float [batch, seq_len, hidden_size].
        att_mask: 0/1 int or bool [batch, seq_len, seq_len], or None.
        relative_att_ids: int [batch, seq_len, seq_len], or None.
        training: bool.
    Returns:
        float [batch, seq_len, hidden_size].
    Raises:
        ValueError: if a number is out of range.

    >>> from etcmodel import layers
    >>> transformer = layers.RelativeTransformerLayers(8, 1, num_attention_heads=2)
    >>> transformer(tf.zeros([1, 6, 8])).shape
    TensorShape([1, 6, 8])
    """

    def __init__(
        self,
        hidden_size,
        num_hidden_layers,
        num_attention_heads,
        intermediate_size=None,
        hidden_act=tensor_utils.gelu,
        hidden_dropout_prob=0.1,
        attention_probs_dropout_prob=0.1,
        initializer_range=0.02,
        relative_vocab_size=None,
        use_pre_activation_order=False,
        use_one_hot_lookup=False,
        name="relative_transformer_layers",
        **kwargs,
    ):
        super().__init__(
            num_hidden_layers,
            num_attention_heads,
            hidden_act=hidden_act,
            hidden_dropout_prob=hidden_dropout_prob,
            attention_probs_dropout_prob=attention_probs_dropout_prob,
            initializer_range=initializer_range,
            use_pre_activation_order=use_pre_activation_order,
            name=name,
            **kwargs,
        )
        base.check_at_least_1(hidden_size=hidden_size)
        self.hidden_size = hidden_size
        self.intermediate_size = intermediate_size or 4 * hidden_size
        self.relative_vocab_size = relative_vocab_size
        self.use_one_hot_lookup = use_one_hot_lookup
        self.make_blocks()

    @property
    def streams(self):
        return (stack.Stream("tokens", self.hidden_size, self.intermediate_size),)

    @property
    def att_size_per_head(self):
        """int. Size of each attention head."""
        return self.hidden_size // self.num_attention_heads

    def make_attention(self, index):
        return RelativeAttention(
            self.hidden_size,
            self.num_attention_heads,
            relative_vocab_size=self.relative_vocab_size,
            att_dropout_prob=self.attention_probs_dropout_prob,
            initializer=initializers.fresh(self.initializer),
            use_one_hot_lookup=self.use_one_hot_lookup,
            dtype=self.dtype_policy,
        )

    def call(self, inputs, att_mask=None, relative_att_ids=None, training=None):
        return super().call(inputs, training, att_mask=att_mask, relative_att_ids=relative_att_ids)

    def get_config(self):
        config = {**super().get_config(), **base.config_entries(self, __class__)}
        del config["grad_checkpointing_period"]  # Not an argument of this layer.
        return config


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class GlobalLocalTransformerLayers(stack.TransformerStack):
    """Transformer layers over a long and a global input.

    Args:
        long_hidden_size: int. Size of the long input and output.
        global_hidden_size: int. Size of the global input and output.
        num_hidden_layers: int, at least 1.
        num_attention_heads: int.
        local_radius: int, at least 1. Long tokens attended to on each side.
        att_size_per_head: int. By default the hidden size divided by the number of heads.
        long_intermediate_size: int. Feed-forward units; by default 4 times the hidden size.
        global_intermediate_size: int. Likewise.
        hidden_act: function or name. Feed-forward activation.
        hidden_dropout_prob: float. Dropout rate of the output of attention and feed-forward layers.
        attention_probs_dropout_prob: float. Dropout rate of attention probabilities.
        initializer_range: float. Standard deviation of the initial weights.
        relative_vocab_size: int or None. Number of relative labels; None for no labels.
        share_feed_forward_params: bool. Whether the long and the global input share feed-forward
            layers.
        share_kv_projections: bool. See `FusedGlobalLocalAttention`.
        share_qkv_projections: likewise.
        share_att_output_projection: likewise.
        use_pre_activation_order: bool. See `ResidualBlock`.
        use_one_hot_lookup: bool. Whether to look up labels by matrix products.
        grad_checkpointing_period: int. 0 keeps all activations for the backward pass; n keeps
            those between every n layers and recomputes the others.
        name: name of the layer.
        layer_norm_epsilon: float. What layer normalization adds to the variance.
    Call args: see `FusedGlobalLocalAttention`.
    Returns:
        [long_output, global_output], shaped as the inputs.
    Raises:
        ValueError: if layers of different sizes are to be shared, or a number is out of range.

    >>> from etcmodel import layers
    >>> transformer = layers.GlobalLocalTransformerLayers(8, 8, 1, 2, local_radius=1)
    >>> long_output, global_output = transformer(tf.zeros([1, 6, 8]), tf.zeros([1, 2, 8]))
    >>> long_output.shape, global_output.shape
    (TensorShape([1, 6, 8]), TensorShape([1, 2, 8]))
    """

    def __init__(
        self,
        long_hidden_size,
        global_hidden_size,
        num_hidden_layers,
        num_attention_heads,
        local_radius,
        att_size_per_head=None,
        long_intermediate_size=None,
        global_intermediate_size=None,
        hidden_act=tensor_utils.gelu,
        hidden_dropout_prob=0.1,
        attention_probs_dropout_prob=0.1,
        initializer_range=0.02,
        relative_vocab_size=None,
        share_feed_forward_params=True,
        share_kv_projections=False,
        share_qkv_projections=True,
        share_att_output_projection=False,
        use_pre_activation_order=False,
        use_one_hot_lookup=False,
        grad_checkpointing_period=0,
        name="global_local_transformer_layers",
        layer_norm_epsilon=1e-12,
        **kwargs,
    ):
        super().__init__(
            num_hidden_layers,
            num_attention_heads,
            hidden_act=hidden_act,
            hidden_dropout_prob=hidden_dropout_prob,
            attention_probs_dropout_prob=attention_probs_dropout_prob,
            initializer_range=initializer_range,
            use_pre_activation_order=use_pre_activation_order,
            grad_checkpointing_period=grad_checkpointing_period,
            layer_norm_epsilon=layer_norm_epsilon,
            name=name,
            **kwargs,
        )
        base.check_at_least_1(
            long_hidden_size=long_hidden_size, global_hidden_size=global_hidden_size
        )
        if att_size_per_head is not None:
            base.check_at_least_1(att_size_per_head=att_size_per_head)
        self.long_hidden_size = long_hidden_size
        self.global_hidden_size = global_hidden_size
        self.local_radius = local_radius
        self._given_att_size_per_head = att_size_per_head
        self.long_intermediate_size = long_intermediate_size or 4 * long_hidden_size
        self.global_intermediate_size = global_intermediate_size or 4 * global_hidden_size
        self.relative_vocab_size = relative_vocab_size
        self.share_feed_forward_params = share_feed_forward_params
        self.share_kv_projections = share_kv_projections
        self.share_qkv_projections = share_qkv_projections
        self.share_att_output_projection = share_att_output_projection
        self.use_one_hot_lookup = use_one_hot_lookup
        self._make_layers()

    def _make_layers(self):
        if self.share_feed_forward_params:
            self.check_shared_feed_forward()
        self.fused_att_layers = self.attention_blocks("fused_att_layer", num_streams=2)
        if self.share_feed_forward_params:
            self.long_feed_forward_layers = self.feed_forward_blocks()
            self.global_feed_forward_layers = self.long_feed_forward_layers
        else:
            self.long_feed_forward_layers = self.feed_forward_blocks("long_feed_forward_layer", 0)
            self.global_feed_forward_layers = self.feed_forward_blocks(
                "global_feed_forward_layer", 1
            )

    @property
    def streams(self):
        return (
            stack.Stream("long", self.long_hidden_size, self.long_intermediate_size),
            stack.Stream("global", self.global_hidden_size, self.global_intermediate_size),
        )

    @property
    def att_size_per_head(self):
        """int. Size of each head of the long input's attention.

        The global input has the same, unless hidden sizes differ and no size was given.
        """
        return self._given_att_size_per_head or self.long_hidden_size // self.num_attention_heads

    def make_attention(self, index):
        per_head = self._given_att_size_per_head
        total_size = None if per_head is None else per_head * self.num_attention_heads
        return FusedGlobalLocalAttention(
            self.long_hidden_size,
            self.global_hidden_size,
            self.num_attention_heads,
            self.local_radius,
            long_total_att_size=total_size,
            global_total_att_size=total_size,
            relative_vocab_size=self.relative_vocab_size,
            att_dropout_prob=self.attention_probs_dropout_prob,
            initializer=initializers.fresh(self.initializer),
            share_kv_projections=self.share_kv_projections,
            share_qkv_projections=self.share_qkv_projections,
            share_att_output_projection=self.share_att_output_projection,
            use_one_hot_lookup=self.use_one_hot_lookup,
            dtype=self.dtype_policy,
        )

    def steps(self, index):
        return (
            stack.Step(self.fused_att_layers[index], streams=(0, 1), options="attention"),
            stack.Step(self.long_feed_forward_layers[index], streams=(0,)),
            stack.Step(self.global_feed_forward_layers[index], streams=(1,)),
        )

    def call(
        self,
        long_input,
        global_input,
        l2l_att_mask=None,
        g2g_att_mask=None,
        l2g_att_mask=None,
        g2l_att_mask=None,
        l2l_relative_att_ids=None,
        g2g_relative_att_ids=None,
        l2g_relative_att_ids=None,
        g2l_relative_att_ids=None,
        att_implementation="auto",
        training=None,
        structure=None,
    ):
        pairs = pairs_of(
            structure,
            l2l_att_mask,
            g2g_att_mask,
            l2g_att_mask,
            g2l_att_mask,
            l2l_relative_att_ids,
            g2g_relative_att_ids,
            l2g_relative_att_ids,
            g2l_relative_att_ids,
            relative_vocab_size=self.relative_vocab_size,
        )
        if isinstance(pairs, GlobalLocalStructure):
            pairs = pairs.with_pairs(
                self.local_radius
            )  # Here, so that it is not computed again in every layer.
        options = {"structure": pairs, "att_implementation": att_implementation}
        return self.run([long_input, global_input], training, attention=options)

    def get_config(self):
        return {
            **super().get_config(),
            **base.config_entries(self, __class__),
            "att_size_per_head": self._given_att_size_per_head,
        }
