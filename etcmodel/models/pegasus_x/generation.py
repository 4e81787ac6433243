"""PEGASUS-X for conditional generation: logits, loss, sequences (Phang et al. 2022)."""

import tf_keras

from etcmodel.models.pegasus_x import names
from etcmodel.models.pegasus_x.config import PegasusXConfig
from etcmodel.models.pegasus_x.model import PegasusXModel
from etcmodel.models.seq2seq import model
from etcmodel.models.seq2seq import outputs as outputs_lib

__all__ = ["PegasusXForConditionalGeneration"]


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class PegasusXForConditionalGeneration(model.ConditionalGeneration, PegasusXModel):
    """PEGASUS-X for conditional generation, such as summarization of long texts.

    Args:
        config: `PegasusXConfig` or its dict.
        name: name of the layer.
    Call args: see `seq2seq.model.ConditionalGeneration` and `PegasusXModel`.
    Returns:
        dict: see there.
    Raises:
        ValueError: see there.

    >>> config = etcmodel.PegasusXConfig(d_model=16, encoder_layers=1, decoder_layers=1)
    >>> outputs = etcmodel.PegasusXForConditionalGeneration(config)([[7, 8, 1]], labels=[[5, 1]])
    >>> outputs["logits"].shape, outputs["loss"].shape
    (TensorShape([1, 2, 96103]), TensorShape([]))
    """

    architecture = "PegasusXForConditionalGeneration"
    encoder_arguments = ("position_ids",)

    def __init__(
        self,
        config: PegasusXConfig | dict,
        name: str = "pegasus_x_for_conditional_generation",
        **kwargs,
    ):
        super().__init__(config, name=name, **kwargs)

    def logits(self, hidden):
        """Logits of the decoder's output, float [..., d_model]: float32 [..., vocab_size]."""
        return outputs_lib.tied_logits(hidden, self.get_token_embedding_table())

    def weights_by_name(self):
        """The variables by their names in Hugging Face's files: dict of `seq2seq.names.Weight`."""
        return names.weights(self)
