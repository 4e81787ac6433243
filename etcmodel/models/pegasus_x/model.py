"""PEGASUS-X: the encoder and the decoder (Phang et al. 2022)."""

import tensorflow as tf
import tf_keras

from etcmodel.layers import base, sublayers
from etcmodel.models import conveniences
from etcmodel.models.pegasus_x import names, parts
from etcmodel.models.pegasus_x.config import PegasusXConfig
from etcmodel.models.pegasus_x.decoder import PegasusXDecoder
from etcmodel.models.pegasus_x.encoder import PegasusXEncoder
from etcmodel.models.seq2seq import inputs
from etcmodel.models.seq2seq import outputs as outputs_lib

__all__ = ["PegasusXModel"]


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class PegasusXModel(inputs.OptionalInput, conveniences.Pretrained, base.Layer):
    """A text of any length, and the beginning of another one, to the decoder's hidden states.

    Args:
        config: `PegasusXConfig` or its dict.
        name: name of the layer.
    Call args:
        input_ids: int [batch, length]; or a dict of arguments; or None with `inputs_embeds` or
            `encoder_output`.
        attention_mask: 0/1 int [batch, length], or None. 0 for padding. Without it ids of padding
            are tokens as others.
        decoder_input_ids: int [batch, target_length], or None with `decoder_inputs_embeds`.
        decoder_attention_mask: 0/1 int [batch, target_length], or None. 0 for ids that no later
            one sees.
        inputs_embeds: float [batch, length, d_model], or None: in place of scaled embeddings of the
            ids.
        decoder_inputs_embeds: float [batch, target_length, d_model], or None: likewise.
        encoder_output: float [batch, length, d_model], or None: of `encoder`, in place of the ids.
        position_ids: int [batch or 1, length], or None: of the encoder's tokens.
        output_hidden_states: bool.
        output_attentions: bool. They take memory of the square of the length.
        training: bool.
    Returns:
        dict: `last_hidden_state`, float [batch, target_length, d_model];
        `encoder_last_hidden_state`, float [batch, length, d_model]; where they are asked for,
        tuples by layer: `encoder_hidden_states`, `encoder_global_states`, `decoder_hidden_states`,
        `encoder_attentions`, `encoder_global_attentions`, `decoder_attentions`,
        `cross_attentions`: see `PegasusXEncoder` and `seq2seq.decoder.Decoder`.
    Raises:
        ValueError: unless ids or embeddings are given for either side.
    """

    naming = names.NAMING
    architecture = "PegasusXModel"
    config_for = staticmethod(names.check_tables)

    def __init__(self, config, name="pegasus_x", **kwargs):
        super().__init__(name=name, **kwargs)
        self._autocast = False  # The first argument is ids.
        self.config = PegasusXConfig.of(config)
        self.shared = parts.make_token_embedding(self)
        self.encoder = PegasusXEncoder(self.config, self.shared, dtype=self.dtype_policy)
        self.decoder = PegasusXDecoder(self.config, self.shared, dtype=self.dtype_policy)

    def build(self, input_shape):
        for layer in (self.shared, self.encoder, self.decoder):
            sublayers.build_sublayer(layer, tf.TensorShape([None, None]))
        super().build(input_shape)

    def call(
        self,
        input_ids=None,
        attention_mask=None,
        decoder_input_ids=None,
        decoder_attention_mask=None,
        inputs_embeds=None,
        decoder_inputs_embeds=None,
        encoder_output=None,
        position_ids=None,
        output_hidden_states=False,
        output_attentions=False,
        training=None,
    ):
        wanted = {
            "output_hidden_states": output_hidden_states,
            "output_attentions": output_attentions,
            "training": training,
        }
        encoded = {"last_hidden_state": encoder_output}
        if encoder_output is None:
            encoded = self.encoder(
                input_ids, attention_mask, inputs_embeds, position_ids=position_ids, **wanted
            )
        decoded = self.decoder(
            decoder_input_ids,
            encoded["last_hidden_state"],
            attention_mask,
            decoder_attention_mask,
            decoder_inputs_embeds,
            **wanted,
        )
        last = {"last_hidden_state": decoded["last_hidden_state"]}
        return last | outputs_lib.named(encoded, decoded)

    def get_token_embedding_table(self):
        """The table of token embeddings: variable [vocab_size, d_model]."""
        sublayers.build_sublayer(self.shared, tf.TensorShape([None, None]))
        return self.shared.embedding_table

    def weights_by_name(self):
        """The variables by their names in Hugging Face's files: dict of `seq2seq.names.Weight`."""
        return {
            name.removeprefix(names.NAMING.prefix): x for name, x in names.weights(self).items()
        }

    def get_config(self):
        return {**super().get_config(), "config": self.config.to_dict()}
