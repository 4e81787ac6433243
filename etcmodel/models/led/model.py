"""LED: Longformer's encoder and BART's decoder (Beltagy et al. 2020, section 7)."""

import tf_keras

from etcmodel.models.led import names, parts
from etcmodel.models.led.config import LedConfig
from etcmodel.models.led.decoder import LedDecoder
from etcmodel.models.led.encoder import LedEncoder
from etcmodel.models.seq2seq import model

__all__ = ["LedModel"]


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class LedModel(model.EncoderDecoder):
    """LED's encoder and decoder, without a head.

    Args:
        config: `LedConfig` or its dict.
        name: name of the layer.
    Call args:
        input_ids, decoder_attention_mask, **arguments: see `seq2seq.model.EncoderDecoder`.
        attention_mask: int or bool [batch, length], or None. 0 is padding, 1 a local token, 2 a
            global one. Without it, padding ids count as ordinary tokens.
        global_attention_mask: further global tokens: see `LedEncoder`.
        decoder_input_ids: int [batch, target_length], or None: `input_ids`, shifted by one
            position.
        position_ids: int [batch or 1, length], or None: 0, 1, 2 …
    Returns:
        dict: see there; the encoder's attentions are accompanied by `encoder_global_attentions`:
        see `LedEncoder`.
    Raises:
        ValueError: if inputs are inconsistent with each other or the model, or there is nothing to
            make decoder ids from.

    >>> config = etcmodel.LedConfig(d_model=16, encoder_layers=1, decoder_layers=1)
    >>> model = etcmodel.LedModel(config)
    >>> model([[0, 7, 8, 2]], decoder_input_ids=[[2, 5]])["last_hidden_state"].shape
    TensorShape([1, 2, 16])
    """

    config_class, encoder_class, decoder_class = LedConfig, LedEncoder, LedDecoder
    make_token_embedding = parts.make_token_embedding
    decoder_ids_of = "`labels` or `input_ids`"
    architecture = "LEDModel"
    naming = names.NAMING

    def __init__(self, config: LedConfig | dict, name: str = "led", **kwargs):
        super().__init__(config, name, **kwargs)

    def call(
        self,
        input_ids=None,
        attention_mask=None,
        global_attention_mask=None,
        decoder_input_ids=None,
        decoder_attention_mask=None,
        **arguments,
    ):
        if decoder_input_ids is None and arguments.get("decoder_inputs_embeds") is None:
            decoder_input_ids = self.decoder_ids(input_ids, "input_ids")
        arguments["global_attention_mask"] = global_attention_mask
        return super().call(
            input_ids, attention_mask, decoder_input_ids, decoder_attention_mask, **arguments
        )

    def weights_by_name(self):
        """The variables by their names in Hugging Face's files: dict of `seq2seq.names.Weight`."""
        found = names.weights(self)
        return {name.removeprefix(names.NAMING.prefix): x for name, x in found.items()}
