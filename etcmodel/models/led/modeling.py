"""LED (Beltagy et al. 2020): encoder, decoder, heads and their weights in Hugging Face files."""

import tensorflow as tf
import tf_keras

from etcmodel import tensor_utils
from etcmodel.layers import (
    EmbeddingLookup,
    RecomputingDropout,
    base,
    feed_forward,
    normalization,
    stack,
    sublayers,
)
from etcmodel.layers import heads as head_layers
from etcmodel.layers.attention.decoder import CausalSelfAttention, CrossAttention
from etcmodel.models import conveniences
from etcmodel.models.led.config import LedConfig
from etcmodel.models.longformer import modeling as longformer
from etcmodel.models.longformer.modeling import SlidingWindowLayers
from etcmodel.models.seq2seq import decoder, generating, inputs
from etcmodel.models.seq2seq import model as seq2seq_model
from etcmodel.models.systems import Weights, dense_names, norm_names
from etcmodel.ops import argument_checks

__all__ = [
    "WEIGHTS",
    "LedEncoder",
    "LedForConditionalGeneration",
    "LedForQuestionAnswering",
    "LedModel",
    "make_feed_forward",
    "make_token_embedding",
    "stack_options",
]

_TABLE = "led.shared.weight"
# Other names of the token embeddings in older files.
_COPIES = (
    "led.encoder.embed_tokens.weight",
    "led.decoder.embed_tokens.weight",
    "lm_head.weight",
)
_SIDE = r"(?:led/)?(encoder|decoder)"
_SELF, _CROSS, _REST = (
    rf"{_SIDE}/layers/{kind}_layer_(\d+)"
    for kind in ("attention", "cross_attention", "feed_forward")
)
_IN_LAYER = r"led.\1.layers.\2"
_DECODER = {
    "query": "q_proj",
    "key": "k_proj",
    "value": "v_proj",
    "output_projection": "out_proj",
}
WEIGHTS = Weights(
    prefix="led.",
    names=(
        (r"(?:led/)?shared/embedding_table", _TABLE),
        (rf"{_SIDE}/position_embedding/embedding_table", r"led.\1.embed_positions.weight"),
        *norm_names(rf"{_SIDE}/embedding_norm", r"led.\1.layernorm_embedding"),
        *(
            pair
            for name in ("query", "key", "value", "query_global", "key_global", "value_global")
            for pair in dense_names(
                f"{_SELF}/self_attention/{name}/linear",
                f"{_IN_LAYER}.self_attn.longformer_self_attn.{name}",
            )
        ),
        *dense_names(f"{_SELF}/self_attention/output", f"{_IN_LAYER}.self_attn.output"),
        *norm_names(f"{_SELF}/layer_norm", f"{_IN_LAYER}.self_attn_layer_norm"),
        *(
            pair
            for block, their_block in ((_SELF, "self_attn"), (_CROSS, "encoder_attn"))
            for name, theirs in _DECODER.items()
            for pair in dense_names(
                f"{block}/attention/{name}", f"{_IN_LAYER}.{their_block}.{theirs}"
            )
        ),
        *norm_names(f"{_CROSS}/layer_norm", f"{_IN_LAYER}.encoder_attn_layer_norm"),
        *dense_names(f"{_REST}/feed_forward/inner", f"{_IN_LAYER}.fc1"),
        *dense_names(f"{_REST}/feed_forward/output", f"{_IN_LAYER}.fc2"),
        *norm_names(f"{_REST}/layer_norm", f"{_IN_LAYER}.final_layer_norm"),
        ("final_logits_bias", "final_logits_bias"),
        ("qa_outputs/weights", "qa_outputs.weight"),
        ("qa_outputs/bias", "qa_outputs.bias"),
    ),
    copies=dict.fromkeys(_COPIES, _TABLE),
    aliases={_TABLE: _COPIES},
    optional=("final_logits_bias",),
)


# Shared parts of LED's encoder and decoder.


