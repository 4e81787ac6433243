"""LongT5 for conditional generation: encoder, decoder and logits (Guo et al. 2022)."""

import tensorflow as tf
import tf_keras

from etcmodel.layers import dense, initializers, sublayers
from etcmodel.models.longt5 import names, parts
from etcmodel.models.longt5.config import LongT5Config
from etcmodel.models.longt5.decoder import T5Decoder
from etcmodel.models.longt5.encoder import LongT5Encoder
from etcmodel.models.seq2seq import model
from etcmodel.models.seq2seq import outputs as outputs_lib

__all__ = ["LongT5Model"]


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class LongT5Model(model.ConditionalGeneration, model.EncoderDecoder):
    """LongT5 for conditional generation, such as summarization of long texts.

    Args:
        config: `LongT5Config` or its dict.
        name: name of the layer.
    Call args: see `seq2seq.model.ConditionalGeneration`, `LongT5Encoder` and `T5Decoder`.
    Returns:
        dict: see there.
    Raises:
        ValueError: see there.

    >>> config = etcmodel.LongT5Config(d_model=8, num_layers=1)
    >>> model = etcmodel.LongT5Model(config)
    >>> model([[7, 8, 1]], decoder_input_ids=[[0, 5]])["logits"].shape
    TensorShape([1, 2, 32128])
    """

    config_class, encoder_class, decoder_class = LongT5Config, LongT5Encoder, T5Decoder
    make_token_embedding = parts.make_token_embedding

    def __init__(self, config: LongT5Config | dict, name: str = "longt5", **kwargs):
        super().__init__(config, name, **kwargs)
        self.lm_head = None
        if not self.config.tie_word_embeddings:
            self.lm_head = dense.Dense(
                self.config.vocab_size,
                use_bias=False,
                kernel_initializer=initializers.default_initializer(self.config.initializer_range),
                name="lm_head",
                dtype=self.dtype_policy,
            )

    def build(self, input_shape):
        super().build(input_shape)
        if self.lm_head is not None:
            hidden = tf.TensorShape([None, None, self.config.d_model])
            sublayers.build_sublayer(self.lm_head, hidden)

    def logits(self, hidden):
        """Logits of the decoder's output, float [..., d_model]: float32 [..., vocab_size]."""
        hidden *= tf.cast(self.config.output_scale, hidden.dtype)
        if self.lm_head is not None:
            return tf.cast(self.lm_head(hidden), tf.float32)
        return outputs_lib.tied_logits(hidden, self.shared.embedding_table)

    architecture = "LongT5ForConditionalGeneration"
    naming = names.NAMING

    def weights_by_name(self):
        """The variables by their names in Hugging Face's files: dict of `seq2seq.names.Weight`."""
        return names.weights(self)
