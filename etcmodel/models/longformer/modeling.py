"""Longformer (Beltagy et al. 2020): encoder, heads and their weights in Hugging Face files."""

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
from etcmodel.layers.attention.sliding_window import SlidingWindowAttention
from etcmodel.layers.observation import run_observed
from etcmodel.models import conveniences, input_checks, padding
from etcmodel.models.heads import base as head_base
from etcmodel.models.heads import of_text
from etcmodel.models.longformer.config import LongformerConfig
from etcmodel.models.systems import Weights, dense_names, logits_names, norm_names
from etcmodel.ops import argument_checks, sliding_window

__all__ = [
    "KINDS",
    "WEIGHTS",
    "BertWithPooler",
    "Inputs",
    "LongformerConfig",
    "LongformerForMaskedLM",
    "LongformerForMultipleChoice",
    "LongformerForQuestionAnswering",
    "LongformerForSequenceClassification",
    "LongformerForTokenClassification",
    "LongformerHead",
    "LongformerModel",
    "SlidingWindowLayers",
    "attention_of",
    "checked",
]

KINDS = ("padding", "local", "global")  # The meaning of 0, 1 and 2 in an `attention_mask`.

_AXES = {
    "input_ids": "batch length",
    "inputs_embeds": "batch length hidden_size",
    "attention_mask": "batch length",
    "token_type_ids": "batch? length",
    "position_ids": "batch? length",
}


class Inputs(NamedTuple):
    """Inputs of one call.

    Attributes:
        input_ids: int32 [batch, length], or None.
        inputs_embeds: float [batch, length, hidden_size], or None: one of the two.
        token_type_ids: int [batch or 1, length].
        position_ids: int [batch or 1, length].
        token_mask: bool [batch, length] or None. True for tokens, False for padding.
        global_tokens: `ops.sliding_window.GlobalTokens` or None.
    """

    input_ids: tf.Tensor | None
    inputs_embeds: tf.Tensor | None
    token_type_ids: tf.Tensor
    position_ids: tf.Tensor
    token_mask: tf.Tensor | None
    global_tokens: object


def position_ids_of(input_ids, pad_token_id):
    """RoBERTa's positions: padding has `pad_token_id`, other tokens count up from there.

    Args:
        input_ids: int [batch, length].
        pad_token_id: int.
    Returns:
        int32 [batch, length].
    """
    is_token = tf.cast(tf.not_equal(input_ids, pad_token_id), tf.int32)
    return pad_token_id + tf.cumsum(is_token, axis=1) * is_token


@tf.autograph.experimental.do_not_convert
def checked(config, given, global_attention_mask):
    """Checks the arguments of a model's call and returns its `Inputs`.

    Args:
        config: `LongformerConfig`.
        given: dict of the other arguments of the call by name; None if not given.
        global_attention_mask: see `LongformerModel`.
    Raises:
        ValueError: in one line that names the argument, what is wanted and what is found. In a
            graph, values known only at run time raise `tf.errors.InvalidArgumentError` with that
            line. Compiled by XLA a graph cannot raise: ids and positions are then clipped to the
            tables, and tokens beyond `max_global_tokens` are local.
    """
    asserts = []
    given, shape = input_checks.checked_text(config, given, _AXES, asserts)
    ids, length = given["input_ids"], shape[1]
    positions = _positions(config, given["position_ids"], ids, length, asserts)
    token_mask, found = attention_of(
        given["attention_mask"], global_attention_mask, shape, config, asserts
    )
    types, embeds = given["token_type_ids"], given["inputs_embeds"]
    inputs = Inputs(ids, embeds, types, positions, token_mask, found)
    return input_checks.after(asserts, inputs)


def _positions(config, positions, ids, length, asserts):
    """Positions, given or derived, after checks: int [batch or 1, length]."""
    if positions is None and ids is not None:
        positions = position_ids_of(ids, config.pad_token_id)
    elif positions is None:
        positions = (config.pad_token_id + 1 + tf.range(length))[tf.newaxis]
    limit = config.max_position_embeddings
    words = (
        f"{limit}, the rows of the table of positions, which is enough for "
        f"{limit - config.pad_token_id - 1} tokens"
    )
    return argument_checks.checked_ids("position_ids", positions, limit, words, asserts=asserts)