class LedStack(seq2seq_model.TokenStack):
    """Embeddings of tokens and positions, layer normalization, and a stack of layers.

    Args:
        layers_class: class of the layers, created from the config.
        num_positions: str. The config's entry for the size of the table of positions.
        config: `LedConfig` or its dict.
        token_embedding: `EmbeddingLookup` or None. A lookup shared with another stack.
        **kwargs: of the Keras layer.
    """

    def __init__(self, layers_class, num_positions, config, token_embedding=None, **kwargs):
        super().__init__(**kwargs)
        self._autocast = False  # The first argument is ids.
        self.config = config = LedConfig.of(config)
        self.num_positions = num_positions
        policy = {"dtype": self.dtype_policy}
        self.token_embedding = token_embedding or make_token_embedding(self)
        self.position_embedding = EmbeddingLookup(
            getattr(config, num_positions),
            config.d_model,
            initializer_range=config.init_std,
            name="position_embedding",
            **policy,
        )
        self.embedding_norm = normalization.LayerNormalization(
            axis=-1, epsilon=config.layer_norm_eps, name="embedding_norm", **policy
        )
        self.dropout = RecomputingDropout(config.dropout, name="dropout", **policy)
        self.layers = layers_class(config, **policy)

    def build(self, input_shape):
        ids = tf.TensorShape([None, None])
        hidden = tf.TensorShape([None, None, self.config.d_model])
        for layer, shape in (
            (self.token_embedding, ids),
            (self.position_embedding, ids),
            (self.embedding_norm, hidden),
            (self.layers, hidden),
        ):
            sublayers.build_sublayer(layer, shape)
        super().build(input_shape)

    def embed(self, ids, embeddings, start=0, training=None, position_ids=None):
        """Embeds ids for the first layer.

        Args:
            ids: int [batch, length], or None with embeddings.
            embeddings: float [batch, length, d_model], or None.
            start: int or int32 scalar. The position of the first id.
            training: bool.
            position_ids: int [batch or 1, length], or None for consecutive ones.
        Returns:
            float [batch, length, d_model].
        Raises:
            ValueError: if there are more tokens than positions; in a graph
                `tf.errors.InvalidArgumentError`.
        """
        ids = None if ids is None else sublayers.as_ids(ids)
        hidden = inputs.embed(self.token_embedding, ids, embeddings)
        if position_ids is None:
            length = hidden.shape[1] if hidden.shape[1] is not None else tf.shape(hidden)[1]
            position_ids = (start + tf.range(length))[tf.newaxis]
        limit = getattr(self.config, self.num_positions)
        position_ids = argument_checks.in_range(
            "position_ids", position_ids, 0, limit, f"{limit}, which is `{self.num_positions}`"
        )
        positions = self.position_embedding(position_ids)
        hidden = self.embedding_norm(tf.cast(hidden, self.compute_dtype) + positions)
        return self.dropout(hidden, training=training)

    def finish(self, hidden, training=None):
        """Returns the output, here that of the layers unchanged."""
        del training
        return hidden


def make_token_embedding(layer):
    """Creates the token embeddings of a layer with an `LedConfig`."""
    return seq2seq_model.make_token_embedding(layer, layer.config.init_std)


def stack_options(config):
    """Arguments of `TransformerStack` shared by encoder and decoder: dict."""
    return {
        "hidden_act": config.activation,
        "hidden_dropout_prob": config.dropout,
        "attention_probs_dropout_prob": config.attention_dropout,
        "initializer_range": config.init_std,
        "grad_checkpointing_period": config.grad_checkpointing_period,
        "layer_norm_epsilon": config.layer_norm_eps,
    }


def make_feed_forward(layers, stream):
    """Creates a feed-forward layer for a stack with an `LedConfig`."""
    return feed_forward.FeedForward(
        stream.hidden_size,
        stream.intermediate_size,
        layers.hidden_act,
        dropout_prob=layers.config.activation_dropout,
        initializer_range=layers.config.init_std,
        dtype=layers.dtype_policy,
    )


# LED's encoder: Longformer's attention (Beltagy et al. 2020, section 7).


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class LedEncoderLayers(SlidingWindowLayers):
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
            **stack_options(self.config),
            **kwargs,
        )

    def make_feed_forward(self, index, stream):
        del index
        return make_feed_forward(self, stream)

    def get_config(self):
        return {**tf_keras.layers.Layer.get_config(self), "config": self.config.to_dict()}


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

    def __init__(self, config, token_embedding=None, name="encoder", **kwargs):
        super().__init__(
            LedEncoderLayers,
            "max_encoder_position_embeddings",
            config,
            token_embedding,
            name=name,
            **kwargs,
        )

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
        given = {
            "input_ids": input_ids,
            "inputs_embeds": inputs_embeds,
            "attention_mask": attention_mask,
            "position_ids": position_ids,
        }
        given = inputs.of_encoder(
            given, self.config.d_model, self.config.vocab_size, is_mask_binary=False
        )
        hidden = self.embed(
            given["input_ids"], given["inputs_embeds"], 0, training, given["position_ids"]
        )
        shape = tensor_utils.get_shape_list(hidden)[:2]
        if global_attention_mask is None and self.config.global_positions:
            global_attention_mask = self.config.global_positions
        asserts = []
        token_mask, global_tokens = longformer.attention_of(
            given["attention_mask"], global_attention_mask, shape, self.config, asserts
        )
        with tf.control_dependencies(asserts):
            hidden = tf.identity(hidden)
        attention = {"token_mask": token_mask, "global_tokens": global_tokens}
        if not (output_hidden_states or output_attentions):
            return {"last_hidden_state": self.layers(hidden, training=training, **attention)}
        states, attentions = self.layers.observed(
            hidden, training, with_attentions=output_attentions, **attention
        )
        outputs = {"last_hidden_state": states[-1]}
        if output_hidden_states:
            outputs["hidden_states"] = tuple(states)
        return {**outputs, **{name: tuple(values) for name, values in attentions.items()}}


