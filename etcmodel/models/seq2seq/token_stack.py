"""The base of encoders and decoders: token embeddings, which they may share."""

import tensorflow as tf

from etcmodel.layers import EmbeddingLookup, base, sublayers
from etcmodel.models.seq2seq import inputs

__all__ = ["TokenStack", "make_token_embedding"]


class TokenStack(inputs.OptionalInput, base.Layer):
    """The base of an encoder or a decoder, which has a `config` and a `token_embedding`."""

    def get_token_embedding_table(self):
        """The table of token embeddings: variable [vocab_size, d_model]."""
        sublayers.build_sublayer(self.token_embedding, tf.TensorShape([None, None]))
        return self.token_embedding.embedding_table

    def get_config(self):
        return {**super().get_config(), "config": self.config.to_dict()}


def make_token_embedding(layer, initializer_range):
    """Creates the token embeddings of a layer with a `Seq2SeqConfig`: `EmbeddingLookup`.

    Args:
        layer: Keras layer with a `config`.
        initializer_range: float. Standard deviation of the initial weights.
    """
    return EmbeddingLookup(
        layer.config.vocab_size,
        layer.config.d_model,
        initializer_range=initializer_range,
        name="shared",
        dtype=layer.dtype_policy,
    )
