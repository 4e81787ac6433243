"""LED: Longformer's encoder and BART's decoder (Beltagy et al. 2020, section 7)."""

import tensorflow as tf
import tf_keras

from etcmodel.layers import base, sublayers
from etcmodel.models import conveniences
from etcmodel.models.led import names, parts
from etcmodel.models.led.config import LedConfig
from etcmodel.models.led.decoder import LedDecoder
from etcmodel.models.led.encoder import LedEncoder
from etcmodel.models.seq2seq import inputs
from etcmodel.models.seq2seq import labels as labels_lib
from etcmodel.models.seq2seq import outputs as outputs_lib

__all__ = ["LedModel"]


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class LedModel(inputs.OptionalInput, conveniences.Pretrained, base.Layer):
    """Encoder and decoder, without a head.

    Args:
        config: `LedConfig` or its dict.
        name: name of the layer.
    Call args:
        input_ids: int [batch, length]; or a dict of arguments; or None with `inputs_embeds`.
        attention_mask: int or bool [batch, length], or None. 0 is padding, 1 a local token, 2 a
            global one. Without it ids of padding are tokens as others.
        global_attention_mask: what is global beside that: see `LedEncoder`.
        decoder_input_ids: int [batch, target_length], or None: `input_ids`, one place later.
        decoder_attention_mask: 0/1 int [batch, target_length], or None. 0 for ids that no later
            one sees.
        inputs_embeds: float [batch, length, d_model], or None: in place of embeddings of the ids.
        position_ids: int [batch or 1, length], or None: by place.
        decoder_inputs_embeds: float [batch, target_length, d_model], or None.
        encoder_output: float [batch, length, d_model], or None: of `encoder`, in place of the ids.
        output_hidden_states: bool.
        output_attentions: bool. They take memory of the square of the length.
        training: bool.
    Returns:
        dict: `last_hidden_state`, the decoder's, float [batch, target_length, d_model];
        `encoder_last_hidden_state`, float [batch, length, d_model]; where they are asked for,
        tuples by layer: `encoder_hidden_states`, `decoder_hidden_states`, `encoder_attentions`,
        `encoder_global_attentions`, `decoder_attentions`, `cross_attentions`: see `LedEncoder` and
        `seq2seq.decoder.Decoder`.
    Raises:
        ValueError: if inputs do not fit each other or the model, or there is nothing to make
            decoder ids of.
    """

    def __init__(self, config, name="led", **kwargs):
        super().__init__(name=name, **kwargs)
        self._autocast = False  # The first argument is ids.
        self.config = LedConfig.of(config)
        self.shared = parts.make_token_embedding(self)
        policy = {"dtype": self.dtype_policy}
        self.encoder = LedEncoder(self.config, self.shared, **policy)
        self.decoder = LedDecoder(self.config, self.shared, **policy)

    def build(self, input_shape):
        ids = tf.TensorShape([None, None])
        for layer in (self.shared, self.encoder, self.decoder):
            sublayers.build_sublayer(layer, ids)
        super().build(input_shape)

    def call(
        self,
        input_ids=None,
        attention_mask=None,
        global_attention_mask=None,
        decoder_input_ids=None,
        decoder_attention_mask=None,
        inputs_embeds=None,
        position_ids=None,
        decoder_inputs_embeds=None,
        encoder_output=None,
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
                input_ids,
                attention_mask,
                global_attention_mask,
                inputs_embeds,
                position_ids,
                **wanted,
            )
        if decoder_input_ids is None and decoder_inputs_embeds is None:
            decoder_input_ids = self.decoder_ids(input_ids)
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

    def decoder_ids(self, ids):
        """The decoder's ids for labels or inputs: see `seq2seq.labels.decoder_ids`."""
        if ids is None:
            raise ValueError(
                "Give `decoder_input_ids`, or `labels` or `input_ids` to make them of."
            )
        return labels_lib.decoder_ids(
            sublayers.as_ids(ids), self.config.decoder_start_token_id, self.config.pad_token_id
        )

    def get_token_embedding_table(self):
        """The table of token embeddings: variable [vocab_size, d_model]."""
        sublayers.build_sublayer(self.shared, tf.TensorShape([None, None]))
        return self.shared.embedding_table

    architecture = "LEDModel"
    naming = names.NAMING
    config_for = staticmethod(names.check_copies)

    def weights_by_name(self):
        """The variables by their names in Hugging Face's files: dict of `seq2seq.names.Weight`."""
        found = names.weights(self)
        return {name.removeprefix(names.NAMING.prefix): x for name, x in found.items()}

    def get_config(self):
        return {**super().get_config(), "config": self.config.to_dict()}