# LED's decoder, which is BART's: causal attention, attention to the encoder, feed-forward.


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class LedDecoderLayers(decoder.DecoderLayers, stack.TransformerStack):
    """The decoder's layers: see `seq2seq.decoder.DecoderLayers`.

    Args:
        config: `LedConfig` or its dict.
        name: name of the layer.
    """

    def __init__(self, config, name="layers", **kwargs):
        self.config = LedConfig.of(config)
        super().__init__(
            self.config.decoder_layers,
            self.config.decoder_attention_heads,
            name=name,
            **stack_options(self.config),
            **kwargs,
        )
        self.make_blocks()

    @property
    def streams(self):
        return (stack.Stream("tokens", self.config.d_model, self.config.decoder_ffn_dim),)

    def make_attention(self, index):
        return CausalSelfAttention(**self._attention_options())

    def make_cross_attention(self, index):
        return CrossAttention(**self._attention_options())

    def _attention_options(self):
        return {
            "hidden_size": self.config.d_model,
            "num_heads": self.config.decoder_attention_heads,
            "use_bias": True,
            "att_dropout_prob": self.config.attention_dropout,
            "initializer_range": self.config.init_std,
            "dtype": self.dtype_policy,
        }

    def make_feed_forward(self, index, stream):
        del index
        return make_feed_forward(self, stream)

    def get_config(self):
        return {**tf_keras.layers.Layer.get_config(self), "config": self.config.to_dict()}


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class LedDecoder(decoder.Decoder, LedStack):
    """Decoder ids and an encoder's output to hidden states: see `seq2seq.decoder.Decoder`.

    Args:
        config: `LedConfig` or its dict.
        token_embedding: `EmbeddingLookup` or None. A lookup shared with an encoder.
        name: name of the layer.
    """

    mask_kinds = longformer.KINDS

    def __init__(self, config, token_embedding=None, name="decoder", **kwargs):
        super().__init__(
            LedDecoderLayers,
            "max_decoder_position_embeddings",
            config,
            token_embedding,
            name=name,
            **kwargs,
        )


# LED: Longformer's encoder and BART's decoder (Beltagy et al. 2020, section 7).


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
    make_token_embedding = make_token_embedding
    decoder_ids_of = "`labels` or `input_ids`"
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
        if decoder_input_ids is None and arguments.get("decoder_inputs_embeds") is None:
            decoder_input_ids = self.decoder_ids(input_ids, "input_ids")
        arguments["global_attention_mask"] = global_attention_mask
        return super().call(
            input_ids, attention_mask, decoder_input_ids, decoder_attention_mask, **arguments
        )


# LED with heads, like Hugging Face's classes of the same names.


class LedHead(inputs.OptionalInput, conveniences.Pretrained, base.Layer):
    """The base of LED's heads: an `LedModel` with a layer on its decoder's output.

    Args:
        config: `LedConfig` or its dict.
        name: name of the layer.
        **kwargs: of the Keras layer.
    """

    def __init__(self, config, name=None, **kwargs):
        super().__init__(name=name, **kwargs)
        self._autocast = False  # The first argument is ids.
        self.config = LedConfig.of(config)
        self.led = LedModel(self.config, dtype=self.dtype_policy)
        self.led._become_part_of(self)

    encoder = property(lambda self: self.led.encoder)
    decoder = property(lambda self: self.led.decoder)

    def build(self, input_shape):
        sublayers.build_sublayer(self.led, input_shape)
        super().build(input_shape)

    def get_token_embedding_table(self):
        """The table of token embeddings: variable [vocab_size, d_model]."""
        return self.led.get_token_embedding_table()

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
        return seq2seq_model.with_logits(self, outputs, labels)

    def logits(self, hidden):
        """Logits of the decoder's output, float [..., d_model]: float32 [..., vocab_size]."""
        logits = seq2seq_model.tied_logits(hidden, self.led.shared.embedding_table)
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
        return seq2seq_model.with_spans(self.span, outputs, start_positions, end_positions)