@tf.autograph.experimental.do_not_convert
def attention_of(attention_mask, global_attention_mask, shape, config, asserts):
    """Derives padding and global tokens from the two masks.

    Args:
        attention_mask: int or bool [batch, length], or None; see `LongformerModel`.
        global_attention_mask: see `LongformerModel`.
        shape: (batch, length), int or scalar tensors.
        config: with `autoregressive` and `max_global_tokens`, as `LongformerConfig`.
        asserts: list, to which a graph adds its checks; see `argument_checks.check`.
    Returns:
        (token_mask, global_tokens): bool [batch, length] and `ops.sliding_window.GlobalTokens`;
        each may be None.
    Raises:
        ValueError: see `checked`.
    """
    token_mask = is_global = None
    if attention_mask is not None:
        attention_mask = argument_checks.checked_mask(
            "attention_mask", attention_mask, KINDS, asserts=asserts
        )
        token_mask, is_global = attention_mask > 0, attention_mask > 1
    if global_attention_mask is not None:
        chosen = sliding_window.global_mask_of(global_attention_mask, *shape, asserts)
        is_global = chosen if is_global is None else (chosen & token_mask) | is_global
    _check_globals(config, is_global, asserts)
    if is_global is None or config.autoregressive:
        return token_mask, None
    return token_mask, sliding_window.find_global_tokens(is_global, config.max_global_tokens)


def _check_globals(config, is_global, asserts):
    if is_global is None:
        return
    most = tf.reduce_max(tf.reduce_sum(tf.cast(is_global, tf.int32), axis=1))
    if config.autoregressive:
        words = "An autoregressive model can have no global tokens: all would see them. Received:"
        argument_checks.check(most < 1, words, most, asserts=asserts)
    elif config.max_global_tokens is not None:
        words = (
            f"An example must have at most `max_global_tokens`, {config.max_global_tokens}, "
            "global tokens. Received:"
        )
        argument_checks.check(most <= config.max_global_tokens, words, most, asserts=asserts)


class SlidingWindowLayers(stack.TransformerStack):
    """Transformer layers with sliding-window attention, each with its own window.

    Args:
        stream: `stack.Stream`. The sizes.
        radii: sequence of int, by layer. Tokens attended to on each side.
        num_attention_heads: int.
        dilations: sequence by layer of `SlidingWindowAttention`'s `dilation`; None for no gaps.
        is_causal: bool.
        **kwargs: of `TransformerStack`.
    Call args:
        inputs: float [batch, length, hidden_size].
        training: bool.
        **attention: arguments of `SlidingWindowAttention`.
    Returns:
        float [batch, length, hidden_size].
    Attributes:
        attention_class: `SlidingWindowAttention`, or a subclass's replacement for it.
    """

    attention_class = SlidingWindowAttention

    def __init__(
        self, stream, radii, num_attention_heads, *, dilations=None, is_causal=False, **kwargs
    ):
        super().__init__(len(radii), num_attention_heads, **kwargs)
        self.stream = stream
        self.radii = tuple(radii)
        self.dilations = tuple(dilations or [1] * len(radii))
        self.is_causal = is_causal
        self.make_blocks()

    @property
    def streams(self):
        return (self.stream,)

    def make_attention(self, index):
        return self.attention_class(
            self.stream.hidden_size,
            self.num_attention_heads,
            self.radii[index],
            dilation=self.dilations[index],
            is_causal=self.is_causal,
            att_dropout_prob=self.attention_probs_dropout_prob,
            initializer=initializers.fresh(self.initializer),
            dtype=self.dtype_policy,
        )

    def observed(self, inputs, training=None, *, with_attentions=False, **attention):
        """Like a call, but returns all hidden states, and attention probabilities on request.

        Args:
            inputs, training, **attention: see the call.
            with_attentions: bool. Whether to compute the probabilities of all pairs of tokens.
        Returns:
            (states, attentions): list of float [batch, length, hidden_size], the input and the
            output of each layer; and a dict of lists by layer, empty without probabilities:
            `attentions` and, if there may be global tokens, `global_attentions`, as returned by
            `SlidingWindowAttention.attention_probs`.
        """
        states, _ = run_observed(self, [inputs], training, attention=attention)
        states = [hidden for (hidden,) in states]
        if not with_attentions:
            return states, {}
        local, of_globals = zip(
            *(
                block.inner_layer.attention_probs(hidden, **attention)
                for block, hidden in zip(self.attention_layers, states[:-1], strict=True)
            ),
            strict=True,
        )
        attentions = {"attentions": list(local)}
        if of_globals[0] is not None:
            attentions["global_attentions"] = list(of_globals)
        return states, attentions


