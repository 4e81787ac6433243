"""LongT5's encoder alone, as a model with folders of its own (Guo et al. 2022)."""

import tensorflow as tf
import tf_keras

from etcmodel.layers import base, sublayers
from etcmodel.models import conveniences
from etcmodel.models.longt5 import names
from etcmodel.models.longt5.config import LongT5Config
from etcmodel.models.longt5.encoder import LongT5Encoder
from etcmodel.models.seq2seq import inputs

__all__ = ["LongT5EncoderModel"]


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class LongT5EncoderModel(inputs.OptionalInput, conveniences.Pretrained, base.Layer):
    """LongT5's encoder alone: token ids of a text of any length to hidden states.

    It also loads the folders of a `LongT5Model`, without the decoder.

    Args:
        config: `LongT5Config` or its dict. Entries for the decoder have no effect.
        name: name of the layer.
    Call args:
        input_ids: int [batch, length]; or a dict of arguments; or None with `inputs_embeds`.
        **arguments: of `LongT5Encoder`.
    Returns:
        dict: see `LongT5Encoder`.

    >>> config = etcmodel.LongT5Config(d_model=8, num_layers=1)
    >>> model = etcmodel.LongT5EncoderModel(config)
    >>> model([[7, 8, 1]])["last_hidden_state"].shape
    TensorShape([1, 3, 8])
    """

    architecture = "LongT5EncoderModel"
    naming = names.ENCODER_NAMING

    def __init__(self, config: LongT5Config | dict, name: str = "longt5_encoder", **kwargs):
        super().__init__(name=name, **kwargs)
        self._autocast = False  # The first argument is ids.
        self.config = LongT5Config.of(config)
        self.encoder = LongT5Encoder(self.config, dtype=self.dtype_policy)

    shared = property(lambda self: self.encoder.token_embedding)

    def build(self, input_shape):
        sublayers.build_sublayer(self.encoder, tf.TensorShape([None, None]))
        super().build(input_shape)

    def call(self, input_ids=None, attention_mask=None, **arguments):
        return self.encoder(input_ids, attention_mask, **arguments)

    def get_token_embedding_table(self):
        """The table of token embeddings: variable [vocab_size, d_model]."""
        return self.encoder.get_token_embedding_table()

    def weights_by_name(self):
        """The variables by their names in Hugging Face's files: dict of `seq2seq.names.Weight`."""
        return names.weights(self)

    def get_config(self):
        return {**super().get_config(), "config": self.config.to_dict()}
