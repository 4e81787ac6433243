"""Stacks of transformer layers (paper, section 3)."""

import tensorflow as tf
import tf_keras

from etcmodel import tensor_utils
from etcmodel.layers import base, helpers, recompute_grad
from etcmodel.layers.attention import FusedGlobalLocalAttention, RelativeAttention
from etcmodel.layers.wrappers import ResidualBlock

__all__ = ["GlobalLocalTransformerLayers", "RelativeTransformerLayers"]


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class GlobalLocalTransformerLayers(base.Layer):
    """Transformer layers over a long and a global input.

    Args:
        long_hidden_size: int. Size of the long input and output.
        global_hidden_size: int. Size of the global input and output.
        num_hidden_layers: int, at least 1.
        num_attention_heads: int.
        local_radius: int, at least 1. Long tokens visible on each side.
        att_size_per_head: int. By default the hidden size divided by the heads.
        long_intermediate_size: int. Feed-forward units; by default 4 times the hidden size.
        global_intermediate_size: int. Likewise.
        hidden_act: function or name. Feed-forward activation.
        hidden_dropout_prob: float. Dropout of the output of attention and feed-forward layers.
        attention_probs_dropout_prob: float. Dropout of attention probabilities.
        initializer_range: float. Standard deviation of the initial weights.
        relative_vocab_size: int or None. Number of relative labels; None for no labels.
        share_feed_forward_params: bool. One feed-forward layer for long and global.
        share_kv_projections: bool. See `FusedGlobalLocalAttention`, as the next two.
        share_qkv_projections: bool.
        share_att_output_projection: bool.
        use_pre_activation_order: bool. See `ResidualBlock`.
        use_one_hot_lookup: bool. Looks labels up by matrix products.
        grad_checkpointing_period: int. 0 keeps all activations for the backward pass; n keeps
            those between every n layers and recomputes the others.
        name: name of the layer.
    Call args:
        As `FusedGlobalLocalAttention`.
    Returns:
        [long_output, global_output], shaped as the inputs.
    Raises:
        ValueError: if sizes do not allow what is to be shared, or a number is out of range.
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
        **kwargs,
    ):
        super().__init__(name=name, **kwargs)
        helpers.check_at_least_1(
            long_hidden_size=long_hidden_size,
            global_hidden_size=global_hidden_size,
            num_hidden_layers=num_hidden_layers,
            num_attention_heads=num_attention_heads,
        )
        helpers.check_rates(
            hidden_dropout_prob=hidden_dropout_prob,
            attention_probs_dropout_prob=attention_probs_dropout_prob,
        )
        if att_size_per_head is not None:
            helpers.check_at_least_1(att_size_per_head=att_size_per_head)
        if grad_checkpointing_period < 0:
            raise ValueError(
                "`grad_checkpointing_period` must not be negative. Received: "
                f"{grad_checkpointing_period}"
            )
        self.long_hidden_size = long_hidden_size
        self.global_hidden_size = global_hidden_size
        self.num_hidden_layers = num_hidden_layers
        self.num_attention_heads = num_attention_heads
        self.local_radius = local_radius
        self._given_att_size_per_head = att_size_per_head
        self.initializer = helpers.default_initializer(initializer_range)
        self.long_intermediate_size = long_intermediate_size or 4 * long_hidden_size
        self.global_intermediate_size = global_intermediate_size or 4 * global_hidden_size
        self.hidden_act = tf_keras.activations.get(hidden_act)
        self.hidden_dropout_prob = hidden_dropout_prob
        self.attention_probs_dropout_prob = attention_probs_dropout_prob
        self.initializer_range = initializer_range
        self.relative_vocab_size = relative_vocab_size
        self.share_feed_forward_params = share_feed_forward_params
        self.share_kv_projections = share_kv_projections
        self.share_qkv_projections = share_qkv_projections
        self.share_att_output_projection = share_att_output_projection
        self.use_pre_activation_order = use_pre_activation_order
        self.use_one_hot_lookup = use_one_hot_lookup
        self.grad_checkpointing_period = grad_checkpointing_period
        self._check_feed_forward_sizes()
        layers = range(num_hidden_layers)
        self.fused_att_layers = [self._attention_layer(i) for i in layers]
        if share_feed_forward_params:
            self.long_feed_forward_layers = [self._feed_forward_layer("", i) for i in layers]
            self.global_feed_forward_layers = self.long_feed_forward_layers
        else:
            self.long_feed_forward_layers = [self._feed_forward_layer("long_", i) for i in layers]
            self.global_feed_forward_layers = [
                self._feed_forward_layer("global_", i) for i in layers
            ]

    def _check_feed_forward_sizes(self):
        long_sizes = (self.long_hidden_size, self.long_intermediate_size)
        global_sizes = (self.global_hidden_size, self.global_intermediate_size)
        if self.share_feed_forward_params and long_sizes != global_sizes:
            raise ValueError(
                "`share_feed_forward_params` needs equal long and global sizes. Received: (hidden, "
                f"intermediate) long {long_sizes}, global {global_sizes}"
            )

    @property
    def att_size_per_head(self):
        """int. Size of a head of the long input's attention, which is also the global input's
        unless hidden sizes differ and no size was given."""
        return self._given_att_size_per_head or self.long_hidden_size // self.num_attention_heads

    def _attention_layer(self, index):
        per_head = self._given_att_size_per_head
        total_size = None if per_head is None else per_head * self.num_attention_heads
        inner = FusedGlobalLocalAttention(
            self.long_hidden_size,
            self.global_hidden_size,
            self.num_attention_heads,
            self.local_radius,
            long_total_att_size=total_size,
            global_total_att_size=total_size,
            relative_vocab_size=self.relative_vocab_size,
            att_dropout_prob=self.attention_probs_dropout_prob,
            initializer=helpers.fresh(self.initializer),
            share_kv_projections=self.share_kv_projections,
            share_qkv_projections=self.share_qkv_projections,
            share_att_output_projection=self.share_att_output_projection,
            use_one_hot_lookup=self.use_one_hot_lookup,
            dtype=self.dtype_policy,
        )
        normalization = [
            helpers.LayerNormalization(
                axis=-1, epsilon=1e-12, name=f"layer_norm_{i}", dtype=self.dtype_policy
            )
            for i in range(2)
        ]
        return ResidualBlock(
            inner_layer=inner,
            normalization_layer=normalization,
            dropout_probability=self.hidden_dropout_prob,
            use_pre_activation_order=self.use_pre_activation_order,
            name=f"fused_att_layer_{index}",
            dtype=self.dtype_policy,
        )

    def _feed_forward_layer(self, prefix, index):
        is_global = prefix == "global_"
        return ResidualBlock(
            dropout_probability=self.hidden_dropout_prob,
            use_pre_activation_order=self.use_pre_activation_order,
            inner_intermediate_size=(
                self.global_intermediate_size if is_global else self.long_intermediate_size
            ),
            inner_activation=self.hidden_act,
            inner_kernel_initializer=helpers.fresh(self.initializer),
            name=f"{prefix}feed_forward_layer_{index}",
            dtype=self.dtype_policy,
        )

    def build(self, input_shape):
        long_shape = tf.TensorShape([None, None, self.long_hidden_size])
        global_shape = tf.TensorShape([None, None, self.global_hidden_size])
        for att, long_ff, global_ff in self._layers_in_order():
            helpers.build_sublayer(att, [long_shape, global_shape])
            helpers.build_sublayer(long_ff, long_shape)
            helpers.build_sublayer(global_ff, global_shape)
        super().build(input_shape)

    def _layers_in_order(self):
        return list(
            zip(
                self.fused_att_layers,
                self.long_feed_forward_layers,
                self.global_feed_forward_layers,
                strict=True,
            )
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
        options = {
            "l2l_att_mask": l2l_att_mask,
            "g2g_att_mask": g2g_att_mask,
            "l2g_att_mask": l2g_att_mask,
            "g2l_att_mask": g2l_att_mask,
            "l2l_relative_att_ids": l2l_relative_att_ids,
            "g2g_relative_att_ids": g2g_relative_att_ids,
            "l2g_relative_att_ids": l2g_relative_att_ids,
            "g2l_relative_att_ids": g2l_relative_att_ids,
            "structure": structure,
            "att_implementation": att_implementation,
            "training": training,
        }
        hidden = helpers.cast_all(self, long_input, global_input)
        layers, period = self._layers_in_order(), self.grad_checkpointing_period
        if period == 0:
            return _run_layers(layers, *hidden, options)
        for start in range(0, len(layers), period):
            hidden = _run_recomputed(layers[start : start + period], *hidden, options)
        return hidden

    def get_config(self):
        return {
            **super().get_config(),
            "long_hidden_size": self.long_hidden_size,
            "global_hidden_size": self.global_hidden_size,
            "num_hidden_layers": self.num_hidden_layers,
            "num_attention_heads": self.num_attention_heads,
            "local_radius": self.local_radius,
            "att_size_per_head": self._given_att_size_per_head,
            "long_intermediate_size": self.long_intermediate_size,
            "global_intermediate_size": self.global_intermediate_size,
            "hidden_act": tf_keras.activations.serialize(self.hidden_act),
            "hidden_dropout_prob": self.hidden_dropout_prob,
            "attention_probs_dropout_prob": self.attention_probs_dropout_prob,
            "initializer_range": self.initializer_range,
            "relative_vocab_size": self.relative_vocab_size,
            "share_feed_forward_params": self.share_feed_forward_params,
            "share_kv_projections": self.share_kv_projections,
            "share_qkv_projections": self.share_qkv_projections,
            "share_att_output_projection": self.share_att_output_projection,
            "use_pre_activation_order": self.use_pre_activation_order,
            "use_one_hot_lookup": self.use_one_hot_lookup,
            "grad_checkpointing_period": self.grad_checkpointing_period,
        }


@tf.autograph.experimental.do_not_convert  # Layers have no need of it; tracing is faster.
def _run_layers(layers, long_hidden, global_hidden, options):
    """Attention and feed-forward layers in turn: [long_output, global_output]."""
    training = options["training"]
    for attention, long_feed_forward, global_feed_forward in layers:
        long_hidden, global_hidden = attention([long_hidden, global_hidden], **options)
        long_hidden = long_feed_forward(long_hidden, training=training)
        global_hidden = global_feed_forward(global_hidden, training=training)
    return [long_hidden, global_hidden]


def _run_recomputed(layers, long_hidden, global_hidden, options):
    """As `_run_layers`; the backward pass computes the activations in between again."""

    def run(long_hidden, global_hidden):
        return _run_layers(layers, long_hidden, global_hidden, options)

    return recompute_grad.recompute_grad(run)(long_hidden, global_hidden)


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class RelativeTransformerLayers(base.Layer):
    """Transformer layers with full relative attention over one input.

    Args:
        hidden_size: int. Size of the input and output.
        num_hidden_layers: int, at least 1.
        num_attention_heads: int.
        intermediate_size: int. Feed-forward units; by default 4 times the hidden size.
        hidden_act: function or name. Feed-forward activation.
        hidden_dropout_prob: float. Dropout of the output of attention and feed-forward layers.
        attention_probs_dropout_prob: float. Dropout of attention probabilities.
        initializer_range: float. Standard deviation of the initial weights.
        relative_vocab_size: int or None. Number of relative labels; None for no labels.
        use_pre_activation_order: bool. See `ResidualBlock`.
        use_one_hot_lookup: bool. Looks labels up by matrix products.
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
        super().__init__(name=name, **kwargs)
        helpers.check_at_least_1(
            hidden_size=hidden_size,
            num_hidden_layers=num_hidden_layers,
            num_attention_heads=num_attention_heads,
        )
        helpers.check_rates(
            hidden_dropout_prob=hidden_dropout_prob,
            attention_probs_dropout_prob=attention_probs_dropout_prob,
        )
        self.hidden_size = hidden_size
        self.num_hidden_layers = num_hidden_layers
        self.num_attention_heads = num_attention_heads
        self.intermediate_size = intermediate_size or 4 * hidden_size
        self.hidden_act = tf_keras.activations.get(hidden_act)
        self.hidden_dropout_prob = hidden_dropout_prob
        self.attention_probs_dropout_prob = attention_probs_dropout_prob
        self.initializer_range = initializer_range
        self.relative_vocab_size = relative_vocab_size
        self.use_pre_activation_order = use_pre_activation_order
        self.use_one_hot_lookup = use_one_hot_lookup
        self.initializer = helpers.default_initializer(initializer_range)
        self.attention_layers = [self._attention_layer(i) for i in range(num_hidden_layers)]
        self.feed_forward_layers = [self._feed_forward_layer(i) for i in range(num_hidden_layers)]

    @property
    def att_size_per_head(self):
        """int. Size of a head."""
        return self.hidden_size // self.num_attention_heads

    def _attention_layer(self, index):
        inner = RelativeAttention(
            self.hidden_size,
            self.num_attention_heads,
            relative_vocab_size=self.relative_vocab_size,
            att_dropout_prob=self.attention_probs_dropout_prob,
            initializer=helpers.fresh(self.initializer),
            use_one_hot_lookup=self.use_one_hot_lookup,
            dtype=self.dtype_policy,
        )
        return self._residual(f"attention_layer_{index}", inner_layer=inner)

    def _feed_forward_layer(self, index):
        return self._residual(
            f"feed_forward_layer_{index}",
            inner_intermediate_size=self.intermediate_size,
            inner_activation=self.hidden_act,
            inner_kernel_initializer=helpers.fresh(self.initializer),
        )

    def _residual(self, name, **options):
        return ResidualBlock(
            dropout_probability=self.hidden_dropout_prob,
            use_pre_activation_order=self.use_pre_activation_order,
            name=name,
            dtype=self.dtype_policy,
            **options,
        )

    def build(self, input_shape):
        shape = tf.TensorShape([None, None, self.hidden_size])
        for attention, feed_forward in zip(
            self.attention_layers, self.feed_forward_layers, strict=True
        ):
            helpers.build_sublayer(attention, shape)
            helpers.build_sublayer(feed_forward, shape)
        super().build(input_shape)

    def call(self, inputs, att_mask=None, relative_att_ids=None, training=None):
        hidden = inputs
        for attention, feed_forward in zip(
            self.attention_layers, self.feed_forward_layers, strict=True
        ):
            hidden = attention(
                hidden, att_mask=att_mask, relative_att_ids=relative_att_ids, training=training
            )
            hidden = feed_forward(hidden, training=training)
        return hidden

    def get_config(self):
        return {
            **super().get_config(),
            "hidden_size": self.hidden_size,
            "num_hidden_layers": self.num_hidden_layers,
            "num_attention_heads": self.num_attention_heads,
            "intermediate_size": self.intermediate_size,
            "hidden_act": tf_keras.activations.serialize(self.hidden_act),
            "hidden_dropout_prob": self.hidden_dropout_prob,
            "attention_probs_dropout_prob": self.attention_probs_dropout_prob,
            "initializer_range": self.initializer_range,
            "relative_vocab_size": self.relative_vocab_size,
            "use_pre_activation_order": self.use_pre_activation_order,
            "use_one_hot_lookup": self.use_one_hot_lookup,
        }