class LongformerLayers(SlidingWindowLayers):
    """Longformer's transformer layers, each with its own window: see `SlidingWindowLayers`.

    Args:
        config: `LongformerConfig`.
        **kwargs: of the Keras layer.
    """

    def __init__(self, config, **kwargs):
        super().__init__(
            stack.Stream("tokens", config.hidden_size, config.intermediate_size),
            config.radii,
            dilations=config.dilations,
            is_causal=config.autoregressive,
            **config.stack_options(),
            **kwargs,
        )


class BertWithPooler(conveniences.Pretrained, base.TokenLayer):
    """The base of encoders with BERT's tables and pooler: Longformer and BigBird.

    A subclass has a `config_class` and `layers_class`, and embeds its inputs.

    Args:
        config: a `config_class` or its dict.
        add_pooling_layer: bool. Whether to add BERT's pooler.
        name: name of the layer.

    >>> from etcmodel.models.longformer import modeling
    >>> issubclass(etcmodel.BigBirdModel, modeling.BertWithPooler)
    True
    """

    layers_class = None

    def __init__(self, config, add_pooling_layer=True, name=None, **kwargs):
        super().__init__(config, name, **kwargs)
        config = self.config
        self.word_embeddings = self._lookup("word_embeddings", config.vocab_size)
        self.position_embeddings = self._lookup(
            "position_embeddings", config.max_position_embeddings
        )
        self.token_type_embeddings = self._lookup("token_type_embeddings", config.type_vocab_size)
        self.embedding_norm = normalization.LayerNormalization(
            axis=-1, epsilon=config.layer_norm_eps, name="embedding_norm", dtype=self.dtype_policy
        )
        self.embedding_dropout = RecomputingDropout(
            config.hidden_dropout_prob, name="embedding_dropout", dtype=self.dtype_policy
        )
        self.layers = self.layers_class(config, name="layers", dtype=self.dtype_policy)
        self.pooler = None
        if add_pooling_layer:
            self.pooler = dense.Dense(
                config.hidden_size,
                activation="tanh",
                kernel_initializer=initializers.default_initializer(config.initializer_range),
                name="pooler",
                dtype=self.dtype_policy,
            )

    def _lookup(self, name, vocab_size):
        return EmbeddingLookup(
            vocab_size,
            self.config.hidden_size,
            initializer_range=self.config.initializer_range,
            name=name,
            dtype=self.dtype_policy,
        )

    def build(self, input_shape):
        """Builds all variables; the sizes follow from the config alone."""
        sublayers.build_all(
            self.config.hidden_size,
            self.word_embeddings,
            self.position_embeddings,
            self.token_type_embeddings,
            self.embedding_norm,
            self.layers,
            self.pooler,
        )
        super().build(input_shape)

    def outputs(self, embedded, attention, wanted, training):
        """Runs the layers and pools.

        Args:
            embedded: float [batch, length, hidden_size].
            attention: dict of the arguments of attention layers.
            wanted: (bool, bool). Whether hidden states and attentions are returned.
            training: bool.
        Returns:
            The outputs of the model's call.
        """
        output_hidden_states, output_attentions = wanted
        if not (output_hidden_states or output_attentions):
            hidden = self.layers(embedded, training=training, **attention)
            return hidden, self._pool(hidden)
        all_hidden, extras = self.layers.observed(
            embedded, training, with_attentions=output_attentions, **attention
        )
        if output_hidden_states:
            extras["hidden_states"] = all_hidden
        return all_hidden[-1], self._pool(all_hidden[-1]), extras

    def _pool(self, hidden):
        """Pools the first position, even if it is padding, as Hugging Face's model does."""
        return None if self.pooler is None else self.pooler(hidden[:, 0])

    def get_token_embedding_table(self):
        """Returns the table of token embeddings: variable [vocab_size, hidden_size]."""
        sublayers.build_sublayer(self, None)
        return self.word_embeddings.embedding_table

    def get_config(self):
        return {**super().get_config(), "add_pooling_layer": self.pooler is not None}


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class LongformerModel(BertWithPooler):
    """The Longformer encoder: token ids to hidden states, as in Hugging Face's `LongformerModel`.

    Texts may have any length up to the number of positions; nothing is padded to a multiple of the
    window, and no result depends on padding or on the other examples of the batch.

    Args:
        config: `LongformerConfig` (or its dict).
        add_pooling_layer: bool. Whether to add BERT's pooler.
        name: name of the layer.
    Call args:
        input_ids: int [batch, length]; or a dict of arguments; or None with `inputs_embeds`.
        attention_mask: int or bool [batch, length], or None. 0 is masked, 1 a local token, 2 a
            global one.
        global_attention_mask: further global tokens. A mask, 0/1 int or bool [batch, length]; or
            positions: int [number], for all examples, or for each a row of a `tf.RaggedTensor`.
            None for no others. Masked tokens are never global.
        token_type_ids: int [batch or 1, length]; by default 0.
        position_ids: int [batch or 1, length]; by default padding has `pad_token_id`, and other
            tokens count up from there, masked ones included.
        inputs_embeds: float [batch, length, hidden_size], in place of embeddings of `input_ids`.
        output_hidden_states: bool.
        output_attentions: bool. Needs memory for all pairs of tokens, and time.
        training: bool.
    Returns:
        (hidden, pooled): float [batch, length, hidden_size] and [batch, hidden_size], which is None
        without a pooler. If more is requested, a third output is a dict: `hidden_states`, a list of
        the embeddings and each layer's output; `attentions` and, if there may be global tokens,
        `global_attentions`, lists by layer of float32 [batch, num_heads, length, slots + window]
        and [batch, num_heads, length, slots], as returned by
        `SlidingWindowAttention.attention_probs`; the number of slots is that of the example with
        the most global tokens.
    Raises:
        ValueError: if inputs are inconsistent with each other or the model: see `checked`,
            also for what graphs raise.

    >>> config = etcmodel.LongformerConfig(hidden_size=12, num_hidden_layers=1)
    >>> model = etcmodel.LongformerModel(config)
    >>> hidden, pooled = model([[0, 7, 8, 2]], global_attention_mask=[[1, 0, 0, 0]])
    >>> hidden.shape, pooled.shape
    (TensorShape([1, 4, 12]), TensorShape([1, 12]))
    """

    config_class, layers_class = LongformerConfig, LongformerLayers

    def __init__(
        self,
        config: LongformerConfig | dict,
        add_pooling_layer: bool = True,
        name: str = "longformer",
        **kwargs,
    ):
        super().__init__(config, add_pooling_layer, name, **kwargs)

    def call(
        self,
        input_ids=None,
        attention_mask=None,
        global_attention_mask=None,
        token_type_ids=None,
        position_ids=None,
        inputs_embeds=None,
        output_hidden_states=False,
        output_attentions=False,
        training=None,
    ):
        given = {
            "input_ids": input_ids,
            "inputs_embeds": inputs_embeds,
            "attention_mask": attention_mask,
            "token_type_ids": token_type_ids,
            "position_ids": position_ids,
        }
        inputs = checked(self.config, given, global_attention_mask)
        embedded = self._embed(inputs, training)
        attention = {"token_mask": inputs.token_mask, "global_tokens": inputs.global_tokens}
        wanted = (output_hidden_states, output_attentions)
        return self.outputs(embedded, attention, wanted, training)

    def _embed(self, inputs, training):
        """Embeddings: float [batch, length, hidden_size]."""
        if inputs.input_ids is None:
            words = tf.cast(inputs.inputs_embeds, self.compute_dtype)
        else:
            words = self.word_embeddings(inputs.input_ids)
        embeddings = words + self.position_embeddings(inputs.position_ids)
        embeddings += self.token_type_embeddings(inputs.token_type_ids)
        return self.embedding_dropout(self.embedding_norm(embeddings), training=training)


