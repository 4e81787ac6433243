"""ETC's heads, for any encoder of a long and a global input."""

import typing

import tensorflow as tf
import tf_keras

from etcmodel import shown_values
from etcmodel.layers import heads, ngrams
from etcmodel.models import features as features_lib
from etcmodel.models import pooling as pooling_lib
from etcmodel.models.heads import base, losses
from etcmodel.models.heads.base import Labelled
from etcmodel.ops import argument_checks
from etcmodel.ops import ngrams as ngrams_ops
from etcmodel.text.labels import MULTI_LABEL, PROBLEM_TYPES, REGRESSION, SINGLE_LABEL


class _IndexLabels(base.HeadModel):
    """The loss and the metrics of heads whose labels are indices of the logits' last axis."""

    def default_loss(self):
        return losses.SparseCrossentropy()

    def default_metrics(self):
        return [losses.SparseAccuracy()]


@base.register_head
class EtcForMaskedLM(_IndexLabels):
    """Masked language model, tied to the token embeddings (paper, section 3.5).

    Labels are int, shaped as the logits without their last axis: the ids of masked tokens, and -1
    elsewhere, which is ignored.

    Args:
        encoder: `EtcModel`, or the `EtcConfig` of a new one; see `HeadModel`.
        **kwargs: of `HeadModel`.
    Call args:
        features: see `HeadModel`. Also, optionally, int [batch, num_predictions]
            `masked_positions`, from 0: only these tokens are predicted, which needs less memory.
    Returns:
        float32 [batch, long_len, vocab_size], or [batch, num_predictions, vocab_size]. Logits.

    >>> config = etcmodel.EtcConfig(128, hidden_size=12, num_hidden_layers=1)
    >>> model = etcmodel.EtcForMaskedLM(config)
    >>> model([[2, 4, 8, 3]]).shape
    TensorShape([1, 4, 128])
    >>> model({"token_ids": [[2, 4, 8, 3]], "masked_positions": [[1]]}).shape
    TensorShape([1, 1, 128])
    """

    head_type = "masked_lm"
    extra_axes = {"masked_positions": "batch num_predictions*"}

    def make_head(self):
        config = self.encoder.config
        self.language_model = heads.make_masked_lm(
            self.encoder.get_token_embedding_table(),
            config.hidden_size,
            activation=config.hidden_act,
            initializer_range=config.initializer_range,
        )

    def head(self, long_output, global_output, inputs, training):
        positions = inputs.extras.get("masked_positions")
        shape = tf.shape(long_output)[:2]
        if positions is None:
            positions = tf.broadcast_to(tf.range(shape[1]), shape)
        else:
            words = "the number of long tokens"
            positions = argument_checks.in_range("masked_positions", positions, 0, shape[1], words)
        hidden = self.dropout(long_output, training=training)
        return self.language_model(hidden, positions)


