"""Longformer with heads, as Hugging Face's classes of the same names."""

import abc

import tensorflow as tf
import tf_keras

from etcmodel.layers import dense, initializers, masked_lm
from etcmodel.layers import heads as head_layers
from etcmodel.models.heads import base, losses
from etcmodel.models.longformer.modeling import LongformerModel
from etcmodel.ops import argument_checks

__all__ = [
    "LongformerForMaskedLM",
    "LongformerForMultipleChoice",
    "LongformerForQuestionAnswering",
    "LongformerForSequenceClassification",
    "LongformerForTokenClassification",
    "LongformerHead",
]


class LongformerHead(base.EncoderWithHead):
    """The base of these: a batch of `LongformerModel`'s arguments to float32 logits.

    A subclass computes in `head`, and says in `default_globals` which tokens are global where the
    batch does not say it.

    Args:
        encoder: `LongformerModel`, or `LongformerConfig`, of which the model makes one.
        **kwargs: of `EncoderWithHead`.
    Call args:
        features: dict of the arguments of `LongformerModel`, or `input_ids` alone.
        training: bool.
    """

    token_feature = "input_ids"
    needs_pooler = False

    @classmethod
    def make_encoder(cls, config):
        return LongformerModel(config, add_pooling_layer=cls.needs_pooler)

    def default_globals(self, batch):
        """What `global_attention_mask` is for a batch without one."""
        del batch

    @abc.abstractmethod
    def head(self, hidden, pooled, training):
        """Logits, or a dict of them, of the encoder's outputs."""

    def call(self, features, training=None):
        batch = dict(features) if hasattr(features, "items") else {"input_ids": features}
        if batch.get("global_attention_mask") is None:
            batch["global_attention_mask"] = self.default_globals(batch)
        hidden, pooled = self.encoder(**batch, training=training)
        return self.head(hidden, pooled, training)

    def feature_shape(self, name):
        return [None]

    def default_metrics(self):
        return [losses.SparseAccuracy()]

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


@base.register_head
class LongformerForMaskedLM(LongformerHead):
    """Tells masked tokens, tied to the token embeddings; no token is global by default.

    Labels are int [batch, length]; -100 does not count.

    Returns:
        float32 [batch, length, vocab_size]. Logits.
    """

    head_type = "longformer_masked_lm"

    def make_head(self):
        config = self.encoder.config
        self.language_model = masked_lm.make_masked_lm(
            self.encoder.get_token_embedding_table(),
            config.hidden_size,
            activation=config.activation,
            initializer_range=config.initializer_range,
            layer_norm_epsilon=config.layer_norm_eps,
        )

    def head(self, hidden, pooled, training):
        shape = tf.shape(hidden)[:2]
        return self.language_model(hidden, tf.broadcast_to(tf.range(shape[1]), shape))

    def default_loss(self):
        return losses.MeanCrossentropy()


@base.register_head
class LongformerForSequenceClassification(LongformerHead):
    """Classes of texts, from their first token, which alone is global by default.

    Labels are int [batch]; with `problem_type` "multi_label_classification" 0/1 [batch,
    num_labels], with "regression" float [batch] or [batch, num_labels].

    Args:
        encoder: see `LongformerHead`, as the rest of the arguments.
        num_labels: int.
        problem_type: str. Also "single_label_classification".
        **kwargs: of `LongformerHead`.
    Returns:
        float32 [batch, num_labels]. Logits.
    Raises:
        ValueError: if there is no such type of problem.
    """

    head_type = "longformer_sequence_classification"

    def __init__(
        self, encoder, *, num_labels=2, problem_type="single_label_classification", **kwargs
    ):
        if problem_type not in _PROBLEMS:
            raise ValueError(
                f"`problem_type` must be one of {list(_PROBLEMS)}. Received: {problem_type!r}"
            )
        own = {"num_labels": num_labels, "problem_type": problem_type}
        super().__init__(encoder, own=own, **kwargs)

    def make_head(self):
        config = self.encoder.config
        self.classifier_dense = self.built_on_hidden(
            dense.Dense(
                config.hidden_size,
                activation="tanh",
                kernel_initializer=initializers.default_initializer(config.initializer_range),
                name="classifier_dense",
                dtype="float32",
            )
        )
        self.logits = self.token_logits(self.num_labels, name="classifier_out")

    def default_globals(self, batch):
        return [0]

    def head(self, hidden, pooled, training):
        first = self.dropout(tf.cast(hidden[:, 0], tf.float32), training=training)
        return self.logits(self.dropout(self.classifier_dense(first), training=training))

    def default_loss(self):
        return _PROBLEMS[self.problem_type][0]()

    def default_metrics(self):
        return [make() for make in _PROBLEMS[self.problem_type][1:]]


