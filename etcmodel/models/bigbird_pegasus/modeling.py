"""BigBird-Pegasus (Zaheer et al. 2020): encoder, decoder and their weights in files."""

import tensorflow as tf
import tf_keras

from etcmodel import tensor_utils
from etcmodel.layers import EmbeddingLookup, RecomputingDropout, stack, sublayers
from etcmodel.layers import heads as head_layers
from etcmodel.layers.attention.block_sparse import BlockSparseAttention
from etcmodel.layers.attention.decoder import CausalSelfAttention, CrossAttention
from etcmodel.layers.observation import run_observed
from etcmodel.models.bigbird import modeling as bigbird
from etcmodel.models.bigbird.config import ORIGINAL_FULL
from etcmodel.models.bigbird_pegasus.config import BigBirdPegasusConfig
from etcmodel.models.heads import base as head_base
from etcmodel.models.heads import of_text
from etcmodel.models.pegasus_x.modeling import PegasusXLayers, make_token_embedding
from etcmodel.models.seq2seq import decoder
from etcmodel.models.seq2seq import inputs as seq2seq_inputs
from etcmodel.models.seq2seq import model as seq2seq_model
from etcmodel.models.systems import Weights, dense_names, norm_names
from etcmodel.ops import argument_checks

__all__ = [
    "WEIGHTS",
    "BigBirdPegasusEncoder",
    "BigBirdPegasusForConditionalGeneration",
    "BigBirdPegasusForQuestionAnswering",
    "BigBirdPegasusForSequenceClassification",
    "BigBirdPegasusModel",
]

_TABLE = "model.shared.weight"
# Other names of the token embeddings in older files.
_COPIES = (
    "model.encoder.embed_tokens.weight",
    "model.decoder.embed_tokens.weight",
    "lm_head.weight",
)
_LAYER = r"(encoder|decoder)/layers/{}_layer_(\d+)"
_SELF, _CROSS, _REST = map(_LAYER.format, ("attention", "cross_attention", "feed_forward"))
_IN_LAYER = r"model.\1.layers.\2"
_OF_ENCODER = _SELF.replace("|decoder", "")
_OF_DECODER = _SELF.replace("encoder|", "")
_PROJECTIONS = {
    "query": "q_proj",
    "key": "k_proj",
    "value": "v_proj",
    "output_projection": "out_proj",
}
WEIGHTS = Weights(
    prefix="model.",  # In files of models for conditional generation.
    names=(
        ("shared/embedding_table", _TABLE),
        (
            "(encoder|decoder)/position_embedding/embedding_table",
            r"model.\1.embed_positions.weight",
        ),
        # The last normalization, in spite of its name.
        *norm_names("(encoder|decoder)/layer_norm", r"model.\1.layernorm_embedding"),
        *dense_names(
            f"{_OF_ENCODER}/self_attention/(query|key|value)", rf"{_IN_LAYER}.self_attn.self.\3"
        ),
        *dense_names(
            f"{_OF_ENCODER}/self_attention/output_projection", f"{_IN_LAYER}.self_attn.output"
        ),
        *(
            pair
            for block, their_block in ((_OF_DECODER, "self_attn"), (_CROSS, "encoder_attn"))
            for name, theirs in _PROJECTIONS.items()
            for pair in dense_names(
                f"{block}/attention/{name}", f"{_IN_LAYER}.{their_block}.{theirs}"
            )
        ),
        *norm_names(f"{_SELF}/layer_norm", f"{_IN_LAYER}.self_attn_layer_norm"),
        *norm_names(f"{_CROSS}/layer_norm", f"{_IN_LAYER}.encoder_attn_layer_norm"),
        *dense_names(f"{_REST}/feed_forward/inner", f"{_IN_LAYER}.fc1"),
        *dense_names(f"{_REST}/feed_forward/output", f"{_IN_LAYER}.fc2"),
        *norm_names(f"{_REST}/layer_norm", f"{_IN_LAYER}.final_layer_norm"),
        ("final_logits_bias", "final_logits_bias"),
        ("qa_outputs/weights", "qa_outputs.weight"),
        ("qa_outputs/bias", "qa_outputs.bias"),
        *dense_names("classifier_dense", "classification_head.dense"),
        ("classifier_out/weights", "classification_head.out_proj.weight"),
        ("classifier_out/bias", "classification_head.out_proj.bias"),
    ),
    copies=dict.fromkeys(_COPIES, _TABLE),
    aliases={_TABLE: _COPIES},
    optional=("final_logits_bias",),
)