@base.register_head
class EtcForSequenceClassification(Labelled, base.HeadModel):
    """Classifies texts, or predicts numbers: a linear layer on their pooled hidden states.

    Labels are int [batch], or with `multi_label` 0/1 [batch, num_labels]; -1 is ignored. For the
    `problem_type` "regression" they are float [batch], or [batch, num_labels] if `num_labels`, 1 by
    default, is more.

    Args:
        encoder: `EtcModel`, or the `EtcConfig` of a new one; see `HeadModel`.
        num_labels, labels: see `Labelled`.
        pooling: 'mean', 'first' or 'first_global': see `models.pooling.pool`.
        multi_label: bool. Whether a text may have several labels, each scored by a sigmoid.
        problem_type: str, as in Hugging Face's configs: "single_label_classification",
            "multi_label_classification" or "regression". None: as `multi_label` says.
        **kwargs: of `HeadModel`.
    Call args: see `HeadModel`.
    Returns:
        float32 [batch, num_labels]. Logits.
    Raises:
        ValueError: if `multi_label` is True and `problem_type` another one.

    >>> config = etcmodel.EtcConfig(128, hidden_size=12, num_hidden_layers=1)
    >>> model = etcmodel.EtcForSequenceClassification(config, labels=["neg", "pos"])
    >>> model([[2, 7, 8, 3], [2, 9, 3, 0]]).shape
    TensorShape([2, 2])
    """

    head_type = "sequence_classification"

    def __init__(
        self,
        encoder,
        *,
        num_labels: int = None,
        pooling: typing.Literal[pooling_lib.OF_TEXTS] = "mean",
        multi_label: bool = False,
        labels: tuple[str, ...] = (),
        problem_type: typing.Literal[PROBLEM_TYPES] = None,  # No None in files.
        **kwargs,
    ):
        if problem_type is not None:
            self.check_settings({"problem_type": problem_type})
        self._predicts_numbers = problem_type == REGRESSION
        if multi_label is True and problem_type not in (None, MULTI_LABEL):
            raise ValueError(
                f"`multi_label` True contradicts `problem_type` {problem_type!r}. Give both, since "
                "one may be that of the folder."
            )
        own = {"pooling": pooling, "multi_label": multi_label or problem_type == MULTI_LABEL}
        if num_labels is None and self._predicts_numbers:
            num_labels = len(labels) or 1
        super().__init__(encoder, num_labels=num_labels, labels=labels, own=own, **kwargs)

    @property
    def problem_type(self):
        """str. The problem type as named in Hugging Face's configs."""
        if self._predicts_numbers:
            return REGRESSION
        return MULTI_LABEL if self.multi_label else SINGLE_LABEL

    def settings(self):
        # `multi_label` tells the others, also in older files.
        numbers = {"problem_type": REGRESSION} if self._predicts_numbers else {}
        return {**super().settings(), **numbers}

    def make_head(self):
        self.logits = self.token_logits(self.num_labels)

    def head(self, long_output, global_output, inputs, training):
        return self.logits(self.pooled(long_output, global_output, inputs, training))

    def default_loss(self):
        return losses.OF_PROBLEMS[self.problem_type][0]()

    def default_metrics(self):
        return [make() for make in losses.OF_PROBLEMS[self.problem_type][1:]]


@base.register_head
class EtcForTokenClassification(Labelled, _IndexLabels):
    """Classifies each long token, such as for named entities with BIO tags.

    Labels are int [batch, long_len]; -1, as for padding, is ignored.

    Args:
        encoder: `EtcModel`, or the `EtcConfig` of a new one; see `HeadModel`.
        num_labels, labels: see `Labelled`.
        **kwargs: of `HeadModel`.
    Call args: see `HeadModel`.
    Returns:
        float32 [batch, long_len, num_labels]. Logits.

    >>> config = etcmodel.EtcConfig(128, hidden_size=12, num_hidden_layers=1)
    >>> model = etcmodel.EtcForTokenClassification(config, labels=["O", "B-PER", "I-PER"])
    >>> model([[2, 7, 8, 3]]).shape
    TensorShape([1, 4, 3])
    """

    head_type = "token_classification"

    def make_head(self):
        self.logits = self.token_logits(self.num_labels)

    def head(self, long_output, global_output, inputs, training):
        return self.logits(self.dropout(long_output, training=training))


@tf.autograph.experimental.do_not_convert
def sentence_logits(layer, global_hidden, inputs):
    """Computes a logit per global token; `MASKED_LOGIT` for padding.

    Args:
        layer: `TokenLogits` with one output.
        global_hidden: float [batch, global_len, hidden_size].
        inputs: `features.EncoderInputs`.
    Returns:
        float32 [batch, global_len].
    Raises:
        ValueError: if there is no global token; if that is known only when a graph runs,
            `tf.errors.InvalidArgumentError`.
    """
    asserts = []
    length = tf.shape(global_hidden)[1]
    argument_checks.check(
        length > 0,
        "Sentences are scored by their global tokens: give `global_token_ids` or `links`, or a "
        "config with `global_block_length`. Received global_len:",
        length,
        asserts=asserts,
    )
    with tf.control_dependencies(asserts):
        return tf.where(inputs.global_mask, layer(global_hidden)[:, :, 0], heads.MASKED_LOGIT)


