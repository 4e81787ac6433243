"""LED's decoder, which is BART's: causal attention, attention to the encoder, feed-forward."""

import tf_keras

from etcmodel.layers import stack
from etcmodel.layers.attention.decoder import CausalSelfAttention, CrossAttention
from etcmodel.models.led import parts
from etcmodel.models.led.config import LedConfig
from etcmodel.models.longformer import inputs as longformer_inputs
from etcmodel.models.seq2seq import decoder

__all__ = ["LedDecoder", "LedDecoderLayers"]


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class LedDecoderLayers(decoder.DecoderLayers, stack.TransformerStack):
    """The decoder's layers: see `seq2seq.decoder.DecoderLayers`.

    Args:
        config: `LedConfig` or its dict.
        name: name of the layer.
    """

    def __init__(self, config, name="layers", **kwargs):
        self.config = LedConfig.of(config)
        super().__init__(
            self.config.decoder_layers,
            self.config.decoder_attention_heads,
            name=name,
            **parts.stack_options(self.config),
            **kwargs,
        )
        self.make_blocks()

    @property
    def streams(self):
        return (stack.Stream("tokens", self.config.d_model, self.config.decoder_ffn_dim),)

    def make_attention(self, index):
        return CausalSelfAttention(**self._attention_options())

    def make_cross_attention(self, index):
        return CrossAttention(**self._attention_options())

    def _attention_options(self):
        return {
            "hidden_size": self.config.d_model,
            "num_heads": self.config.decoder_attention_heads,
            "use_bias": True,
            "att_dropout_prob": self.config.attention_dropout,
            "initializer_range": self.config.init_std,
            "dtype": self.dtype_policy,
        }

    def make_feed_forward(self, index, stream):
        del index
        return parts.make_feed_forward(self, stream)

    def get_config(self):
        return {**tf_keras.layers.Layer.get_config(self), "config": self.config.to_dict()}


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class LedDecoder(decoder.Decoder, parts.LedStack):
    """Decoder ids and an encoder's output to hidden states: see `seq2seq.decoder.Decoder`.

    Args:
        config: `LedConfig` or its dict.
        token_embedding: `EmbeddingLookup` or None. A lookup shared with an encoder.
        name: name of the layer.
    """

    mask_kinds = longformer_inputs.KINDS

    def __init__(self, config, token_embedding=None, name="decoder", **kwargs):
        super().__init__(
            LedDecoderLayers,
            "max_decoder_position_embeddings",
            config,
            token_embedding,
            name=name,
            **kwargs,
        )
