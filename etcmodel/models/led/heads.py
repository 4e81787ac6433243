"""LED with heads, like Hugging Face's classes of the same names."""

import abc

import tensorflow as tf
import tf_keras

from etcmodel.layers import base, sublayers
from etcmodel.layers import heads as head_layers
from etcmodel.models import conveniences
from etcmodel.models.heads import losses
from etcmodel.models.led import names
from etcmodel.models.led.config import LedConfig
from etcmodel.models.led.model import LedModel
from etcmodel.models.seq2seq import generating, inputs
from etcmodel.models.seq2seq import outputs as outputs_lib
from etcmodel.models.seq2seq.names import Weight

__all__ = ["LedForConditionalGeneration", "LedForQuestionAnswering"]


class LedHead(inputs.OptionalInput, conveniences.Pretrained, base.Layer, abc.ABC):
    """The base of LED's heads: an `LedModel` with a layer on its decoder's output.

    Args:
        config: `LedConfig` or its dict.
        name: name of the layer.
        **kwargs: of the Keras layer.
    """

    naming = names.NAMING

    def __init__(self, config, name=None, **kwargs):
        super().__init__(name=name, **kwargs)
        self._autocast = False  # The first argument is ids.
        self.config = LedConfig.of(config)
        self.led = LedModel(self.config, dtype=self.dtype_policy)

    encoder = property(lambda self: self.led.encoder)
    decoder = property(lambda self: self.led.decoder)

    def build(self, input_shape):
        sublayers.build_sublayer(self.led, input_shape)
        super().build(input_shape)

    def get_token_embedding_table(self):
        """The table of token embeddings: variable [vocab_size, d_model]."""
        return self.led.get_token_embedding_table()

    def weights_by_name(self):
        """The variables by their names in Hugging Face's files: dict of `seq2seq.names.Weight`."""
        return {**names.weights(self.led), **self.head_weights()}

    @abc.abstractmethod
    def head_weights(self):
        """The same for the head alone."""

    def get_config(self):
        return {**super().get_config(), "config": self.config.to_dict()}


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class LedForConditionalGeneration(generating.Generating, LedHead):
    """LED for conditional generation, such as summarization of long texts.

    Args:
        config: `LedConfig` or its dict.
        name: name of the layer.
    Call args:
        input_ids, attention_mask, **arguments: see `LedModel`; decoder ids are made from the labels
            if these are given.
        labels: int [batch, target_length], or None. -100 is ignored; padding is not.
    Returns:
        dict as of `LedModel`, with `logits`, float32 [batch, target_length, vocab_size], in place
        of `last_hidden_state`; with labels `loss`, float32 scalar, the mean over all labels.
    Raises:
        ValueError: see `LedModel`.

    >>> config = etcmodel.LedConfig(d_model=16, encoder_layers=1, decoder_layers=1)
    >>> outputs = etcmodel.LedForConditionalGeneration(config)([[0, 7, 8, 2]], labels=[[5, 2]])
    >>> outputs["logits"].shape, outputs["loss"].shape
    (TensorShape([1, 2, 50265]), TensorShape([]))
    """

    architecture = "LEDForConditionalGeneration"
    encoder_arguments = ("global_attention_mask", "position_ids")

    def __init__(
        self, config: LedConfig | dict, name: str = "led_for_conditional_generation", **kwargs
    ):
        super().__init__(config, name=name, **kwargs)

    def build(self, input_shape):
        self.logits_bias = self.add_weight(
            name="final_logits_bias",
            shape=(1, self.config.vocab_size),
            initializer="zeros",
            trainable=False,
        )
        super().build(input_shape)

    def call(self, input_ids=None, attention_mask=None, labels=None, **arguments):
        given = (arguments.get("decoder_input_ids"), arguments.get("decoder_inputs_embeds"))
        if labels is not None and given == (None, None):
            arguments = {**arguments, "decoder_input_ids": self.led.decoder_ids(labels)}
        outputs = self.led(input_ids, attention_mask, **arguments)
        return outputs_lib.with_logits(self, outputs, labels)

    def logits(self, hidden):
        """Logits of the decoder's output, float [..., d_model]: float32 [..., vocab_size]."""
        logits = outputs_lib.tied_logits(hidden, self.led.shared.embedding_table)
        return logits + tf.cast(self.logits_bias[0], tf.float32)

    def generate(self, input_ids, attention_mask=None, global_attention_mask=None, **options):
        """Generates sequences: see `seq2seq.generating.Generating.generate`.

        Args:
            input_ids, **options: see there. Global tokens are given as in a call of the model.
            attention_mask, global_attention_mask, position_ids: see `LedModel`.
        Returns:
            See there.
        """
        if global_attention_mask is not None:
            options["global_attention_mask"] = global_attention_mask
        return super().generate(input_ids, attention_mask, **options)

    @property
    def max_generated_length(self):
        """int. The most tokens of a sequence: its last token is never an input."""
        return self.config.max_decoder_position_embeddings + 1

    def head_weights(self):
        return {"final_logits_bias": Weight(self.logits_bias)}


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class LedForQuestionAnswering(LedHead):
    """Extractive question answering by the decoder's hidden states, which reads the input again.

    Args:
        config: `LedConfig` or its dict.
        name: name of the layer.
    Call args:
        input_ids, attention_mask, **arguments: of `LedModel`.
        start_positions, end_positions: int [batch], or None. Those beyond the text are ignored.
    Returns:
        dict as of `LedModel`, with `start_logits` and `end_logits`, float32 [batch, length],
        including those of padding, in place of `last_hidden_state`; with positions `loss`, float32
        scalar, the mean of both losses.
    Raises:
        ValueError: see `LedModel`; also if only one of the two kinds of positions is given.

    >>> config = etcmodel.LedConfig(d_model=16, encoder_layers=1, decoder_layers=1)
    >>> outputs = etcmodel.LedForQuestionAnswering(config)([[0, 7, 2, 2, 8, 2]])
    >>> outputs["start_logits"].shape, outputs["end_logits"].shape
    (TensorShape([1, 6]), TensorShape([1, 6]))
    """

    architecture = "LEDForQuestionAnswering"

    def __init__(
        self, config: LedConfig | dict, name: str = "led_for_question_answering", **kwargs
    ):
        super().__init__(config, name=name, **kwargs)
        self.span = head_layers.SpanLogits(
            ("start", "end"), self.config.init_std, name="qa_outputs", dtype="float32"
        )

    def build(self, input_shape):
        sublayers.build_sublayer(self.span, tf.TensorShape([None, None, self.config.d_model]))
        super().build(input_shape)

    def call(
        self,
        input_ids=None,
        attention_mask=None,
        start_positions=None,
        end_positions=None,
        **arguments,
    ):
        outputs = self.led(input_ids, attention_mask, **arguments)
        logits = self.span(outputs.pop("last_hidden_state"))
        found = {f"{end}_logits": logits[end] for end in ("start", "end")}
        if (start_positions is None) != (end_positions is None):
            raise ValueError("Give `start_positions` and `end_positions`, or neither.")
        if start_positions is not None:
            loss = losses.PositionCrossentropy().call
            ends = loss(start_positions, logits["start"]), loss(end_positions, logits["end"])
            found["loss"] = tf.add_n([tf.reduce_mean(x) for x in ends]) / 2
        return {**found, **outputs}

    def head_weights(self):
        return {
            "qa_outputs.weight": Weight(self.span.kernel),
            "qa_outputs.bias": Weight(self.span.bias),
        }