# Longformer with heads, like Hugging Face's classes of the same names.


class LongformerHead(of_text.TextHead):
    """The base of Longformer's heads; `default_globals` makes tokens global if a batch does not.

    Args:
        encoder: `LongformerModel`, or `LongformerConfig`, from which a model is created.
        **kwargs: of `TextHead`.
    Call args: see `TextHead`; the arguments are those of `LongformerModel`.
    """

    encoder_class = LongformerModel
    needs_pooler = False

    @classmethod
    def make_encoder(cls, config):
        return LongformerModel(config, add_pooling_layer=cls.needs_pooler)

    def default_globals(self, batch):
        """Returns the `global_attention_mask` for a batch without one; None: none is global."""
        return  # AutoGraph warns of a body without a statement.

    def arguments(self, batch):
        if batch.get("global_attention_mask") is None:
            batch = {**batch, "global_attention_mask": self.default_globals(batch)}
        return batch

    def _ids_of(self, batch):
        ids = batch.get("input_ids")
        if ids is None:
            argument_checks.fail(
                "Give `global_attention_mask`: without `input_ids` nothing tells what is global."
            )
        return tf.convert_to_tensor(ids)

    def _first_separator(self, batch):
        """(ids [batch, length], position of each example's first separator [batch, 1])."""
        ids = self._ids_of(batch)
        is_separator = tf.equal(ids, self.encoder.config.sep_token_id)
        asserts = []
        argument_checks.check(
            tf.reduce_all(tf.reduce_any(is_separator, axis=1)),
            "Each text must have a separator, `sep_token_id`, which tells the question from the "
            "rest; or give `global_attention_mask`. `sep_token_id`:",
            self.encoder.config.sep_token_id,
            asserts=asserts,
        )
        with tf.control_dependencies(asserts):
            first = tf.argmax(tf.cast(is_separator, tf.int32), axis=1, output_type=tf.int32)
        return ids, first[:, tf.newaxis]


