"""BigBird-Pegasus (Zaheer et al. 2020): encoder, decoder and their weights in files."""

import tensorflow as tf
import tf_keras

from etcmodel import tensor_utils
from etcmodel.layers.attention.block_sparse import BlockSparseAttention
from etcmodel.layers.observation import run_observed
from etcmodel.models.bigbird import modeling as bigbird
from etcmodel.models.bigbird.config import ORIGINAL_FULL
from etcmodel.models.bigbird_pegasus.config import BigBirdPegasusConfig
from etcmodel.models.heads import base as head_base
from etcmodel.models.heads import of_text
from etcmodel.models.seq2seq import decoder
from etcmodel.models.seq2seq import model as seq2seq_model
from etcmodel.models.systems import dense_names, logits_names, norm_names
from etcmodel.ops import argument_checks

_OF_ENCODER = r"(encoder)/layers/attention_layer_(\d+)/self_attention"
WEIGHTS = seq2seq_model.bart_weights(
    "model",
    (
        (
            "(encoder|decoder)/position_embedding/embedding_table",
            r"model.\1.embed_positions.weight",
        ),
        # The last normalization, in spite of its name.
        *norm_names("(encoder|decoder)/layer_norm", r"model.\1.layernorm_embedding"),
        *dense_names(f"{_OF_ENCODER}/(query|key|value)", r"model.\1.layers.\2.self_attn.self.\3"),
        *dense_names(f"{_OF_ENCODER}/output_projection", r"model.\1.layers.\2.self_attn.output"),
        ("final_logits_bias", "final_logits_bias"),
        *logits_names("qa_outputs", "qa_outputs"),
        *dense_names("classifier_dense", "classification_head.dense"),
        *logits_names("classifier_out", "classification_head.out_proj"),
    ),
    optional=("final_logits_bias",),
)


class BigBirdPegasusStack(seq2seq_model.TokenStack):
    """The base of encoder and decoder, each with a table of positions."""

    config_class = BigBirdPegasusConfig
    positions_entry = "max_position_embeddings"


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class BigBirdPegasusEncoderLayers(seq2seq_model.BartLayers):
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

    config_class = BigBirdPegasusConfig

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


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class BigBirdPegasusEncoder(BigBirdPegasusStack):
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

    layers_class = BigBirdPegasusEncoderLayers

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
        hidden, attention_mask = self.embedded(
            input_ids, attention_mask, inputs_embeds, training=training
        )
        hidden, attention = self._attention(hidden, attention_mask, random_blocks)
        if not (output_hidden_states or output_attentions):
            hidden = self.layers(hidden, training=training, **attention)
            return seq2seq_model.finished(self, [hidden])
        states, _ = run_observed(self.layers, [hidden], training, attention=attention)
        states = [hidden for (hidden,) in states]
        outputs = seq2seq_model.finished(self, states, output_hidden_states)
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
class BigBirdPegasusDecoderLayers(decoder.DecoderLayers, seq2seq_model.BartLayers):
    """The decoder's layers: see `seq2seq.decoder.DecoderLayers` and `seq2seq.model.BartLayers`."""

    config_class = BigBirdPegasusConfig


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class BigBirdPegasusDecoder(decoder.Decoder, BigBirdPegasusStack):
    """Decoder ids and an encoder's output to hidden states: see `seq2seq.decoder.Decoder`."""

    layers_class = BigBirdPegasusDecoderLayers


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
    reads_again = True
    architecture = "BigBirdPegasusModel"

    def __init__(
        self, config: BigBirdPegasusConfig | dict, name: str = "bigbird_pegasus", **kwargs
    ):
        super().__init__(config, name, **kwargs)


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class BigBirdPegasusForConditionalGeneration(
    seq2seq_model.LogitsBias, seq2seq_model.ConditionalGeneration, BigBirdPegasusModel
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

    @property
    def max_generated_length(self):
        """int. The most tokens of a sequence: its last token is never an input."""
        return self.config.max_position_embeddings + 1


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class BigBirdPegasusForQuestionAnswering(seq2seq_model.QuestionAnswering, BigBirdPegasusModel):
    """Extractive question answering by the decoder's hidden states, which reads the input again.

    Args:
        config: `BigBirdPegasusConfig` or its dict.
        name: name of the layer.
    Call args: see `seq2seq.model.QuestionAnswering` and `BigBirdPegasusModel`.
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
