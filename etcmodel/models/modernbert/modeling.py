"""ModernBERT (Warner et al. 2024): encoder, heads and their weights in Hugging Face files."""

from typing import NamedTuple

import tensorflow as tf
import tf_keras

from etcmodel.layers import (
    EmbeddingLookup,
    RecomputingDropout,
    base,
    dense,
    initializers,
    normalization,
    stack,
    sublayers,
)
from etcmodel.layers import heads as head_layers
from etcmodel.layers.attention.rotary import RotaryAttention, tokens_that_see
from etcmodel.layers.feed_forward import GatedFeedForward
from etcmodel.layers.observation import run_observed
from etcmodel.models import conveniences, hugging_face, input_checks, padding
from etcmodel.models.heads import base as head_base
from etcmodel.models.heads import of_text
from etcmodel.models.modernbert.config import FULL, SLIDING, ModernBertConfig
from etcmodel.models.systems import Weights, dense_names, logits_names, norm_names
from etcmodel.ops import argument_checks, packing, rotary

__all__ = [
    "WEIGHTS",
    "Inputs",
    "ModernBertConfig",
    "ModernBertForMaskedLM",
    "ModernBertForMultipleChoice",
    "ModernBertForQuestionAnswering",
    "ModernBertForSequenceClassification",
    "ModernBertForTokenClassification",
    "ModernBertHead",
    "ModernBertLayers",
    "ModernBertModel",
    "ModernBertParts",
    "checked",
]

_AXES = {
    "input_ids": "batch length",
    "inputs_embeds": "batch length hidden_size",
    "attention_mask": "batch length",
    "position_ids": "batch? length",
}


class Inputs(NamedTuple):
    """Inputs of one call.

    Attributes:
        input_ids: int32 or int64 [batch, length], or None.
        inputs_embeds: float [batch, length, hidden_size], or None: one of the two.
        position_ids: int [batch or 1, length].
        token_mask: bool [batch, length] or None. True for tokens, False for padding.
    """

    input_ids: tf.Tensor | None
    inputs_embeds: tf.Tensor | None
    position_ids: tf.Tensor
    token_mask: tf.Tensor | None


@tf.autograph.experimental.do_not_convert
def checked(config, given):
    """Checks the arguments of a model's call and returns its `Inputs`.

    Args:
        config: `ModernBertConfig`.
        given: dict of the arguments of the call by name; None if not given.
    Raises:
        ValueError: in one line that names the argument, what is wanted and what is found. In a
            graph, values known only at run time raise `tf.errors.InvalidArgumentError` with that
            line. Compiled by XLA a graph cannot raise: ids are then clipped to the table.
    """
    asserts = []
    given, (_, length) = input_checks.checked_text(config, given, _AXES, asserts)
    positions = tf.range(length)[tf.newaxis]
    if given["position_ids"] is not None:
        positions = argument_checks.whole_ids("position_ids", given["position_ids"])
        argument_checks.check_range("position_ids", positions, 0, None, "", asserts=asserts)
    token_mask = _token_mask(given["attention_mask"], asserts)
    inputs = Inputs(given["input_ids"], given["inputs_embeds"], positions, token_mask)
    return input_checks.after(asserts, inputs, inputs._fields)


def _token_mask(mask, asserts):
    """Any number but 0 marks a token. None of them may be negative, as in masks to be added."""
    if mask is None:
        return None
    mask = tf.convert_to_tensor(mask)
    if mask.dtype.is_bool:
        return mask
    if not (mask.dtype.is_integer or mask.dtype.is_floating):
        argument_checks.fail(
            f"`attention_mask` must be a mask of 0 and 1. Received: {mask.dtype.name}"
        )
    least = tf.reduce_min(mask)
    words = "`attention_mask` must be 0 for padding and positive for tokens. Received:"
    argument_checks.check(least >= 0, words, least, asserts=asserts)
    return tf.not_equal(mask, 0)


