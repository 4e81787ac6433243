"""Transformer layers with full relative attention (paper, section 3.1)."""

import tf_keras

from etcmodel import tensor_utils
from etcmodel.layers import checks, initializers, stack
from etcmodel.layers.attention import RelativeAttention

__all__ = ["RelativeTransformerLayers"]


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
        checks.check_at_least_1(hidden_size=hidden_size)
        self.hidden_size = hidden_size
        self.intermediate_size = intermediate_size or 4 * hidden_size
        self.relative_vocab_size = relative_vocab_size
        self.use_one_hot_lookup = use_one_hot_lookup
        self.attention_layers = self.attention_blocks()
        self.feed_forward_layers = self.feed_forward_blocks()

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

    def steps(self, index):
        return (
            stack.Step(self.attention_layers[index], options="attention"),
            stack.Step(self.feed_forward_layers[index]),
        )

    def call(self, inputs, att_mask=None, relative_att_ids=None, training=None):
        options = {"att_mask": att_mask, "relative_att_ids": relative_att_ids}
        (output,) = self.run([inputs], training, attention=options)
        return output

    def get_config(self):
        config = {
            **super().get_config(),
            "hidden_size": self.hidden_size,
            "intermediate_size": self.intermediate_size,
            "relative_vocab_size": self.relative_vocab_size,
            "use_one_hot_lookup": self.use_one_hot_lookup,
        }
        del config["grad_checkpointing_period"]  # Not an argument of this layer.
        return config