@base.register_head
class EtcForSentenceSelection(base.HeadModel):
    """Selects sentences by their global tokens, such as evidence, summary sentences or answers.

    Labels are 0/1 int [batch, global_len]; -1, as for padding, is ignored.

    Args:
        encoder: `EtcModel`, or the `EtcConfig` of a new one; see `HeadModel`.
        **kwargs: of `HeadModel`.
    Call args: see `HeadModel`.
    Returns:
        float32 [batch, global_len]. Logits, -1e9 for padding.

    >>> config = etcmodel.EtcConfig(128, hidden_size=12, num_hidden_layers=1)
    >>> processor = etcmodel.EtcProcessor("vocab.txt")
    >>> etcmodel.EtcForSentenceSelection(config)(processor("It is good. It is bad.")).shape
    TensorShape([1, 3])
    """

    head_type = "sentence_selection"

    def make_head(self):
        self.logits = self.token_logits(1)

    def head(self, long_output, global_output, inputs, training):
        hidden = self.dropout(global_output, training=training)
        return sentence_logits(self.logits, hidden, inputs)

    def default_loss(self):
        return losses.BinaryCrossentropy()

    def default_metrics(self):
        return [losses.BinaryAccuracy()]


@base.register_head
class EtcForMultipleChoice(_IndexLabels):
    """Multiple choice: scores the given answers, in one of two input formats.

    With `candidate_token_id`, all answers are in one input, each with a global token of that id
    (paper, section 4.2, "WikiHop"); labels are int [batch], the index of the correct answer's
    global token. Without it, each answer is in a separate input: features have shape [batch,
    num_choices, ...], and labels are int [batch], the index of the correct answer. Labels of -1 are
    ignored.

    Args:
        encoder: `EtcModel`, or the `EtcConfig` of a new one; see `HeadModel`.
        candidate_token_id: int or None.
        pooling: 'mean', 'first' or 'first_global': see `models.pooling.pool`. Only for separate
            inputs.
        **kwargs: of `HeadModel`.
    Call args: see `HeadModel`.
    Returns:
        float32 logits: [batch, global_len], -1e9 for tokens that are not candidates; or [batch,
        num_choices].

    >>> config = etcmodel.EtcConfig(128, hidden_size=12, num_hidden_layers=1)
    >>> model = etcmodel.EtcForMultipleChoice(config)
    >>> model([[[2, 7, 3], [2, 8, 3]]]).shape  # One question, two answers.
    TensorShape([1, 2])
    """

    head_type = "multiple_choice"

    def __init__(
        self,
        encoder,
        *,
        candidate_token_id: int | None = None,
        pooling: typing.Literal[pooling_lib.OF_TEXTS] = "mean",
        **kwargs,
    ):
        own = {"candidate_token_id": candidate_token_id, "pooling": pooling}
        super().__init__(encoder, own=own, **kwargs)

    def make_head(self):
        self.logits = self.token_logits(1)

    def call(self, features, training=None):
        if self.candidate_token_id is not None:
            return super().call(features, training=training)
        if not hasattr(features, "items"):
            features = {"token_ids": features}
        features = {
            name: tf.convert_to_tensor(x)
            for name, x in features.items()
            if not features_lib.is_label(name)
        }
        for name, tensor in features.items():
            if tensor.shape.rank is not None and tensor.shape.rank < 3:
                argument_checks.fail(
                    f"`{name}` must have shape [batch, num_choices, ...], since there is no "
                    f"`candidate_token_id`. Received shape: {tensor.shape.as_list()}"
                )
        # [batch, num_choices, ...] to [batch * num_choices, ...].
        flat = {
            name: tf.reshape(x, tf.concat([[-1], tf.shape(x)[2:]], 0))
            for name, x in features.items()
        }
        logits = super().call(flat, training=training)
        return tf.reshape(logits, [-1, tf.shape(next(iter(features.values())))[1]])

    def feature_shape(self, name):
        shape = super().feature_shape(name)
        return [None, *shape] if self.candidate_token_id is None else shape

    def head(self, long_output, global_output, inputs, training):
        if self.candidate_token_id is None:
            return self.logits(self.pooled(long_output, global_output, inputs, training))
        hidden = self.dropout(global_output, training=training)
        logits = sentence_logits(self.logits, hidden, inputs)
        global_ids = inputs.arguments["global_token_ids"]
        is_candidate = tf.equal(global_ids, self.candidate_token_id)
        return tf.where(is_candidate, logits, heads.MASKED_LOGIT)


