"""PEGASUS-X for conditional generation: logits, loss, sequences (Phang et al. 2022)."""

import tf_keras

from etcmodel.models.pegasus_x import names
from etcmodel.models.pegasus_x.model import PegasusXModel
from etcmodel.models.seq2seq import generating
from etcmodel.models.seq2seq import labels as labels_lib
from etcmodel.models.seq2seq import outputs as outputs_lib

__all__ = ["PegasusXForConditionalGeneration"]


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class PegasusXForConditionalGeneration(generating.Generating, PegasusXModel):
    """A text of any length to another text.

    Args:
        config: `PegasusXConfig` or its dict.
        name: name of the layer.
    Call args:
        input_ids, attention_mask: see `PegasusXModel`.
        decoder_input_ids: int [batch, target_length], or None: made of the labels.
        decoder_attention_mask: see `PegasusXModel`.
        labels: int [batch, target_length], or None. -100 where there is none.
        **kwargs: further arguments of `PegasusXModel`.
    Returns:
        dict: `logits`, float32 [batch, target_length, vocab_size]; with labels `loss`, float32
        scalar, the mean over all labels; and what `PegasusXModel` returns, without
        `last_hidden_state`.
    Raises:
        ValueError: if there are neither decoder ids nor labels to make them of, or the config has
            no start token for these.
    """

    architecture = "PegasusXForConditionalGeneration"
    encoder_arguments = ("position_ids",)

    def __init__(self, config, name="pegasus_x_for_conditional_generation", **kwargs):
        super().__init__(config, name=name, **kwargs)

    def call(
        self,
        input_ids=None,
        attention_mask=None,
        decoder_input_ids=None,
        decoder_attention_mask=None,
        labels=None,
        training=None,
        **kwargs,
    ):
        if decoder_input_ids is None and kwargs.get("decoder_inputs_embeds") is None:
            decoder_input_ids = self.decoder_ids(labels)
        outputs = super().call(
            input_ids,
            attention_mask,
            decoder_input_ids,
            decoder_attention_mask,
            training=training,
            **kwargs,
        )
        logits = self.logits(outputs.pop("last_hidden_state"))
        loss = {} if labels is None else {"loss": labels_lib.loss(logits, labels)}
        return {"logits": logits, **loss, **outputs}

    def decoder_ids(self, labels):
        """The decoder's ids for labels: see `seq2seq.labels.decoder_ids`."""
        if labels is None:
            raise ValueError("Give `decoder_input_ids`, or `labels` to make them of.")
        return labels_lib.decoder_ids(
            labels, self.config.decoder_start_token_id, self.config.pad_token_id
        )

    def logits(self, hidden):
        """float32 [..., vocab_size] of the decoder's output, float [..., d_model]."""
        return outputs_lib.tied_logits(hidden, self.get_token_embedding_table())

    def weights_by_name(self):
        """The variables by their names in Hugging Face's files: dict of `seq2seq.names.Weight`."""
        return names.weights(self)