class ModernBertLayers(stack.TransformerStack):
    """ModernBERT's transformer layers: of full attention, or with windows.

    Args:
        config: `ModernBertConfig`.
        **kwargs: of the Keras layer.
    Call args:
        inputs: float [batch, length, hidden_size].
        attention: dict of the kinds of layers to the arguments of `RotaryAttention`.
        training: bool.
    Returns:
        float [batch, length, hidden_size].
    """

    def __init__(self, config, **kwargs):
        super().__init__(
            config.num_hidden_layers,
            config.num_attention_heads,
            hidden_act=hugging_face.activation(config.hidden_activation),
            hidden_dropout_prob=0.0,  # Where it drops, parts of a block do.
            attention_probs_dropout_prob=config.attention_dropout,
            initializer_range=config.initializer_range,
            use_pre_activation_order=True,
            grad_checkpointing_period=config.grad_checkpointing_period,
            layer_norm_epsilon=config.norm_eps,
            **kwargs,
        )
        self.config = config
        self.attention_layers = self.attention_blocks()
        # The embeddings are normalized already.
        self.attention_layers[0].normalization_layers = [
            tf_keras.layers.Activation("linear", name="layer_norm", dtype=self.dtype_policy)
        ]
        self.feed_forward_layers = self.feed_forward_blocks()

    @property
    def streams(self):
        return (stack.Stream("tokens", self.config.hidden_size, self.config.intermediate_size),)

    def make_attention(self, index, layer_class=RotaryAttention, **options):
        is_full = self.config.layer_kinds[index] == FULL
        return layer_class(
            self.config.hidden_size,
            self.num_attention_heads,
            None if is_full else self.config.radius,
            use_bias=self.config.attention_bias,
            att_dropout_prob=self.attention_probs_dropout_prob,
            initializer_range=self.initializer_range,
            output_initializer_range=_output_range(self.config),
            dtype=self.dtype_policy,
            **options,
        )

    def make_feed_forward(self, index, stream):
        return GatedFeedForward(
            stream.hidden_size,
            stream.intermediate_size,
            self.hidden_act,
            use_bias=self.config.mlp_bias,
            dropout_prob=self.config.mlp_dropout,
            initializer_range=self.initializer_range,
            output_initializer_range=_output_range(self.config),
            dtype=self.dtype_policy,
        )

    def make_normalization(self, name):
        return _layer_norm(self.config, name, self.dtype_policy)

    def steps(self, index):
        return (
            stack.Step(self.attention_layers[index], options=self.config.layer_kinds[index]),
            stack.Step(self.feed_forward_layers[index]),
        )

    def call(self, inputs, attention, training=None):
        (output,) = self.run([inputs], training, **attention)
        return output


def _layer_norm(config, name, dtype):
    return normalization.LayerNormalization(
        axis=-1, epsilon=config.norm_eps, center=config.norm_bias, name=name, dtype=dtype
    )


