"""LED (Beltagy et al. 2020, section 7): Longformer's encoder, BART's decoder, heads, weights."""

import tensorflow as tf
import tf_keras

from etcmodel import tensor_utils
from etcmodel.layers import base, normalization, stack, sublayers
from etcmodel.models import conveniences
from etcmodel.models.led.config import LedConfig
from etcmodel.models.longformer import modeling as longformer
from etcmodel.models.longformer.modeling import SlidingWindowLayers
from etcmodel.models.seq2seq import decoder, generating
from etcmodel.models.seq2seq import model as seq2seq_model
from etcmodel.models.systems import dense_names, logits_names, norm_names

_SIDE = r"(?:led/)?(encoder|decoder)"
_ATTENTION = rf"{_SIDE}/layers/attention_layer_(\d+)/self_attention"
_IN_ATTENTION = r"led.\1.layers.\2.self_attn"
WEIGHTS = seq2seq_model.bart_weights(
    "led",
    (
        (rf"{_SIDE}/position_embedding/embedding_table", r"led.\1.embed_positions.weight"),
        *norm_names(rf"{_SIDE}/embedding_norm", r"led.\1.layernorm_embedding"),
        *dense_names(
            rf"{_ATTENTION}/((?:query|key|value)(?:_global)?)/linear",
            rf"{_IN_ATTENTION}.longformer_self_attn.\3",
        ),
        *dense_names(f"{_ATTENTION}/output", f"{_IN_ATTENTION}.output"),
        ("final_logits_bias", "final_logits_bias"),
        *logits_names("qa_outputs", "qa_outputs"),
    ),
    _SIDE,
    optional=("final_logits_bias",),
)


class LedStack(seq2seq_model.TokenStack):
    """The base of encoder and decoder: tables of positions, and normalized embeddings."""

    config_class = LedConfig
    final_norm = None
    positions_entry = property(lambda self: f"max_{self.side}_position_embeddings")

    def make_positions(self):
        super().make_positions()
        self.embedding_norm = normalization.LayerNormalization(
            axis=-1,
            epsilon=self.config.layer_norm_eps,
            name="embedding_norm",
            dtype=self.dtype_policy,
        )

    def parts(self):
        return [self.token_embedding, self.position_embedding, self.embedding_norm, self.layers]

    def add_positions(self, hidden, position_ids):
        return self.embedding_norm(super().add_positions(hidden, position_ids))


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class LedEncoderLayers(base.Configured, SlidingWindowLayers):
    """The encoder's layers, each with its own window: see `SlidingWindowLayers`.

    Args:
        config: `LedConfig` or its dict.
        name: name of the layer.
    """

    def __init__(self, config, name="layers", **kwargs):
        self.config = LedConfig.of(config)
        super().__init__(
            stack.Stream("tokens", self.config.d_model, self.config.encoder_ffn_dim),
            self.config.radii,
            self.config.encoder_attention_heads,
            name=name,
            **self.config.stack_options(),
            **kwargs,
        )

    make_feed_forward = seq2seq_model.BartLayers.make_feed_forward


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class LedEncoder(LedStack):
    """LED's encoder: token ids to hidden states, without padding to a multiple of the window.

    Args:
        config: `LedConfig` or its dict.
        token_embedding: `EmbeddingLookup` or None. A lookup shared with a decoder.
        name: name of the layer.
    Call args:
        input_ids: int [batch, length], or None with `inputs_embeds`.
        attention_mask, global_attention_mask: see `LongformerModel`. Without an `attention_mask`,
            padding ids count as ordinary tokens; without a `global_attention_mask` the config's
            `global_positions` are global.
        inputs_embeds: float [batch, length, d_model], or None: in place of embeddings of the ids.
        position_ids: int [batch or 1, length], or None: 0, 1, 2 …, padding included.
        output_hidden_states: bool.
        output_attentions: bool. Needs memory quadratic in the length.
        training: bool.
    Returns:
        dict: `last_hidden_state`, float [batch, length, d_model]; on request, tuples:
        `hidden_states` of the embeddings and each layer's output; by layer `attentions` and, if
        there may be global tokens, `global_attentions`: see `LongformerModel`.
    Raises:
        ValueError: if the inputs are inconsistent with each other or the model; in a graph, values
            known only at run time raise `tf.errors.InvalidArgumentError`.
    """

    layers_class = LedEncoderLayers

    def call(
        self,
        input_ids=None,
        attention_mask=None,
        global_attention_mask=None,
        inputs_embeds=None,
        position_ids=None,
        output_hidden_states=False,
        output_attentions=False,
        training=None,
    ):
        hidden, attention_mask = self.embedded(
            input_ids, attention_mask, inputs_embeds, position_ids, training, is_mask_binary=False
        )
        shape = tensor_utils.get_shape_list(hidden)[:2]
        if global_attention_mask is None and self.config.global_positions:
            global_attention_mask = self.config.global_positions
        asserts = []
        token_mask, global_tokens = longformer.attention_of(
            attention_mask, global_attention_mask, shape, self.config, asserts
        )
        with tf.control_dependencies(asserts):
            hidden = tf.identity(hidden)
        attention = {"token_mask": token_mask, "global_tokens": global_tokens}
        if not (output_hidden_states or output_attentions):
            hidden = self.layers(hidden, training=training, **attention)
            return seq2seq_model.finished(self, [hidden])
        states, attentions = self.layers.observed(
            hidden, training, with_attentions=output_attentions, **attention
        )
        outputs = seq2seq_model.finished(self, states, output_hidden_states)
        return {**outputs, **{name: tuple(values) for name, values in attentions.items()}}


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class LedDecoderLayers(decoder.DecoderLayers, seq2seq_model.BartLayers):
    """The decoder's layers: see `seq2seq.decoder.DecoderLayers` and `seq2seq.model.BartLayers`."""

    config_class = LedConfig


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class LedDecoder(decoder.Decoder, LedStack):
    """Decoder ids and an encoder's output to hidden states: see `seq2seq.decoder.Decoder`."""

    layers_class = LedDecoderLayers
    mask_kinds = longformer.KINDS


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class LedModel(seq2seq_model.EncoderDecoder):
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
    reads_again = True
    architecture = "LEDModel"

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
        arguments["global_attention_mask"] = global_attention_mask
        return super().call(
            input_ids, attention_mask, decoder_input_ids, decoder_attention_mask, **arguments
        )


