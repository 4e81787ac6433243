"""The Longformer encoder (Beltagy et al. 2020, arXiv:2004.05150)."""

import tensorflow as tf
import tf_keras

from etcmodel import tensor_utils
from etcmodel.layers import (
    EmbeddingLookup,
    RecomputingDropout,
    base,
    dense,
    initializers,
    normalization,
    stack,
    sublayers,
)
from etcmodel.models import conveniences
from etcmodel.models.longformer import inputs as inputs_lib
from etcmodel.models.longformer import layers
from etcmodel.models.longformer.config import LongformerConfig

__all__ = ["LongformerConfig", "LongformerLayers", "LongformerModel"]


class LongformerLayers(layers.SlidingWindowLayers):
    """Longformer's transformer layers, each with its own window: see `layers.SlidingWindowLayers`.

    Args:
        config: `LongformerConfig`.
        **kwargs: of the Keras layer.
    """

    def __init__(self, config, **kwargs):
        super().__init__(
            stack.Stream("tokens", config.hidden_size, config.intermediate_size),
            config.radii,
            config.num_attention_heads,
            dilations=config.dilations,
            is_causal=config.autoregressive,
            hidden_act=tensor_utils.get_activation(config.activation),
            hidden_dropout_prob=config.hidden_dropout_prob,
            attention_probs_dropout_prob=config.attention_probs_dropout_prob,
            initializer_range=config.initializer_range,
            grad_checkpointing_period=config.grad_checkpointing_period,
            layer_norm_epsilon=config.layer_norm_eps,
            **kwargs,
        )


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class LongformerModel(conveniences.Pretrained, base.Layer):
    """The Longformer encoder: token ids to hidden states, as in Hugging Face's `LongformerModel`.

    Texts may have any length up to the number of positions; nothing is padded to a multiple of the
    window, and no result depends on padding or on the other examples of the batch.

    Args:
        config: `LongformerConfig` (or its dict).
        add_pooling_layer: bool. Whether to add BERT's pooler.
        name: name of the layer.
    Call args:
        input_ids: int [batch, length]; or a dict of arguments; or None with `inputs_embeds`.
        attention_mask: int or bool [batch, length], or None. 0 is masked, 1 a local token, 2 a
            global one.
        global_attention_mask: further global tokens. A mask, 0/1 int or bool [batch, length]; or
            positions: int [number], for all examples, or for each a row of a `tf.RaggedTensor`.
            None for no others. Masked tokens are never global.
        token_type_ids: int [batch or 1, length]; by default 0.
        position_ids: int [batch or 1, length]; by default padding has `pad_token_id`, and other
            tokens count up from there, masked ones included.
        inputs_embeds: float [batch, length, hidden_size], in place of embeddings of `input_ids`.
        output_hidden_states: bool.
        output_attentions: bool. Needs memory for all pairs of tokens, and time.
        training: bool.
    Returns:
        (hidden, pooled): float [batch, length, hidden_size] and [batch, hidden_size], which is None
        without a pooler. If more is requested, a third output is a dict: `hidden_states`, a list of
        the embeddings and each layer's output; `attentions` and, if there may be global tokens,
        `global_attentions`, lists by layer of float32 [batch, num_heads, length, slots + window]
        and [batch, num_heads, length, slots], as returned by
        `SlidingWindowAttention.attention_probs`; the number of slots is that of the example with
        the most global tokens.
    Raises:
        ValueError: if inputs are inconsistent with each other or the model: see `inputs.checked`,
            also for what graphs raise.

    >>> config = etcmodel.LongformerConfig(hidden_size=12, num_hidden_layers=1)
    >>> model = etcmodel.LongformerModel(config)
    >>> hidden, pooled = model([[0, 7, 8, 2]], global_attention_mask=[[1, 0, 0, 0]])
    >>> hidden.shape, pooled.shape
    (TensorShape([1, 4, 12]), TensorShape([1, 12]))
    """

    def __init__(
        self,
        config: LongformerConfig | dict,
        add_pooling_layer: bool = True,
        name: str = "longformer",
        **kwargs,
    ):
        super().__init__(name=name, **kwargs)
        self._autocast = False  # The first argument is ids.
        self.config = config = LongformerConfig.of(config)
        self.word_embeddings = self._lookup("word_embeddings", config.vocab_size)
        self.position_embeddings = self._lookup(
            "position_embeddings", config.max_position_embeddings
        )
        self.token_type_embeddings = self._lookup("token_type_embeddings", config.type_vocab_size)
        self.embedding_norm = normalization.LayerNormalization(
            axis=-1, epsilon=config.layer_norm_eps, name="embedding_norm", dtype=self.dtype_policy
        )
        self.embedding_dropout = RecomputingDropout(
            config.hidden_dropout_prob, name="embedding_dropout", dtype=self.dtype_policy
        )
        self.layers = LongformerLayers(config, name="layers", dtype=self.dtype_policy)
        self.pooler = None
        if add_pooling_layer:
            self.pooler = dense.Dense(
                config.hidden_size,
                activation="tanh",
                kernel_initializer=initializers.default_initializer(config.initializer_range),
                name="pooler",
                dtype=self.dtype_policy,
            )

    def _lookup(self, name, vocab_size):
        return EmbeddingLookup(
            vocab_size,
            self.config.hidden_size,
            initializer_range=self.config.initializer_range,
            name=name,
            dtype=self.dtype_policy,
        )

    def build(self, input_shape):
        """Builds all variables; the sizes follow from the config alone."""
        ids, hidden = [None, None], [None, None, self.config.hidden_size]
        for layer, shape in (
            (self.word_embeddings, ids),
            (self.position_embeddings, ids),
            (self.token_type_embeddings, ids),
            (self.embedding_norm, hidden),
            (self.layers, hidden),
            (self.pooler, [None, self.config.hidden_size]),
        ):
            if layer is not None:
                sublayers.build_sublayer(layer, tf.TensorShape(shape))
        super().build(input_shape)

    def __call__(self, input_ids=None, *args, **kwargs):
        if hasattr(input_ids, "items"):
            return self(**{**input_ids, **kwargs})
        return super().__call__(input_ids, *args, **kwargs)

    def call(
        self,
        input_ids=None,
        attention_mask=None,
        global_attention_mask=None,
        token_type_ids=None,
        position_ids=None,
        inputs_embeds=None,
        output_hidden_states=False,
        output_attentions=False,
        training=None,
    ):
        given = {
            "input_ids": input_ids,
            "inputs_embeds": inputs_embeds,
            "attention_mask": attention_mask,
            "token_type_ids": token_type_ids,
            "position_ids": position_ids,
        }
        inputs = inputs_lib.checked(self.config, given, global_attention_mask)
        embedded = self._embed(inputs, training)
        attention = {"token_mask": inputs.token_mask, "global_tokens": inputs.global_tokens}
        if not (output_hidden_states or output_attentions):
            hidden = self.layers(embedded, training=training, **attention)
            return hidden, self._pool(hidden)
        all_hidden, extras = self.layers.observed(
            embedded, training, with_attentions=output_attentions, **attention
        )
        if output_hidden_states:
            extras["hidden_states"] = all_hidden
        return all_hidden[-1], self._pool(all_hidden[-1]), extras

    def _embed(self, inputs, training):
        """Embeddings: float [batch, length, hidden_size]."""
        if inputs.input_ids is None:
            words = tf.cast(inputs.inputs_embeds, self.compute_dtype)
        else:
            words = self.word_embeddings(inputs.input_ids)
        embeddings = words + self.position_embeddings(inputs.position_ids)
        embeddings += self.token_type_embeddings(inputs.token_type_ids)
        return self.embedding_dropout(self.embedding_norm(embeddings), training=training)

    def _pool(self, hidden):
        """Pools the first position, even if it is padding, as Hugging Face's model does."""
        return None if self.pooler is None else self.pooler(hidden[:, 0])

    def get_token_embedding_table(self):
        """Returns the table of token embeddings: variable [vocab_size, hidden_size]."""
        if not self.built:
            sublayers.build_sublayer(self, None)
        return self.word_embeddings.embedding_table

    def get_config(self):
        return {
            **super().get_config(),
            "config": self.config.to_dict(),
            "add_pooling_layer": self.pooler is not None,
        }
