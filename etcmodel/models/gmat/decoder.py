"""GenBERT's decoder over a GMAT: the encoder's own layers with causal self-attention.

Source: Geva, Gupta and Berant 2020 (arXiv:2004.04487, section 3), as Gupta and Berant 2020
(arXiv:2006.03274, section 3.2 and appendix A.1) have it.
"""

import tensorflow as tf

from etcmodel import tensor_utils
from etcmodel.layers import (
    RecomputingDropout,
    base,
    dense,
    initializers,
    normalization,
    stack,
    sublayers,
)
from etcmodel.layers.attention.decoder import CausalSelfAttention, CrossAttention
from etcmodel.models.gmat import inputs as inputs_lib
from etcmodel.models.gmat import layers as layers_lib
from etcmodel.models.seq2seq import decoder
from etcmodel.models.seq2seq import inputs as seq2seq_inputs

__all__ = ["GmatDecoder", "GmatDecoderLayers", "TiedAttention", "Transform"]


class TiedAttention(base.Layer):
    """Causal attention, then attention to the encoder, both with the weights of one encoder layer.

    `h = norm(x + self_attention(x))`, then `norm(x + cross_attention(h))`: the second residual,
    too, is the layer's input, as in GenBERT.

    Args:
        block: `ResidualBlock` of the encoder layer's `ChunkMemoryAttention`, whose projections and
            normalization of tokens are used.
        dropout_prob: float. Dropout rate of both attentions' outputs.
        name: name of the layer.
    Call args:
        inputs: float [rows, length, hidden_size].
        encoder_output, encoder_mask: as `encoder_output` and `att_mask` of `CrossAttention`.
        att_mask, cache: see `CausalSelfAttention`.
        training: bool.
    Returns:
        Same shape as `inputs`.
    """

    def __init__(self, block, dropout_prob=0.0, name="tied_attention", **kwargs):
        super().__init__(name=name, **kwargs)
        of_encoder = block.inner_layer
        options = {
            "hidden_size": of_encoder.hidden_size,
            "num_heads": of_encoder.num_heads,
            "size_per_head": of_encoder.size_per_head,
            "scale": of_encoder.scale,
            "use_bias": of_encoder.use_bias,
            "att_dropout_prob": of_encoder.att_dropout_prob,
            "dtype": self.dtype_policy,
        }
        self.self_attention = CausalSelfAttention(**options, name="self_attention")
        self.cross_attention = CrossAttention(**options, name="cross_attention")
        for attention in (self.self_attention, self.cross_attention):
            attention.share_projections(of_encoder)
        self.normalization = block.normalization_layers[0]
        self.dropouts = [
            RecomputingDropout(dropout_prob, name=f"dropout_{number}", dtype=self.dtype_policy)
            for number in range(2)
        ]

    def build(self, input_shape):
        for layer in (self.self_attention, self.cross_attention, self.normalization):
            sublayers.build_sublayer(layer, tf.TensorShape(input_shape))
        super().build(input_shape)

    def call(
        self,
        inputs,
        encoder_output,
        encoder_mask=None,
        att_mask=None,
        cache=None,
        training=None,
    ):
        own, cross = self.dropouts
        found = self.self_attention(inputs, att_mask=att_mask, cache=cache, training=training)
        queries = self.normalization(inputs + own(found, training=training))
        found = self.cross_attention(
            queries, encoder_output, att_mask=encoder_mask, training=training
        )
        return self.normalization(inputs + cross(found, training=training))


class GmatDecoderLayers(decoder.DecoderLayers, stack.TransformerStack):
    """The decoder's layers: see `seq2seq.decoder.DecoderLayers`.

    Args:
        layers: `GmatLayers` of the encoder. All of its weights are shared, except those of its
            memory alone.
        name: name of the layer.
    """

    def __init__(self, layers, name="layers", **kwargs):
        self.config = layers.config
        super().__init__(
            layers.num_hidden_layers,
            name=name,
            **layers_lib.stack_options(layers.config),
            **kwargs,
        )
        self.attention_layers = [
            TiedAttention(
                block,
                self.hidden_dropout_prob,
                name=f"attention_layer_{index}",
                dtype=self.dtype_policy,
            )
            for index, block in enumerate(layers.attention_layers)
        ]
        self.feed_forward_layers = list(layers.feed_forward_layers)

    @property
    def streams(self):
        config = self.config
        return (stack.Stream("tokens", config.hidden_size, config.intermediate_size),)

    def make_attention(self, index):
        raise NotImplementedError("The attention layers are made of the encoder's.")

    def attentions(self, index):
        layer = self.attention_layers[index]
        return layer.self_attention, layer.cross_attention

    def steps(self, index):
        return (
            stack.Step(self.attention_layers[index], options="attention"),
            stack.Step(self.feed_forward_layers[index]),
        )

    def options(self, encoder_output, encoder_mask, attention_mask=None):
        return {
            "attention": {
                "encoder_output": encoder_output,
                "encoder_mask": encoder_mask,
                "att_mask": attention_mask,
            }
        }


