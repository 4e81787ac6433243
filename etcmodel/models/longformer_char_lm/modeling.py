"""Longformer's character language model (Beltagy et al. 2020, section 4 and appendix B)."""

import tensorflow as tf
import tf_keras

from etcmodel import tensor_utils
from etcmodel.layers import (
    EmbeddingLookup,
    RecomputingDropout,
    base,
    normalization,
    stack,
    sublayers,
)
from etcmodel.layers.attention.sliding_window import RelativeWindowAttention
from etcmodel.models import conveniences
from etcmodel.models.longformer import modeling as longformer
from etcmodel.models.longformer_char_lm.config import CharLmConfig
from etcmodel.ops import argument_checks

__all__ = ["CharLmConfig", "CharLmLayers", "CharLmModel"]


class CharLmLayers(longformer.SlidingWindowLayers):
    """The transformer layers: pre-layer normalization, and windows of the characters before.

    Args:
        config: `CharLmConfig`.
        **kwargs: of the Keras layer.
    """

    attention_class = RelativeWindowAttention

    def __init__(self, config, **kwargs):
        super().__init__(
            stack.Stream("characters", config.hidden_size, config.intermediate_size),
            config.windows,
            dilations=config.dilations,
            is_causal=True,
            use_pre_activation_order=True,
            **config.stack_options(),
            **kwargs,
        )


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class CharLmModel(conveniences.Pretrained, base.Configured, base.Layer):
    """Longformer's character language model: predicts each character from those before it.

    Positions are relative (Dai et al. 2019), so texts may have any length: the first character of a
    text is one with nothing before it. Logits are products with the embeddings.

    Args:
        config: `CharLmConfig` or its dict.
        name: name of the layer.
    Call args:
        input_ids: int [batch, length]. Bytes, or other characters below `vocab_size`.
        training: bool.
    Returns:
        float32 [batch, length, vocab_size]. The logits of the character after each one.
    Raises:
        ValueError: if `input_ids` has another rank, or an id is not a whole number or out of range.
            In a graph, ids known only at run time raise `tf.errors.InvalidArgumentError`.

    >>> sizes = {"hidden_size": 8, "num_hidden_layers": 1}
    >>> config = etcmodel.CharLmConfig(attention_window=4, attention_dilation=1, **sizes)
    >>> model = etcmodel.CharLmModel(config)
    >>> model([list(b"To be")]).shape  # The logits of what follows each byte.
    TensorShape([1, 5, 256])
    """

    def __init__(self, config: CharLmConfig | dict, name: str = "longformer_char_lm", **kwargs):
        super().__init__(name=name, **kwargs)
        self._autocast = False  # The argument is ids.
        self.config = config = CharLmConfig.of(config)
        self.embeddings = EmbeddingLookup(
            config.vocab_size,
            config.hidden_size,
            initializer_range=config.initializer_range,
            name="embeddings",
            dtype=self.dtype_policy,
        )
        self.embedding_dropout = RecomputingDropout(
            config.hidden_dropout_prob, name="embedding_dropout", dtype=self.dtype_policy
        )
        self.layers = CharLmLayers(config, name="layers", dtype=self.dtype_policy)
        self.output_norm = normalization.LayerNormalization(
            axis=-1, epsilon=config.layer_norm_eps, name="output_norm", dtype=self.dtype_policy
        )
        self.output_bias = None

    def build(self, input_shape):
        """Builds all variables; the sizes follow from the config alone."""
        parts = (self.embeddings, self.layers, self.output_norm)
        sublayers.build_all(self.config.hidden_size, *parts)
        self.output_bias = self.add_weight(
            name="output_bias",
            shape=(self.config.vocab_size,),
            initializer="zeros",
            experimental_autocast=False,
        )
        super().build(input_shape)

    def call(self, input_ids, training=None):
        input_ids = self._checked(input_ids)
        embedded = self.embedding_dropout(self.embeddings(input_ids), training=training)
        return self.logits(self.layers(embedded, training=training))

    @tf.autograph.experimental.do_not_convert
    def _checked(self, input_ids):
        """The ids as int32 or int64 [batch, length], each with a row in the table."""
        asserts, size = [], self.config.vocab_size
        argument_checks.check_shapes({"input_ids": input_ids}, {"input_ids": "batch length"})
        input_ids = argument_checks.checked_ids(
            "input_ids", input_ids, size, f"`vocab_size`, {size}", asserts=asserts
        )
        length = tensor_utils.get_shape_list(input_ids)[1]
        argument_checks.check_not_empty("input_ids", length, asserts=asserts)
        with tf.control_dependencies(asserts):
            return tf.identity(input_ids)

    def logits(self, hidden):
        """Logits of the last layer's output: float32 [batch, length, vocab_size]."""
        hidden = self.output_norm(hidden)
        table = tf.cast(self.embeddings.embedding_table, hidden.dtype)
        products = tf.einsum("blh,vh->blv", hidden, table)
        return tf.cast(products, tf.float32) + self.output_bias

    def get_token_embedding_table(self):
        """Returns the table of embeddings: variable [vocab_size, hidden_size]."""
        sublayers.build_sublayer(self, None)
        return self.embeddings.embedding_table
