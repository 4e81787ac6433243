"""T5's decoder (Raffel et al. 2020): causal attention, attention to the encoder, feed-forward."""

import tf_keras

from etcmodel.layers.attention.decoder import CausalSelfAttention, CrossAttention
from etcmodel.models.longt5 import parts
from etcmodel.models.longt5.config import LongT5Config
from etcmodel.models.seq2seq import decoder

__all__ = ["T5Decoder", "T5DecoderLayers"]


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class T5DecoderLayers(decoder.DecoderLayers, parts.T5Layers):
    """The decoder's layers: `seq2seq.decoder.DecoderLayers` with T5's position biases.

    Args:
        config: `LongT5Config` or its dict.
    """

    def __init__(self, config, name="layers", **kwargs):
        config = LongT5Config.of(config)
        super().__init__(config, config.decoder_layers, name=name, **kwargs)
        self.make_blocks()

    def make_attention(self, index):
        distance = self.config.relative_attention_max_distance
        return CausalSelfAttention(**self.attention_options(), max_distance=distance)

    def make_cross_attention(self, index):
        return CrossAttention(**self.attention_options())

    def build(self, input_shape):
        self.bias_table = self.add_bias_table("relative_attention_bias")
        super().build(input_shape)

    def self_attention_options(self):
        return {"bias_table": self.table(self.bias_table)}


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class T5Decoder(decoder.Decoder, parts.T5Stack):
    """Decoder ids and an encoder's output to hidden states: see `seq2seq.decoder.Decoder`.

    Args:
        config: `LongT5Config` or its dict.
        token_embedding: `EmbeddingLookup` or None. A lookup shared with an encoder.
        name: name of the layer.
    """

    def __init__(self, config, token_embedding=None, name="decoder", **kwargs):
        super().__init__(T5DecoderLayers, config, token_embedding, name=name, **kwargs)