ANSWER_TYPES = ("span", "yes", "no", "no_answer")
_SPAN = "span"
_ENDS = ("start", "end")


@base.register_head
class EtcForQuestionAnswering(base.HeadModel):
    """Question answering: a span of the text, the type of the answer, and supporting sentences.

    Labels are a dict by output: int [batch] `start` and `end`, the first and the last token of the
    answer; int [batch] `type`, an index of `answer_types`; and 0/1 [batch, global_len] `evidence`.
    Labels of -1 are ignored, and so are outputs without labels.

    Args:
        encoder: `EtcModel`, or the `EtcConfig` of a new one; see `HeadModel`.
        answer_types: sequence of distinct str. The kinds of answers, among them "span", to which
            `start` and `end` belong; empty if all answers are spans.
        evidence: bool. Whether to score sentences, by their global tokens, as evidence.
        pooling: 'mean', 'first' or 'first_global': see `models.pooling.pool`. How the vectors for
            the answer's type are pooled.
        **kwargs: of `HeadModel`.
    Call args: see `HeadModel`.
    Returns:
        dict of float32 logits: `start`, `end` [batch, long_len], -1e9 for padding; `type` [batch,
        number of types]; `evidence` [batch, global_len], -1e9 for padding.
    Raises:
        ValueError: see `HeadModel`; also if `answer_types` are invalid.

    >>> config = etcmodel.EtcConfig(128, hidden_size=12, num_hidden_layers=1)
    >>> logits = etcmodel.EtcForQuestionAnswering(config)([[2, 7, 3, 8, 9, 3]])
    >>> {name: tuple(x.shape) for name, x in logits.items()}
    {'start': (1, 6), 'end': (1, 6), 'type': (1, 4), 'evidence': (1, 1)}
    """

    head_type = "question_answering"

    def __init__(
        self,
        encoder,
        *,
        answer_types: tuple[str, ...] = ANSWER_TYPES,
        evidence: bool = True,
        pooling: typing.Literal[pooling_lib.OF_TEXTS] = "mean",
        **kwargs,
    ):
        own = {
            "answer_types": _checked_types(answer_types),
            "evidence": evidence,
            "pooling": pooling,
        }
        super().__init__(encoder, own=own, **kwargs)

    def make_head(self):
        initializer_range = self.encoder.config.initializer_range
        self.span = self.built_on_hidden(
            heads.SpanLogits(_ENDS, initializer_range, name="span", dtype="float32")
        )
        self.type = self.token_logits(len(self.answer_types), "type") if self.answer_types else None
        self.sentence = self.token_logits(1, "evidence") if self.evidence else None

    def head(self, long_output, global_output, inputs, training):
        outputs = self.span(self.dropout(long_output, training=training), allowed=inputs.mask)
        if self.type is not None:
            outputs["type"] = self.type(self.pooled(long_output, global_output, inputs, training))
        if self.sentence is not None:
            hidden = self.dropout(global_output, training=training)
            outputs["evidence"] = sentence_logits(self.sentence, hidden, inputs)
        return outputs

    def _by_output(self, of_sparse, of_binary):
        made = {name: of_sparse() for name in _ENDS}
        if self.type is not None:
            made["type"] = of_sparse()
        if self.sentence is not None:
            made["evidence"] = of_binary()
        return made

    def default_loss(self):
        return self._by_output(losses.SparseCrossentropy, losses.BinaryCrossentropy)

    def default_metrics(self):
        return self._by_output(losses.SparseAccuracy, losses.BinaryAccuracy)