class LabelledHead(LongformerHead):
    """The base of Longformer's heads that predict labels, which may have names: see `Labelled`.

    Args:
        encoder: see `LongformerHead`.
        label_names: sequence of str. The earlier name of `labels`.
        **kwargs: of the other base.
    """

    def __init__(self, encoder, *, label_names: tuple[str, ...] = (), **kwargs):
        super().__init__(encoder, **{**kwargs, **({"labels": label_names} if label_names else {})})

    @classmethod
    def check_settings(cls, settings):
        super().check_settings({"labels": settings.get("label_names") or (), **settings})

    @property
    def label_names(self):
        """The earlier name of `labels`."""
        return self.labels

    @label_names.setter
    def label_names(self, names):
        self.labels = names


@head_base.register_head
class LongformerForMaskedLM(LongformerHead, of_text.MaskedLM):
    """Masked language model over a Longformer: see `MaskedLM`; by default no token is global.

    >>> config = etcmodel.LongformerConfig(hidden_size=12, num_hidden_layers=1)
    >>> etcmodel.LongformerForMaskedLM(config)([[0, 4, 8, 2]]).shape
    TensorShape([1, 4, 30522])
    """

    head_type = "longformer_masked_lm"
    transform_activation = "gelu_exact"  # As RoBERTa's, whatever the encoder has.


@head_base.register_head
class LongformerForSequenceClassification(LabelledHead, of_text.SequenceClassification):
    """Text classifier or regression over a Longformer: see `SequenceClassification`.

    By default the token that it reads is global.

    Args: see `LabelledHead`.

    >>> config = etcmodel.LongformerConfig(hidden_size=12, num_hidden_layers=1)
    >>> model = etcmodel.LongformerForSequenceClassification(config, labels=["neg", "pos"])
    >>> model([[0, 7, 8, 2]]).shape
    TensorShape([1, 2])
    """

    head_type = "longformer_sequence_classification"

    def default_globals(self, batch):
        is_token = of_text.token_mask(batch)
        return [0] if is_token is None else padding.is_first_real(is_token)


@head_base.register_head
class LongformerForTokenClassification(LabelledHead, of_text.TokenClassification):
    """Token classifier over a Longformer: see `TokenClassification`; by default none is global.

    Args: see `LabelledHead`.

    >>> config = etcmodel.LongformerConfig(hidden_size=12, num_hidden_layers=1)
    >>> model = etcmodel.LongformerForTokenClassification(config, labels=["O", "B-PER", "I-PER"])
    >>> model([[0, 7, 8, 2]]).shape
    TensorShape([1, 4, 3])
    """

    head_type = "longformer_token_classification"