class _Layers(PegasusXLayers):
    """PEGASUS's layers, whose attention may have biases."""

    def attention_options(self):
        return {**super().attention_options(), "use_bias": self.config.use_bias}


class _Stack(seq2seq_model.TokenStack):
    """Embeddings of tokens and positions, a stack of layers, a final normalization.

    Args:
        layers_class: class of the layers, created from the config.
        config: `BigBirdPegasusConfig` or its dict.
        token_embedding: `EmbeddingLookup` or None. A lookup shared with another stack.
        **kwargs: of the Keras layer.
    """

    def __init__(self, layers_class, config, token_embedding=None, **kwargs):
        super().__init__(**kwargs)
        self._autocast = False  # The first argument is ids.
        self.config = config = BigBirdPegasusConfig.of(config)
        policy = {"dtype": self.dtype_policy}
        self.token_embedding = token_embedding or make_token_embedding(self)
        self.position_embedding = EmbeddingLookup(
            config.max_position_embeddings,
            config.d_model,
            initializer_range=config.init_std,
            name="position_embedding",
            **policy,
        )
        self.dropout = RecomputingDropout(config.dropout, name="dropout", **policy)
        self.layers = layers_class(config, **policy)
        self.layer_norm = self.layers.make_normalization("layer_norm")

    def build(self, input_shape):
        ids = tf.TensorShape([None, None])
        hidden = tf.TensorShape([None, None, self.config.d_model])
        for layer, shape in (
            (self.token_embedding, ids),
            (self.position_embedding, ids),
            (self.layers, hidden),
            (self.layer_norm, hidden),
        ):
            sublayers.build_sublayer(layer, shape)
        super().build(input_shape)

    def embed(self, ids, embeddings, start=0, training=None):
        """Embeds ids for the first layer; given embeddings are not scaled.

        Args:
            ids: int [batch, length], or None with embeddings.
            embeddings: float [batch, length, d_model], or None.
            start: int or int32 scalar. The position of the first id.
            training: bool.
        Returns:
            float [batch, length, d_model].
        Raises:
            ValueError: if there are more tokens than positions; in a graph
                `tf.errors.InvalidArgumentError`.
        """
        hidden = seq2seq_inputs.embed(self.token_embedding, ids, embeddings)
        hidden = tf.cast(hidden, self.compute_dtype)
        if embeddings is None:
            hidden *= self.config.embedding_scale
        positions = (start + tf.range(tensor_utils.get_shape_list(hidden)[1]))[tf.newaxis]
        limit = self.config.max_position_embeddings
        positions = argument_checks.in_range(
            "position_ids", positions, 0, limit, f"{limit}, which is `max_position_embeddings`"
        )
        return self.dropout(hidden + self.position_embedding(positions), training=training)

    def finish(self, hidden, training=None):
        """Returns the output, from that of the layers."""
        del training
        return self.layer_norm(hidden)


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class BigBirdPegasusEncoderLayers(_Layers):
    """The encoder's layers, with BigBird's attention.

    Args:
        config: `BigBirdPegasusConfig` or its dict.
    Call args:
        inputs: float [batch, length, d_model].
        training: bool.
        **attention: arguments of `BlockSparseAttention`.
    Returns:
        float [batch, length, d_model].
    """

    def __init__(self, config, name="layers", **kwargs):
        super().__init__(BigBirdPegasusConfig.of(config), "encoder", name=name, **kwargs)
        self.attention_layers = self.attention_blocks()
        self.feed_forward_layers = self.feed_forward_blocks()

    @property
    def streams(self):
        return (self.stream("tokens"),)

    def make_attention(self, index):
        config = self.config
        is_full = config.attention_type == ORIGINAL_FULL
        return BlockSparseAttention(
            **self.attention_options(),
            block_size=None if is_full else config.block_size,
            num_random_blocks=config.num_random_blocks,
            max_length=config.max_position_embeddings,
            layer_number=0 if is_full or not config.num_random_blocks else index,
            is_seeded_always=config.is_seeded_always,
            name="self_attention",
        )

    def steps(self, index):
        return (
            stack.Step(self.attention_layers[index], options="attention"),
            stack.Step(self.feed_forward_layers[index]),
        )

    def call(self, inputs, training=None, **attention):
        (output,) = self.run([inputs], training, attention=attention)
        return output


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class BigBirdPegasusEncoder(_Stack):
    """BigBird-Pegasus's encoder: token ids to hidden states.

    Args:
        config: `BigBirdPegasusConfig` or its dict.
        token_embedding: `EmbeddingLookup` or None. A lookup shared with a decoder.
        name: name of the layer.
    Call args:
        input_ids: int [batch, length], or None with `inputs_embeds`.
        attention_mask: 0/1 int [batch, length], or None. 0 for padding. Without it, padding ids
            count as ordinary tokens.
        inputs_embeds: float [batch, length, d_model], or None: in place of scaled embeddings of the
            ids.
        random_blocks: int [encoder_layers, encoder_attention_heads, blocks - 2, num_random_blocks],
            or None: see `BigBirdModel`.
        output_hidden_states: bool.
        output_attentions: bool. Needs memory quadratic in the length.
        training: bool.
    Returns:
        dict: `last_hidden_state`, float [batch, length, d_model]. On request, tuples:
        `hidden_states`, with one entry more than there are layers (the first: embeddings; the last:
        the normalized output); `attentions`, by layer: see `BigBirdModel`.
    Raises:
        ValueError: if the inputs are inconsistent with each other or the model; in a graph, values
            known only at run time raise `tf.errors.InvalidArgumentError`.

    >>> from etcmodel.models import bigbird_pegasus
    >>> config = etcmodel.BigBirdPegasusConfig(d_model=16, encoder_layers=1)
    >>> bigbird_pegasus.BigBirdPegasusEncoder(config)([[7, 8, 1]])["last_hidden_state"].shape
    TensorShape([1, 3, 16])
    """

    def __init__(self, config, token_embedding=None, name="encoder", **kwargs):
        super().__init__(BigBirdPegasusEncoderLayers, config, token_embedding, name=name, **kwargs)

    def call(
        self,
        input_ids=None,
        attention_mask=None,
        inputs_embeds=None,
        random_blocks=None,
        output_hidden_states=False,
        output_attentions=False,
        training=None,
    ):
        given = {
            "input_ids": input_ids,
            "inputs_embeds": inputs_embeds,
            "attention_mask": attention_mask,
        }
        given = seq2seq_inputs.of_encoder(given, self.config.d_model, self.config.vocab_size)
        hidden = self.embed(given["input_ids"], given["inputs_embeds"], training=training)
        hidden, attention = self._attention(hidden, given["attention_mask"], random_blocks)
        if not (output_hidden_states or output_attentions):
            hidden = self.layers(hidden, training=training, **attention)
            return {"last_hidden_state": self.finish(hidden)}
        states, _ = run_observed(self.layers, [hidden], training, attention=attention)
        states = [hidden for (hidden,) in states]
        outputs = {"last_hidden_state": self.finish(states[-1])}
        if output_hidden_states:
            outputs["hidden_states"] = (*states[:-1], outputs["last_hidden_state"])
        if output_attentions:
            outputs["attentions"] = self._probabilities(states, training, attention)
        return outputs

    @tf.autograph.experimental.do_not_convert
    def _attention(self, hidden, attention_mask, random_blocks):
        """(hidden, after the checks of a graph; the arguments of the attention layers)."""
        asserts, config = [], self.config
        shape = (config.encoder_layers, config.encoder_attention_heads, config.num_random_blocks)
        names = ("encoder_layers", "encoder_attention_heads", "num_random_blocks")
        argument_checks.check_shapes(
            {"random_blocks": random_blocks},
            {"random_blocks": "{} {} blocks {}".format(*names)},
            dict(zip(names, shape, strict=True)),
            asserts,
        )
        given = {"attention_mask": attention_mask, "random_blocks": random_blocks}
        length = tensor_utils.get_shape_list(hidden)[1]
        attention = bigbird.attention_of(config, given, length, asserts)
        with tf.control_dependencies(asserts):
            return tf.identity(hidden), attention

    def _probabilities(self, states, training, attention):
        found = []
        for block, hidden in zip(self.layers.attention_layers, states[:-1], strict=True):
            normalized = block.normalization_layers[0](hidden)
            probs = block.inner_layer.attention_probs(normalized, training=training, **attention)
            found.append(probs)
        return tuple(found)


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class BigBirdPegasusDecoderLayers(decoder.DecoderLayers, _Layers):
    """The decoder's layers: see `seq2seq.decoder.DecoderLayers`.

    Args:
        config: `BigBirdPegasusConfig` or its dict.
        name: name of the layer.
    """

    def __init__(self, config, name="layers", **kwargs):
        super().__init__(BigBirdPegasusConfig.of(config), "decoder", name=name, **kwargs)
        self.make_blocks()

    @property
    def streams(self):
        return (self.stream("tokens"),)

    def make_attention(self, index):
        return CausalSelfAttention(**self.attention_options())

    def make_cross_attention(self, index):
        return CrossAttention(**self.attention_options())


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class BigBirdPegasusDecoder(decoder.Decoder, _Stack):
    """Decoder ids and an encoder's output to hidden states: see `seq2seq.decoder.Decoder`.

    Args:
        config: `BigBirdPegasusConfig` or its dict.
        token_embedding: `EmbeddingLookup` or None. A lookup shared with an encoder.
        name: name of the layer.
    """

    def __init__(self, config, token_embedding=None, name="decoder", **kwargs):
        super().__init__(BigBirdPegasusDecoderLayers, config, token_embedding, name=name, **kwargs)


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class BigBirdPegasusModel(seq2seq_model.EncoderDecoder):
    """BigBird-Pegasus's encoder and decoder, without logits: ids to the decoder's hidden states.

    Args:
        config: `BigBirdPegasusConfig` or its dict.
        name: name of the layer.
    Call args:
        **arguments: see `seq2seq.model.EncoderDecoder`.
        decoder_input_ids: int [batch, target_length], or None: `input_ids`, shifted by one
            position.
        random_blocks: see `BigBirdPegasusEncoder`.
    Returns:
        dict: see there.
    Raises:
        ValueError: if inputs are inconsistent with each other or the model.

    >>> config = etcmodel.BigBirdPegasusConfig(d_model=16, encoder_layers=1, decoder_layers=1)
    >>> model = etcmodel.BigBirdPegasusModel(config)
    >>> model([[7, 8, 1]], decoder_input_ids=[[2, 5]])["last_hidden_state"].shape
    TensorShape([1, 2, 16])
    """

    config_class = BigBirdPegasusConfig
    encoder_class, decoder_class = BigBirdPegasusEncoder, BigBirdPegasusDecoder
    make_token_embedding = make_token_embedding
    decoder_ids_of = "`labels` or `input_ids`"
    architecture = "BigBirdPegasusModel"

    def __init__(
        self, config: BigBirdPegasusConfig | dict, name: str = "bigbird_pegasus", **kwargs
    ):
        super().__init__(config, name, **kwargs)

    def call(
        self,
        input_ids=None,
        attention_mask=None,
        decoder_input_ids=None,
        decoder_attention_mask=None,
        **arguments,
    ):
        if decoder_input_ids is None and arguments.get("decoder_inputs_embeds") is None:
            decoder_input_ids = self.decoder_ids(input_ids, "input_ids")
        return super().call(
            input_ids, attention_mask, decoder_input_ids, decoder_attention_mask, **arguments
        )


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class BigBirdPegasusForConditionalGeneration(
    seq2seq_model.ConditionalGeneration, BigBirdPegasusModel
):
    """BigBird-Pegasus for conditional generation, such as summarization of long texts.

    Args:
        config: `BigBirdPegasusConfig` or its dict.
        name: name of the layer.
    Call args: see `seq2seq.model.ConditionalGeneration` and `BigBirdPegasusModel`.
    Returns:
        dict: `logits`, with labels `loss`, and more: see `seq2seq.model.ConditionalGeneration`.
    Raises:
        ValueError: see there.

    >>> config = etcmodel.BigBirdPegasusConfig(d_model=16, encoder_layers=1, decoder_layers=1)
    >>> model = etcmodel.BigBirdPegasusForConditionalGeneration(config)
    >>> model([[7, 8, 1]], labels=[[5, 1]])["logits"].shape
    TensorShape([1, 2, 96103])
    """

    architecture = "BigBirdPegasusForConditionalGeneration"
    encoder_arguments = ("random_blocks",)

    def __init__(
        self,
        config: BigBirdPegasusConfig | dict,
        name: str = "bigbird_pegasus_for_conditional_generation",
        **kwargs,
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

    def call(
        self,
        input_ids=None,
        attention_mask=None,
        decoder_input_ids=None,
        decoder_attention_mask=None,
        labels=None,
        **arguments,
    ):
        given = (decoder_input_ids, arguments.get("decoder_inputs_embeds"), labels)
        if all(x is None for x in given):
            decoder_input_ids = self.decoder_ids(input_ids, "input_ids")
        return super().call(
            input_ids,
            attention_mask,
            decoder_input_ids,
            decoder_attention_mask=decoder_attention_mask,
            labels=labels,
            **arguments,
        )

    def logits(self, hidden):
        """Logits of the decoder's output, float [..., d_model]: float32 [..., vocab_size]."""
        logits = seq2seq_model.tied_logits(hidden, self.get_token_embedding_table())
        return logits + tf.cast(self.logits_bias[0], tf.float32)

    @property
    def max_generated_length(self):
        """int. The most tokens of a sequence: its last token is never an input."""
        return self.config.max_position_embeddings + 1


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class BigBirdPegasusForQuestionAnswering(BigBirdPegasusModel):
    """Extractive question answering by the decoder's hidden states, which reads the input again.

    Args:
        config: `BigBirdPegasusConfig` or its dict.
        name: name of the layer.
    Call args:
        input_ids, attention_mask, **arguments: of `BigBirdPegasusModel`.
        start_positions, end_positions: int [batch], or None. Those beyond the text are ignored.
    Returns:
        dict: see `seq2seq.model.with_spans`.
    Raises:
        ValueError: see there and `BigBirdPegasusModel`.

    >>> config = etcmodel.BigBirdPegasusConfig(d_model=16, encoder_layers=1, decoder_layers=1)
    >>> outputs = etcmodel.BigBirdPegasusForQuestionAnswering(config)([[7, 1, 8, 1]])
    >>> outputs["start_logits"].shape, outputs["end_logits"].shape
    (TensorShape([1, 4]), TensorShape([1, 4]))
    """

    architecture = "BigBirdPegasusForQuestionAnswering"

    def __init__(
        self,
        config: BigBirdPegasusConfig | dict,
        name: str = "bigbird_pegasus_for_question_answering",
        **kwargs,
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
        outputs = super().call(input_ids, attention_mask, **arguments)
        return seq2seq_model.with_spans(self.span, outputs, start_positions, end_positions)


@head_base.register_head
class BigBirdPegasusForSequenceClassification(of_text.HeadOnPart, of_text.SequenceClassification):
    """Text classifier or regression by the decoder, which reads the input again.

    It reads the decoder's state at the last end token (`eos_token_id`) of `input_ids`.

    Args:
        encoder: `BigBirdPegasusModel`, or `BigBirdPegasusConfig`, from which a model is created.
        **kwargs: of `SequenceClassification`.
    Call args: see `heads.of_text.TextHead`; the arguments are those of `BigBirdPegasusModel`.
    Raises:
        ValueError: if a text has no end token; in a graph `tf.errors.InvalidArgumentError`.

    >>> config = etcmodel.BigBirdPegasusConfig(d_model=16, encoder_layers=1, decoder_layers=1)
    >>> model = etcmodel.BigBirdPegasusForSequenceClassification(config, labels=["neg", "pos"])
    >>> model([[7, 8, 1]]).shape
    TensorShape([1, 2])
    """

    head_type = "bigbird_pegasus_sequence_classification"
    encoder_class = BigBirdPegasusModel

    def encode(self, batch, training):
        hidden, *others = super().encode(batch, training)
        if batch.get("input_ids") is None:
            argument_checks.fail("Give `input_ids`, whose last end token is read.")
        is_end = tf.equal(batch["input_ids"], self.encoder.config.eos_token_id)
        length, asserts = tf.shape(is_end)[1], []
        words = f"Each text of `input_ids` must have the end token, {self.config.eos_token_id}."
        argument_checks.check(tf.reduce_all(tf.reduce_any(is_end, 1)), words, asserts=asserts)
        last = tf.reduce_max(tf.where(is_end, tf.range(length), 0), axis=1)
        with tf.control_dependencies(asserts):
            return (tf.gather(hidden, last, batch_dims=1)[:, tf.newaxis], *others)