class GmatDecoder(decoder.Decoder, seq2seq_inputs.OptionalInput, base.Layer):
    """Decoder ids and an encoder's output to hidden states: see `seq2seq.decoder.Decoder`.

    The encoder's output has the tokens, then the memory; its mask is of the tokens alone, as the
    memory is always attended to. Decoder ids have token type 1, and positions from 0.

    Args:
        encoder: `GmatEncoder`, whose embeddings and layers are shared.
        name: name of the layer.
    """

    def __init__(self, encoder, name="decoder", **kwargs):
        super().__init__(name=name, **kwargs)
        self._autocast = False  # The first argument is ids.
        self.config = encoder.config
        self.embeddings = encoder.gmat.embeddings
        self.layers = GmatDecoderLayers(encoder.gmat.layers, dtype=self.dtype_policy)
        self.transform = Transform(self.config, dtype=self.dtype_policy)

    def build(self, input_shape):
        hidden = tf.TensorShape([None, None, self.config.hidden_size])
        for layer in (self.embeddings, self.layers, self.transform):
            sublayers.build_sublayer(layer, hidden)
        super().build(input_shape)

    def embed(self, ids, embeddings, start=0, training=None):
        """Embeds the decoder's ids for its first layer.

        Args:
            ids: int [batch, length], or None with embeddings.
            embeddings: float [batch, length, hidden_size], or None.
            start: int or int32 scalar. The position of the first id.
            training: bool.
        Returns:
            float [batch, length, hidden_size].
        Raises:
            ValueError: unless just one of ids and embeddings is given, or if there are more tokens
                than positions; in a graph `tf.errors.InvalidArgumentError`.
        """
        if (ids is None) == (embeddings is None):
            raise ValueError("Give decoder ids, or embeddings in their place, and not both.")
        first = tf.convert_to_tensor(embeddings if ids is None else ids)
        positions = (start + tf.range(tensor_utils.get_shape_list(first)[1]))[tf.newaxis]
        given = {
            "input_ids": ids,
            "inputs_embeds": embeddings,
            "position_ids": positions,
            "token_type_ids": tf.ones_like(positions),
        }
        return self.embeddings.tokens(inputs_lib.checked(self.config, given), training)

    def finish(self, hidden, training=None):
        """Maps the last layer's output to the decoder's: float [batch, length, hidden_size]."""
        del training
        return self.transform(hidden)

    def mask_of_output(self, encoder_mask):
        """Extends the mask of the encoder's tokens to the encoder's output, memory included."""
        if encoder_mask is None or not self.config.num_memory_tokens:
            return encoder_mask
        mask = tf.cast(encoder_mask, tf.int32)
        return tf.pad(mask, [[0, 0], [0, self.config.num_memory_tokens]], constant_values=1)


class Transform(base.Layer):
    """BERT's dense layer, activation and layer normalization before the token logits.

    Args:
        config: `GmatConfig`.
        name: name of the layer.
    Call args:
        hidden: float [..., hidden_size].
    Returns:
        Same shape as `hidden`.
    """

    def __init__(self, config, name="transform", **kwargs):
        super().__init__(name=name, **kwargs)
        self.hidden_size = config.hidden_size
        self.dense = dense.Dense(
            config.hidden_size,
            activation=tensor_utils.get_activation(config.activation),
            kernel_initializer=initializers.default_initializer(config.initializer_range),
            name="dense",
            dtype=self.dtype_policy,
        )
        self.layer_norm = normalization.LayerNormalization(
            axis=-1, epsilon=config.layer_norm_eps, name="layer_norm", dtype=self.dtype_policy
        )

    def build(self, input_shape):
        hidden = tf.TensorShape([None, None, self.hidden_size])
        for layer in (self.dense, self.layer_norm):
            sublayers.build_sublayer(layer, hidden)
        super().build(input_shape)

    def call(self, hidden):
        return self.layer_norm(self.dense(hidden))
