"""PEGASUS-X's decoder: causal attention, attention to the encoder, feed-forward."""

import tf_keras

from etcmodel.layers.attention.decoder import CausalSelfAttention, CrossAttention
from etcmodel.models.pegasus_x import parts
from etcmodel.models.pegasus_x.config import PegasusXConfig
from etcmodel.models.seq2seq import decoder

__all__ = ["PegasusXDecoder", "PegasusXDecoderLayers"]


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class PegasusXDecoderLayers(decoder.DecoderLayers, parts.PegasusXLayers):
    """The decoder's layers: see `seq2seq.decoder.DecoderLayers`.

    Args:
        config: `PegasusXConfig` or its dict.
        name: name of the layer.
    """

    def __init__(self, config, name="layers", **kwargs):
        super().__init__(PegasusXConfig.of(config), "decoder", name=name, **kwargs)
        self.make_blocks()

    @property
    def streams(self):
        return (self.stream("tokens"),)

    def make_attention(self, index):
        return CausalSelfAttention(**self.attention_options())

    def make_cross_attention(self, index):
        return CrossAttention(**self.attention_options())


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class PegasusXDecoder(decoder.Decoder, parts.PegasusXStack):
    """Decoder ids and an encoder's output to hidden states: see `seq2seq.decoder.Decoder`.

    Args:
        config: `PegasusXConfig` or its dict.
        token_embedding: `EmbeddingLookup` or None. A lookup shared with an encoder.
        name: name of the layer.
    """

    def __init__(self, config, token_embedding=None, name="decoder", **kwargs):
        super().__init__(PegasusXDecoderLayers, config, token_embedding, name=name, **kwargs)