class ModernBertParts(base.TokenLayer):
    """The parts of ModernBERT's encoders: the embeddings, the layers, what normalizes them.

    Args:
        config: a `config_class` (or its dict).
        use_one_hot_embeddings: bool. Whether to look up embeddings by matrix products.
        **kwargs: of the Keras layer.
    """

    layers_class = ModernBertLayers

    def __init__(self, config, name=None, use_one_hot_embeddings=False, **kwargs):
        super().__init__(config, name, **kwargs)
        config = self.config
        self.tok_embeddings = EmbeddingLookup(
            config.vocab_size,
            config.hidden_size,
            initializer_range=config.initializer_range,
            use_one_hot_lookup=use_one_hot_embeddings,
            name="tok_embeddings",
            dtype=self.dtype_policy,
        )
        self.embedding_norm = _layer_norm(config, "embedding_norm", self.dtype_policy)
        self.embedding_dropout = RecomputingDropout(
            config.embedding_dropout, name="embedding_dropout", dtype=self.dtype_policy
        )
        self.layers = self.layers_class(config, name="layers", dtype=self.dtype_policy)
        self.final_norm = _layer_norm(config, "final_norm", self.dtype_policy)

    def build(self, input_shape):
        """Builds all variables; the sizes follow from the config alone."""
        parts = (self.tok_embeddings, self.embedding_norm, self.layers, self.final_norm)
        sublayers.build_all(self.config.hidden_size, *parts)
        super().build(input_shape)

    def finish(self, hidden, training):
        """Computes the output from that of the last layer."""
        return self.final_norm(hidden)

    def get_token_embedding_table(self):
        """Returns the table of token embeddings: variable [vocab_size, hidden_size]."""
        sublayers.build_sublayer(self, None)
        return self.tok_embeddings.embedding_table


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class ModernBertModel(conveniences.Pretrained, ModernBertParts):
    """The ModernBERT encoder: token ids to hidden states, as Hugging Face's `ModernBertModel`.

    Texts may have any length. Layers with windows take time and memory that grow with the length,
    those of full attention time that grows with its square. Padding does not change the hidden
    states of tokens.

    Args:
        config: `ModernBertConfig` (or its dict).
        name: name of the layer.
    Call args:
        input_ids: int [batch, length]; or a dict of arguments; or None with `inputs_embeds`.
        attention_mask: bool, int or float [batch, length], or None. 0 for padding, and any positive
            number for tokens.
        position_ids: int [batch or 1, length]; by default 0, 1, …, also of padding. They turn
            queries and keys; windows follow the places of tokens.
        inputs_embeds: float [batch, length, hidden_size], in place of embeddings of `input_ids`.
        token_type_ids: ignored, as there.
        output_hidden_states: bool.
        output_attentions: bool. Needs memory for all pairs of tokens, and time.
        training: bool.
    Returns:
        float [batch, length, hidden_size]. If more is requested, a second output is a dict:
        `hidden_states`, a list of the normalized embeddings, the outputs of all layers but the
        last, and the output of the model; `attentions`, a list by layer of float32 [batch,
        num_heads, length, length], which are 0 outside windows.
    Raises:
        ValueError: if inputs are inconsistent with each other or the model: see `checked`,
            also for what graphs raise.

    >>> config = etcmodel.ModernBertConfig(hidden_size=24, num_hidden_layers=1)
    >>> etcmodel.ModernBertModel(config)([[50281, 7, 8, 50282]]).shape
    TensorShape([1, 4, 24])
    """

    config_class = ModernBertConfig

    def __init__(self, config: ModernBertConfig | dict, name: str = "modernbert", **kwargs):
        super().__init__(config, name, **kwargs)

    def call(
        self,
        input_ids=None,
        attention_mask=None,
        position_ids=None,
        inputs_embeds=None,
        token_type_ids=None,
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
        inputs = checked(self.config, given)
        rows = None if output_attentions else self._packed_rows(inputs)
        attention = self._attention(inputs, rows)
        embedded = self._embed(inputs, rows, training)
        if not (output_hidden_states or output_attentions):
            output = self.finish(self.layers(embedded, attention, training=training), training)
            return self._unpacked(output, inputs, rows)
        states, calls = run_observed(
            self.layers, [embedded], training, with_attentions=output_attentions, **attention
        )
        states = [hidden for (hidden,) in states]
        states[-1] = self.finish(states[-1], training)
        states, extras = [self._unpacked(hidden, inputs, rows) for hidden in states], {}
        if output_hidden_states:
            extras["hidden_states"] = states
        if output_attentions:
            extras["attentions"] = self._probabilities(calls, attention)
        return states[-1], extras

    def _embed(self, inputs, rows, training):
        """Normalized embeddings: float [batch, length, hidden_size], or of packed rows."""
        given = inputs.inputs_embeds if inputs.input_ids is None else inputs.input_ids
        given = given if rows is None else rows.pack(tf.convert_to_tensor(given))
        if inputs.input_ids is None:
            embedded = tf.cast(given, self.compute_dtype)
        else:
            embedded = self.tok_embeddings(given)
        return self.embedding_dropout(self.embedding_norm(embedded), training=training)

    def _packed_rows(self, inputs):
        """`packing.PackedRows` if nothing is to be computed for padding, else None."""
        if inputs.token_mask is None or not self.config.skip_padding or padding.stays_whole():
            return None
        return packing.packed_rows(inputs.token_mask)

    def _unpacked(self, hidden, inputs, rows):
        """Hidden states of the whole batch. If padding is to be skipped, its states are 0."""
        if rows is not None:
            return rows.unpack(hidden)
        if inputs.token_mask is None or not self.config.skip_padding:
            return hidden
        marks = packing.is_packed(inputs.token_mask)[:, :, tf.newaxis]
        return tf.where(marks, hidden, tf.zeros([], hidden.dtype))

    def _attention(self, inputs, rows):
        """The arguments of attention layers, by kind."""
        config, mask = self.config, inputs.token_mask
        pack = rows.pack if rows is not None else lambda x: x
        positions = pack(inputs.position_ids)
        size = config.hidden_size // config.num_attention_heads
        return {
            kind: {
                "turns": rotary.turns_at(positions, size, config.thetas[kind]),
                "token_mask": None if mask is None else pack(mask),
                "sees": None if mask is None else pack(tokens_that_see(mask, radius)),
                "rows": rows,
            }
            for kind, radius in ((FULL, None), (SLIDING, config.radius))
            if kind in config.layer_kinds
        }

    def _probabilities(self, calls, attention):
        """Attention probabilities by layer; 0 for queries that see no token."""
        found = []
        for kind, ((probs,),) in zip(self.config.layer_kinds, calls, strict=True):
            sees = attention[kind]["sees"]
            found.append(
                probs if sees is None else tf.where(sees[:, tf.newaxis, :, tf.newaxis], probs, 0.0)
            )
        return found


# ModernBERT with heads, like Hugging Face's classes of the same names.


class PredictionHead(base.Layer):
    """What all heads begin with: a dense layer, its activation, and layer normalization.

    Args:
        config: `ModernBertConfig`.
        **kwargs: of the Keras layer.
    Call args:
        hidden: float [..., hidden_size].
    Returns:
        Same shape as `hidden`.
    """

    def __init__(self, config, name="head", **kwargs):
        super().__init__(name=name, **kwargs)
        self.dense = dense.Dense(
            config.hidden_size,
            activation=hugging_face.activation(config.classifier_activation),
            use_bias=config.classifier_bias,
            kernel_initializer=initializers.default_initializer(_output_range(config)),
            name="dense",
            dtype=self.dtype_policy,
        )
        self.norm = _layer_norm(config, "norm", self.dtype_policy)

    def build(self, input_shape):
        for layer in (self.dense, self.norm):
            sublayers.build_sublayer(layer, tf.TensorShape(input_shape))
        super().build(input_shape)

    def call(self, hidden):
        return self.norm(self.dense(hidden))


def _output_range(config):
    """Standard deviation of initial weights of outputs and heads."""
    return config.initializer_range / (2 * config.num_hidden_layers) ** 0.5


class LanguageModel(base.Layer):
    """Logits of the vocabulary, from a `PredictionHead`.

    Args:
        config: `ModernBertConfig`.
        table: function that returns the variable [vocab_size, hidden_size] of the token embeddings,
            if they are the weights of the logits, or None.
        **kwargs: of the Keras layer.
    Call args:
        hidden: float [..., hidden_size].
        positions: int [batch, number] or None. The places to predict, if not all.
    Returns:
        float [..., vocab_size].
    """

    def __init__(self, config, table, name="mlm", **kwargs):
        super().__init__(name=name, **kwargs)
        self.config = config
        self.prediction_head = PredictionHead(config, dtype=self.dtype_policy)
        self._tied = table
        self.weight = self.bias = None

    def build(self, input_shape):
        config = self.config
        sublayers.build_sublayer(self.prediction_head, tf.TensorShape(input_shape))
        if self._tied is None:
            self.weight = self.add_weight(
                name="weights",
                shape=(config.vocab_size, config.hidden_size),
                initializer=initializers.default_initializer(_output_range(config)),
            )
        if config.decoder_bias:
            self.bias = self.add_weight(
                name="bias", shape=(config.vocab_size,), initializer="zeros"
            )
        super().build(input_shape)

    def call(self, hidden, positions=None):
        if positions is not None:
            hidden = tf.gather(hidden, positions, batch_dims=1)
        hidden = self.prediction_head(hidden)
        table = self.weight if self._tied is None else self._tied()
        logits = tf.tensordot(hidden, tf.cast(table, hidden.dtype), [[-1], [-1]])
        return logits if self.bias is None else logits + tf.cast(self.bias, logits.dtype)


class ModernBertHead(of_text.TextHead):
    """The base of ModernBERT's heads, which begin with a `PredictionHead`.

    Args:
        encoder: `ModernBertModel`, or `ModernBertConfig`, from which a model is created.
        dropout: float or None. Dropout rate before the logits of labels; None for the config's
            `classifier_dropout`.
        **kwargs: of `TextHead`.
    Call args: see `TextHead`; the arguments are those of `ModernBertModel`.
    """

    encoder_class = ModernBertModel

    def make_head(self):
        head = PredictionHead(self.encoder.config, dtype="float32")
        self.prediction_head = self.built_on_hidden(head)
        self.make_outputs()

    def make_outputs(self):
        """Creates the layer of the logits: of labels, or one for each choice."""
        self.logits = self.make_logits(getattr(self, "num_labels", 1))

    def make_logits(self, num_outputs, layer_class=head_layers.TokenLogits):
        """Creates the layer of the logits, built."""
        spread = self.encoder.config.hidden_size**-0.5
        return self.built_on_hidden(
            layer_class(num_outputs, spread, name="classifier", dtype="float32")
        )

    def encode(self, batch, training):
        """(hidden, None), and a dict of what else is requested."""
        outputs = self.encoder(**self.arguments(batch), training=training)
        hidden, *observed = outputs if isinstance(outputs, tuple) else (outputs,)
        return (hidden, None, *observed)

    def head(self, hidden, other, training):
        return self.logits(self.transformed(hidden if other is None else other, training))

    def transformed(self, hidden, training):
        """What the logits of labels are computed from: float32, shaped as `hidden`."""
        hidden = self.prediction_head(tf.cast(hidden, tf.float32))
        return self.dropout(hidden, training=training)


class PooledHead(ModernBertHead):
    """The base of heads over one vector of each text, by the config's `classifier_pooling`."""

    def encode(self, batch, training):
        """Like `ModernBertHead.encode`; the second output is the vector."""
        hidden, _, *observed = super().encode(batch, training)
        mask = of_text.token_mask(batch)
        if self.encoder.config.classifier_pooling == "cls":
            vectors = self.first(hidden, mask)
        else:
            vectors = of_text.mean(hidden, mask)
        return (hidden, vectors, *observed)

    def first(self, hidden, mask):
        """The first place's entry, even if it is padding, as in Hugging Face's head.

        With `skip_padding`, which computes none, that of the first token.
        """
        return padding.first_real(hidden, mask if self.encoder.config.skip_padding else None)


@head_base.register_head
class ModernBertForMaskedLM(ModernBertHead, of_text.MaskedLM):
    """Masked language model over a ModernBERT: see `MaskedLM`.

    Its output weights are the token embeddings, unless `tie_word_embeddings` is False. With
    `sparse_prediction` and an argument `labels`, int [batch, length], it returns the logits of the
    places with labels, in their order: float32 [number, vocab_size].

    >>> config = etcmodel.ModernBertConfig(hidden_size=24, num_hidden_layers=1)
    >>> etcmodel.ModernBertForMaskedLM(config)([[50281, 7, 8, 50282]]).shape
    TensorShape([1, 4, 50368])
    """

    head_type = "modernbert_masked_lm"
    is_always_tied = False

    def make_head(self):
        config = self.encoder.config
        table = self.encoder.get_token_embedding_table if config.tie_word_embeddings else None
        self.language_model = self.built_on_hidden(LanguageModel(config, table, dtype="float32"))

    def call(self, features, training=None, **arguments):
        given = features if hasattr(features, "items") else {"input_ids": features}
        given, config = {**given, **arguments}, self.encoder.config
        if config.sparse_prediction and given.get("labels") is not None:
            labels = tf.convert_to_tensor(given["labels"])
            ignored = tf.cast(config.sparse_pred_ignore_index, labels.dtype)
            given["is_predicted"] = tf.not_equal(labels, ignored)
        return super().call(given, training=training)

    def encode(self, batch, training):
        is_predicted = batch.pop("is_predicted", None)
        hidden, *others = super().encode(batch, training)
        if is_predicted is not None:
            hidden = tf.boolean_mask(hidden, is_predicted)
        return (hidden, *others)

    def head(self, hidden, other, training):
        return self.language_model(tf.cast(hidden, tf.float32))


@head_base.register_head
class ModernBertForSequenceClassification(PooledHead, of_text.SequenceClassification):
    """Text classifier or regression over a ModernBERT: see `SequenceClassification`.

    It reads the first place or the mean of the tokens, by the config's `classifier_pooling`.

    >>> config = etcmodel.ModernBertConfig(hidden_size=24, num_hidden_layers=1)
    >>> model = etcmodel.ModernBertForSequenceClassification(config, labels=["neg", "pos"])
    >>> model([[50281, 7, 8, 50282]]).shape
    TensorShape([1, 2])
    """

    head_type = "modernbert_sequence_classification"


@head_base.register_head
class ModernBertForTokenClassification(ModernBertHead, of_text.TokenClassification):
    """Token classifier over a ModernBERT: see `TokenClassification`.

    >>> config = etcmodel.ModernBertConfig(hidden_size=24, num_hidden_layers=1)
    >>> model = etcmodel.ModernBertForTokenClassification(config, labels=["O", "B-PER", "I-PER"])
    >>> model([[50281, 7, 8, 50282]]).shape
    TensorShape([1, 4, 3])
    """

    head_type = "modernbert_token_classification"


@head_base.register_head
class ModernBertForQuestionAnswering(ModernBertHead, of_text.QuestionAnswering):
    """Extractive question answering over a ModernBERT: see `QuestionAnswering`.

    >>> config = etcmodel.ModernBertConfig(hidden_size=24, num_hidden_layers=1)
    >>> logits = etcmodel.ModernBertForQuestionAnswering(config)([[50281, 7, 50282, 8, 50282]])
    >>> logits["start"].shape, logits["end"].shape
    (TensorShape([1, 5]), TensorShape([1, 5]))
    """

    head_type = "modernbert_question_answering"

    def make_outputs(self):
        self.span = self.make_logits(("start", "end"), head_layers.SpanLogits)

    def head(self, hidden, other, training):
        return self.span(self.transformed(hidden, training))


@head_base.register_head
class ModernBertForMultipleChoice(PooledHead, of_text.MultipleChoice):
    """Multiple choice over a ModernBERT: see `MultipleChoice`.

    It reads the first token that is not padding or the mean of the tokens, by the config's
    `classifier_pooling`.

    >>> config = etcmodel.ModernBertConfig(hidden_size=24, num_hidden_layers=1)
    >>> model = etcmodel.ModernBertForMultipleChoice(config)
    >>> model([[[7, 50282, 5], [7, 50282, 6]]]).shape  # One question, two choices.
    TensorShape([1, 2])
    """

    head_type = "modernbert_multiple_choice"

    def first(self, hidden, mask):
        return padding.first_real(hidden, mask)


# The names of ModernBERT's weights in Hugging Face's files.


ATTENTION = r"layers/attention_layer_(\d+)"
_FEED_FORWARD = r"layers/feed_forward_layer_(\d+)"
IN_LAYER = r"model.layers.\1"
WEIGHTS = Weights(
    prefix="model.",
    names=(
        ("tok_embeddings/embedding_table", "model.embeddings.tok_embeddings.weight"),
        *norm_names("embedding_norm", "model.embeddings.norm"),
        *norm_names(f"{ATTENTION}/layer_norm", f"{IN_LAYER}.attn_norm"),
        *dense_names(f"{ATTENTION}/self_attention/qkv", f"{IN_LAYER}.attn.Wqkv"),
        *dense_names(f"{ATTENTION}/self_attention/output", f"{IN_LAYER}.attn.Wo"),
        *norm_names(f"{_FEED_FORWARD}/layer_norm", f"{IN_LAYER}.mlp_norm"),
        *dense_names(f"{_FEED_FORWARD}/feed_forward/inner", f"{IN_LAYER}.mlp.Wi"),
        *dense_names(f"{_FEED_FORWARD}/feed_forward/output", f"{IN_LAYER}.mlp.Wo"),
        *norm_names("final_norm", "model.final_norm"),
        *dense_names("(?:mlm/)?head/dense", "head.dense"),
        *norm_names("(?:mlm/)?head/norm", "head.norm"),
        *logits_names("mlm", "decoder"),  # Like those of `TokenLogits`.
        *logits_names("classifier", "classifier"),
    ),
    shared_head="head.",
)