# LED with heads, like Hugging Face's classes of the same names.


class LedHead(conveniences.Pretrained, base.TokenLayer):
    """The base of LED's heads: an `LedModel` with a layer on its decoder's output.

    Args:
        config: `LedConfig` or its dict.
        name: name of the layer.
        **kwargs: of the Keras layer.
    """

    config_class = LedConfig

    def __init__(self, config, name=None, **kwargs):
        super().__init__(config, name, **kwargs)
        self.led = LedModel(self.config, dtype=self.dtype_policy)
        self.led._become_part_of(self)

    encoder = property(lambda self: self.led.encoder)
    decoder = property(lambda self: self.led.decoder)

    def build(self, input_shape):
        sublayers.build_sublayer(self.led, input_shape)
        super().build(input_shape)

    def call(self, input_ids=None, attention_mask=None, **arguments):
        return self.led(input_ids, attention_mask, **arguments)

    def get_token_embedding_table(self):
        """The table of token embeddings: variable [vocab_size, d_model]."""
        return self.led.get_token_embedding_table()


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class LedForConditionalGeneration(seq2seq_model.LogitsBias, generating.Generating, LedHead):
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

    def call(self, input_ids=None, attention_mask=None, labels=None, **arguments):
        given = (arguments.get("decoder_input_ids"), arguments.get("decoder_inputs_embeds"))
        if labels is not None and given == (None, None):
            arguments = {**arguments, "decoder_input_ids": self.led.decoder_ids(labels)}
        outputs = super().call(input_ids, attention_mask, **arguments)
        return seq2seq_model.with_logits(self, outputs, labels)

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


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class LedForQuestionAnswering(seq2seq_model.QuestionAnswering, LedHead):
    """Extractive question answering by the decoder's hidden states, which reads the input again.

    Args:
        config: `LedConfig` or its dict.
        name: name of the layer.
    Call args: see `seq2seq.model.QuestionAnswering` and `LedModel`.
    Returns:
        dict: see `seq2seq.model.with_spans`; there are logits of padding, too.
    Raises:
        ValueError: see there and `LedModel`.

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
