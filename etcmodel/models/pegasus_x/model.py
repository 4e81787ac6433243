"""PEGASUS-X: the encoder and the decoder (Phang et al. 2022)."""

import tf_keras

from etcmodel.models.pegasus_x import names, parts
from etcmodel.models.pegasus_x.config import PegasusXConfig
from etcmodel.models.pegasus_x.decoder import PegasusXDecoder
from etcmodel.models.pegasus_x.encoder import PegasusXEncoder
from etcmodel.models.seq2seq import model

__all__ = ["PegasusXModel"]


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class PegasusXModel(model.EncoderDecoder):
    """PEGASUS-X's encoder and decoder, without logits: ids to the decoder's hidden states.

    Args:
        config: `PegasusXConfig` or its dict.
        name: name of the layer.
    Call args:
        **arguments: see `seq2seq.model.EncoderDecoder`.
        position_ids: int [batch or 1, length], or None. Positions of the encoder's tokens.
    Returns:
        dict: see there; the encoder's hidden states and attentions are accompanied by those of its
        global tokens (`encoder_global_states`, `encoder_global_attentions`): see `PegasusXEncoder`.
    Raises:
        ValueError: unless ids or embeddings are given for both encoder and decoder.

    >>> config = etcmodel.PegasusXConfig(d_model=16, encoder_layers=1, decoder_layers=1)
    >>> model = etcmodel.PegasusXModel(config)
    >>> model([[7, 8, 1]], decoder_input_ids=[[0, 5]])["last_hidden_state"].shape
    TensorShape([1, 2, 16])
    """

    config_class, encoder_class, decoder_class = PegasusXConfig, PegasusXEncoder, PegasusXDecoder
    make_token_embedding = parts.make_token_embedding
    naming = names.NAMING
    architecture = "PegasusXModel"

    def __init__(self, config: PegasusXConfig | dict, name: str = "pegasus_x", **kwargs):
        super().__init__(config, name, **kwargs)

    def weights_by_name(self):
        """The variables by their names in Hugging Face's files: dict of `seq2seq.names.Weight`."""
        return {
            name.removeprefix(names.NAMING.prefix): x for name, x in names.weights(self).items()
        }