# Their losses and metrics.
_PROBLEMS = {
    "single_label_classification": (losses.SparseCrossentropy, losses.SparseAccuracy),
    "multi_label_classification": (losses.BinaryCrossentropy, losses.BinaryAccuracy),
    "regression": (tf_keras.losses.MeanSquaredError,),
}


@base.register_head
class LongformerForTokenClassification(LongformerHead):
    """Classes of tokens; no token is global by default.

    Labels are int [batch, length]; -100 does not count.

    Args:
        encoder: see `LongformerHead`, as the rest of the arguments.
        num_labels: int.
        **kwargs: of `LongformerHead`.
    Returns:
        float32 [batch, length, num_labels]. Logits.
    """

    head_type = "longformer_token_classification"

    def __init__(self, encoder, *, num_labels=2, **kwargs):
        super().__init__(encoder, own={"num_labels": num_labels}, **kwargs)

    def make_head(self):
        self.logits = self.token_logits(self.num_labels, name="classifier")

    def head(self, hidden, pooled, training):
        return self.logits(self.dropout(hidden, training=training))

    def default_loss(self):
        return losses.MeanCrossentropy()


@base.register_head
class LongformerForQuestionAnswering(LongformerHead):
    """Where the answer starts and ends; by default all before the first separator is global.

    Labels are int [batch] `start` and `end`; positions beyond the text do not count.

    Returns:
        dict of `start` and `end`: float32 [batch, length]. Logits, of padding, too.
    """

    head_type = "longformer_question_answering"

    def make_head(self):
        self.span = self.built_on_hidden(
            head_layers.SpanLogits(
                ("start", "end"),
                self.encoder.config.initializer_range,
                name="qa_outputs",
                dtype="float32",
            )
        )

    def default_globals(self, batch):
        ids, first = self._first_separator(batch)
        return tf.range(tf.shape(ids)[1]) < first

    def head(self, hidden, pooled, training):
        return self.span(hidden)

    def default_loss(self):
        return {end: losses.PositionCrossentropy() for end in ("start", "end")}

    def default_metrics(self):
        return {end: [losses.SparseAccuracy()] for end in ("start", "end")}


@base.register_head
class LongformerForMultipleChoice(LongformerHead):
    """Which of several texts is right; by default all of the second part of each is global.

    Features are [batch, choices, length], labels int [batch]. The second part begins two tokens
    after the first separator.

    Returns:
        float32 [batch, choices]. Logits.
    """

    head_type = "longformer_multiple_choice"
    needs_pooler = True

    def make_head(self):
        self.logits = self.token_logits(1, name="classifier")

    def feature_shape(self, name):
        return [None, None]

    def default_globals(self, batch):
        ids, first = self._first_separator(batch)
        return tf.range(tf.shape(ids)[1]) > first + 1

    def call(self, features, training=None):
        batch = dict(features) if hasattr(features, "items") else {"input_ids": features}
        batch = {name: tf.convert_to_tensor(x) for name, x in batch.items() if x is not None}
        shape = tf.shape(next(iter(batch.values())))
        flat = {
            name: tf.reshape(x, tf.concat([[-1], tf.shape(x)[2:]], 0)) for name, x in batch.items()
        }
        return tf.reshape(super().call(flat, training=training), shape[:2])

    def head(self, hidden, pooled, training):
        return self.logits(self.dropout(pooled, training=training))

    def default_loss(self):
        return losses.SparseCrossentropy()