def _checked_types(answer_types):
    """The types as a tuple; ValueError if they are not distinct str, `_SPAN` among them."""
    is_list = isinstance(answer_types, (list, tuple))
    types = tuple(answer_types) if is_list else ()
    are_names = is_list and all(isinstance(x, str) and x for x in types)
    if not are_names or len(set(types)) < len(types) or (types and _SPAN not in types):
        raise ValueError(
            f"`answer_types` must be different names, {_SPAN!r} among them, of which `start` and "
            "`end` tell the place; or empty if all answers are spans. Received: "
            f"{shown_values.shown(answer_types)}"
        )
    return types


def best_spans(outputs, max_length=30):
    """Finds the best span of each example, among its 50 best starts and 50 best ends.

    Args:
        outputs: dict, the outputs of `EtcForQuestionAnswering`.
        max_length: int. The most tokens of an answer.
    Returns:
        dict of [batch]: int32 `start` and `end`, and float32 `score`, the sum of both logits; at
        most -1e9 if no span is short enough.

    >>> from etcmodel.models import best_spans
    >>> best = best_spans({"start": [[0.0, 5.0, 1.0]], "end": [[9.0, 0.0, 4.0]]})
    >>> {name: x.numpy().tolist() for name, x in best.items()}
    {'start': [1], 'end': [2], 'score': [9.0]}
    """
    starts, start_places = heads.top_positions(tf.convert_to_tensor(outputs["start"]))
    ends, end_places = heads.top_positions(tf.convert_to_tensor(outputs["end"]))
    lengths = end_places[:, tf.newaxis] - start_places[:, :, tf.newaxis] + 1
    scores = starts[:, :, tf.newaxis] + ends[:, tf.newaxis]  # [batch, starts, ends]
    scores = tf.where((lengths >= 1) & (lengths <= max_length), scores, 2 * heads.MASKED_LOGIT)
    num_ends = tf.shape(ends)[1]
    best = tf.argmax(tf.reshape(scores, [tf.shape(scores)[0], -1]), -1, tf.int32)
    return {
        "start": tf.gather(start_places, best // num_ends, batch_dims=1),
        "end": tf.gather(end_places, best % num_ends, batch_dims=1),
        "score": tf.reduce_max(scores, [1, 2]),
    }


_SMOOTHING_MASS = 1e-4


@base.register_head
class EtcForKeyphraseExtraction(base.HeadModel):
    """Extracts key phrases: scores all n-grams of words (paper, appendix, "OpenKP").

    Labels are int [batch, num_phrases, 2]: the first word and the number of words of each key
    phrase; -1, -1 is padding.

    Args:
        encoder: `EtcModel`, or the `EtcConfig` of a new one; see `HeadModel`.
        max_words: int. The most words in a phrase.
        **kwargs: of `HeadModel`.
    Call args:
        features: see `HeadModel`. Also int [batch, long_len] `word_ids`, the index of each token's
            word, from 0 without gaps, or -1 for tokens outside of words. By default each token is a
            word.
    Returns:
        float32 [batch, max_words, long_len]. Logits by number of words (minus 1) and first word;
        -10,000 for n-grams beyond the last word.

    >>> config = etcmodel.EtcConfig(128, hidden_size=12, num_hidden_layers=1)
    >>> model = etcmodel.EtcForKeyphraseExtraction(config, max_words=3)
    >>> model([[2, 7, 8, 3]]).shape
    TensorShape([1, 3, 4])
    """

    head_type = "keyphrase_extraction"
    at_least_1 = ("max_words",)
    extra_axes = {"word_ids": "batch long_len"}

    def __init__(self, encoder, *, max_words: int = 5, **kwargs):
        super().__init__(encoder, own={"max_words": max_words}, **kwargs)

    def make_head(self):
        config = self.encoder.config
        self.scorer = ngrams.NgramScorer(
            config.hidden_size,
            self.max_words,
            dropout_rate=self.dropout.rate,
            initializer_range=config.initializer_range,
        )
        # As attributes, so that the model tracks their variables.
        self.word_norm, self.ngram_convs = self.scorer.word_norm, self.scorer.convs
        self.ngram_norms, self.logit_layers = self.scorer.norms, self.scorer.logit_layers
        self.scorer.build()

    def head(self, long_output, global_output, inputs, training):
        word_ids = inputs.extras.get("word_ids")
        if word_ids is None:
            # Padding may be anywhere, and does not count as words.
            word_ids = tf.where(inputs.mask, tf.cumsum(tf.cast(inputs.mask, tf.int32), 1) - 1, -1)
        else:
            limit, words = tf.shape(word_ids)[1], "the number of long tokens"
            word_ids = argument_checks.in_range("word_ids", word_ids, -1, limit, words)
        words = ngrams_ops.sum_words(long_output, tf.maximum(word_ids, 0), word_ids >= 0)
        places = tf.range(tf.shape(word_ids)[1])
        word_mask = places <= tf.reduce_max(word_ids, axis=1, keepdims=True)
        mask = ngrams_ops.ngram_mask(word_mask, self.max_words)
        return self.scorer(words, mask, training)

    def default_loss(self):
        return KeyphraseCrossentropy()

    def default_metrics(self):
        return [KeyphraseHits()]


def _is_there(logits):
    """Which n-grams exist: bool, shaped as the logits."""
    return logits > 0.5 * ngrams_ops.MASKED_LOGIT


def _phrases(labels):
    labels = losses.as_int32(labels)
    argument_checks.check_shapes({"labels": labels}, {"labels": "batch num_phrases 2"})
    return labels


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class KeyphraseCrossentropy(tf_keras.losses.Loss):
    """Cross entropy with one softmax over all n-grams of a text; 0 without key phrases."""

    def call(self, y_true, y_pred):
        first, length = tf.unstack(_phrases(y_true), 2, axis=-1)
        logits = tf.cast(y_pred, tf.float32)
        labels, has_labels = ngrams_ops.ngram_labels(
            first, length, _is_there(logits), _SMOOTHING_MASS
        )
        return tf.where(has_labels, ngrams_ops.cross_entropy(labels, logits), 0.0)


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class KeyphraseHits(tf_keras.metrics.Mean):
    """Precision at 1: the share of texts, of those with key phrases, whose best n-gram is one."""

    def __init__(self, name="precision_at_1", **kwargs):
        super().__init__(name=name, **kwargs)

    def update_state(self, y_true, y_pred, sample_weight=None):
        best = best_phrases(y_pred, 1)  # [batch, 1, 2]
        phrases = _phrases(y_true)
        is_hit = tf.reduce_any(tf.reduce_all(tf.equal(best, phrases), -1), -1)
        weights = tf.cast(tf.reduce_any(phrases[:, :, 1] > 0, axis=1), tf.float32)
        if sample_weight is not None:
            weights *= tf.reshape(tf.cast(sample_weight, tf.float32), [-1])
        return super().update_state(tf.cast(is_hit, tf.float32), weights)


def best_phrases(logits, num_best=5):
    """Returns the highest-scoring key phrases of each text.

    Args:
        logits: float [batch, max_words, long_len], of `EtcForKeyphraseExtraction`.
        num_best: int.
    Returns:
        int32 [batch, num_best, 2]. First word and number of words, the best first; 0 words if there
        are fewer phrases.

    >>> from etcmodel.models import best_phrases
    >>> logits = [[[0.1, 0.9, 0.3], [0.2, 1.5, -10000.0]]]  # Of one word, and of two.
    >>> best_phrases(logits, num_best=2).numpy()
    array([[[1, 2],
            [1, 1]]], dtype=int32)
    """
    logits = tf.convert_to_tensor(logits)
    best = ngrams_ops.best_ngrams(logits, _is_there(logits), num_best)
    return tf.stack([best["top_start_idx"], best["top_phrase_len"]], axis=-1)