@head_base.register_head
class LongformerForQuestionAnswering(LongformerHead, of_text.QuestionAnswering):
    """Extractive question answering over a Longformer: see `QuestionAnswering`.

    By default all tokens before the first separator, the question's, are global.

    >>> config = etcmodel.LongformerConfig(hidden_size=12, num_hidden_layers=1)
    >>> logits = etcmodel.LongformerForQuestionAnswering(config)([[0, 7, 2, 2, 8, 2]])
    >>> logits["start"].shape, logits["end"].shape
    (TensorShape([1, 6]), TensorShape([1, 6]))
    """

    head_type = "longformer_question_answering"

    def default_globals(self, batch):
        ids, first = self._first_separator(batch)
        return tf.range(tf.shape(ids)[1]) < first


@head_base.register_head
class LongformerForMultipleChoice(LongformerHead, of_text.MultipleChoice):
    """Multiple choice over a Longformer: see `MultipleChoice`.

    By default all tokens of each text's second part are global, which begins two tokens after the
    first separator.

    >>> config = etcmodel.LongformerConfig(hidden_size=12, num_hidden_layers=1)
    >>> model = etcmodel.LongformerForMultipleChoice(config)
    >>> model([[[0, 7, 2, 2, 5, 2], [0, 7, 2, 2, 6, 2]]]).shape  # One question, two choices.
    TensorShape([1, 2])
    """

    head_type = "longformer_multiple_choice"
    needs_pooler = True

    def encode(self, batch, training):
        """Like `TextHead.encode`; the second output is of the first token that is not padding."""
        hidden, _, *observed = super().encode(batch, training)
        first = padding.first_real(hidden, of_text.token_mask(batch))
        return (hidden, self.encoder.pooler(first), *observed)

    def default_globals(self, batch):
        ids, first = self._first_separator(batch)
        return tf.range(tf.shape(ids)[1]) > first + 1


# The names of Longformer's weights in Hugging Face's files.


_LAYER = r"longformer/layers/{}_layer_(\d+)"
_ATTENTION, _FEED_FORWARD = _LAYER.format("attention"), _LAYER.format("feed_forward")
_IN_LAYER = r"longformer.encoder.layer.\1"


_NAMES = (
    (
        r"longformer/(word|position|token_type)_embeddings/embedding_table",
        r"longformer.embeddings.\1_embeddings.weight",
    ),
    *norm_names("longformer/embedding_norm", "longformer.embeddings.LayerNorm"),
    *dense_names(
        rf"{_ATTENTION}/self_attention/((?:query|key|value)(?:_global)?)/linear",
        rf"{_IN_LAYER}.attention.self.\2",
    ),
    *dense_names(f"{_ATTENTION}/self_attention/output", f"{_IN_LAYER}.attention.output.dense"),
    *norm_names(f"{_ATTENTION}/layer_norm", f"{_IN_LAYER}.attention.output.LayerNorm"),
    *dense_names(f"{_FEED_FORWARD}/dense_layers/layer_0", f"{_IN_LAYER}.intermediate.dense"),
    *dense_names(f"{_FEED_FORWARD}/dense_layers/layer_1", f"{_IN_LAYER}.output.dense"),
    *norm_names(f"{_FEED_FORWARD}/layer_norm", f"{_IN_LAYER}.output.LayerNorm"),
    *dense_names("longformer/pooler", "longformer.pooler.dense"),
    *dense_names("mlm/transform/dense", "lm_head.dense"),
    *norm_names("mlm/transform/LayerNorm", "lm_head.layer_norm"),
    ("mlm/bias", "lm_head.bias"),
    *dense_names("classifier_dense", "classifier.dense"),
    *logits_names("classifier_out", "classifier.out_proj"),
    *logits_names("(classifier|qa_outputs)", r"\1"),
)


def _encoder_options(names, head_class):
    """Arguments of `LongformerModel`: most heads do without the pooler."""
    if head_class is not None and issubclass(head_class, LongformerHead):
        return {"add_pooling_layer": head_class.needs_pooler}
    return {"add_pooling_layer": any("pooler." in name for name in names)}


WEIGHTS = Weights(
    prefix="longformer.",
    names=_NAMES,
    copies={
        "lm_head.decoder.weight": "longformer.embeddings.word_embeddings.weight",
        "lm_head.decoder.bias": "lm_head.bias",
    },
    obsolete=("longformer.embeddings.position_ids",),  # The numbers from 0 on.
    encoder_options=_encoder_options,
)
