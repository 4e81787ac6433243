"""Heads shared by all encoders of a single text, such as Longformer and GMAT."""

import abc
import typing

import tensorflow as tf

from etcmodel.layers import dense, initializers
from etcmodel.layers import heads as head_layers
from etcmodel.models import encoders, padding, processed_batches
from etcmodel.models import features as features_lib
from etcmodel.models.heads import base, losses
from etcmodel.models.heads.base import Labelled
from etcmodel.ops import argument_checks
from etcmodel.text import labels as labels_lib


class TextHead(base.EncoderWithHead):
    """The base of heads over encoders of a single text; returns float32 logits.

    A system's head has an `encoder_class`, and computes logits in `head`.

    Args:
        encoder: an `encoder_class`, or a config from which a model is created.
        **kwargs: of `EncoderWithHead`.
    Call args:
        features: dict of the encoder's arguments, or `input_ids` alone; they may also be keyword
            arguments, `model(**batch)`. Labels, whose names begin with "labels/", are dropped. Or
            the batch of an `EtcProcessor`, of which the text is read.
        training: bool.
        **arguments: further arguments of the encoder.
    Returns:
        See each head. With `output_hidden_states` or `output_attentions`, a dict of `logits`, or of
        the head's outputs, and of the encoder's.
    Raises:
        ValueError: if `encoder` is of another class.
    """

    token_feature = "input_ids"
    encoder_class = None

    @classmethod
    def class_of_encoder(cls, model_type):
        parts = encoders.encoder_type(model_type).seq2seq_classes
        return (
            cls.encoder_class
            if cls.encoder_class in parts
            else super().class_of_encoder(model_type)
        )

    @classmethod
    def make_encoder(cls, config):
        return cls.encoder_class(config)

    def _as_encoder(self, encoder):
        made = super()._as_encoder(encoder)
        if not isinstance(made, self.encoder_class):
            raise ValueError(
                f"{type(self).__name__} needs a {self.encoder_class.__name__}. Received: "
                f"{type(made).__name__}"
            )
        return made

    def arguments(self, batch):
        """Returns the arguments of the encoder, from the given ones: dict."""
        return batch

    def encode(self, batch, training):
        """Returns the encoder's two outputs: hidden states [batch, length, hidden_size] first."""
        return self.encoder(**self.arguments(batch), training=training)

    @abc.abstractmethod
    def head(self, hidden, other, training):
        """Computes logits, or a dict of them, from the encoder's outputs."""

    def call(self, features, training=None, **arguments):
        batch = {**_batch_of(features), **arguments}
        if self.token_feature not in batch and "token_ids" in batch:  # Of an `EtcProcessor`.
            batch = processed_batches.text_arguments(batch, self.encoder.config)
        hidden, other, *observed = self.encode(batch, training)
        outputs = self.head(hidden, other, training)
        if not observed:
            return outputs
        return {**(outputs if isinstance(outputs, dict) else {"logits": outputs}), **observed[0]}

    def default_metrics(self):
        return [losses.SparseAccuracy()]

    def dense_layer(self, name, activation="tanh"):
        """Creates a dense layer, by default like BERT's pooler, built for hidden states."""
        config = self.encoder.config
        return self.built_on_hidden(
            dense.Dense(
                config.hidden_size,
                activation=activation,
                kernel_initializer=initializers.default_initializer(config.initializer_range),
                name=name,
                dtype="float32",
            )
        )


class FirstTokenHead(TextHead):
    """The base of heads that read only the first token that is not padding."""

    def encode(self, batch, training):
        """Like `TextHead.encode`, for the first token: hidden states [batch, 1, hidden_size]."""
        hidden, other, *observed = super().encode(batch, training)
        first = padding.first_real(hidden, token_mask(batch))
        return (first[:, tf.newaxis], other, *observed)


class HeadOnPart(TextHead):
    """The base of heads on an encoder-decoder or its encoder, whose outputs are a dict.

    By default there is no dropout before the head, as in Hugging Face's configs.
    """

    def default_dropout(self):
        return 0.0

    def encode(self, batch, training):
        """(`last_hidden_state`, None), and the other outputs if any is requested."""
        outputs = dict(self.encoder(**self.arguments(batch), training=training))
        hidden = outputs.pop("last_hidden_state")
        is_observed = batch.get("output_hidden_states") or batch.get("output_attentions")
        return (hidden, None, *[outputs] * bool(is_observed))


def mean(hidden, mask):
    """The mean over a text's tokens: float32 [batch, hidden_size].

    Args:
        hidden: float [batch, length, hidden_size].
        mask: bool [batch, length], or None for all.
    """
    hidden = tf.cast(hidden, tf.float32)
    if mask is None:
        return tf.reduce_mean(hidden, axis=1)
    hidden = tf.where(mask[:, :, tf.newaxis], hidden, 0.0)
    number = tf.reduce_sum(tf.cast(mask, tf.float32), axis=1, keepdims=True)
    return tf.reduce_sum(hidden, axis=1) / number


def token_mask(batch):
    """Mask of the tokens that are not padding: bool [batch, length]; None without a mask."""
    mask = batch.get("attention_mask")
    argument_checks.check_shapes({"attention_mask": mask}, {"attention_mask": "batch length"})
    return None if mask is None else tf.cast(mask, tf.bool)


def _batch_of(features):
    """The given features without labels: dict."""
    given = features if hasattr(features, "items") else {"input_ids": features}
    return {name: x for name, x in given.items() if not features_lib.is_label(name)}


class MaskedLM(TextHead):
    """Masked language model: predicts masked tokens, tied to the token embeddings.

    Labels are int [batch, length]; -100 is ignored.

    Returns:
        float32 [batch, length, vocab_size]. Logits.
    Attributes:
        transform_activation: of the class: str, the activation before the logits; None for the
            encoder's.
        is_always_tied: of the class: bool. Whether no entry of the config unties the logits.
    """

    transform_activation = None
    is_always_tied = True

    def make_head(self):
        config = self.encoder.config
        self.language_model = head_layers.make_masked_lm(
            self.encoder.get_token_embedding_table(),
            config.hidden_size,
            activation=self.transform_activation or config.activation,
            initializer_range=config.initializer_range,
            layer_norm_epsilon=config.layer_norm_eps,
        )

    def head(self, hidden, other, training):
        shape = tf.shape(hidden)[:2]
        return self.language_model(hidden, tf.broadcast_to(tf.range(shape[1]), shape))

    def default_loss(self):
        return losses.MeanCrossentropy()


class SequenceClassification(Labelled, FirstTokenHead):
    """Classifies texts, or predicts numbers, from the first token that is not padding.

    Labels are int [batch]; for the `problem_type` "multi_label_classification" 0/1
    [batch, num_labels], for "regression" float [batch], or [batch, num_labels] if `num_labels`, 1
    by default, is more.

    Args:
        encoder: see `TextHead`, as for the other arguments.
        num_labels, labels: see `Labelled`.
        problem_type: str. "single_label_classification", or one of the above.
        **kwargs: of `TextHead`.
    Returns:
        float32 [batch, num_labels]. Logits.
    Attributes:
        dense_activation: function, or name in Keras: the activation of the head's first layer.
    """

    dense_activation = "tanh"

    def __init__(
        self,
        encoder,
        *,
        num_labels: int = None,
        problem_type: typing.Literal[labels_lib.PROBLEM_TYPES] = labels_lib.SINGLE_LABEL,
        labels: tuple[str, ...] = (),
        **kwargs,
    ):
        own = {"problem_type": problem_type}
        super().__init__(encoder, num_labels=num_labels, labels=labels, own=own, **kwargs)

    def make_head(self):
        self.classifier_dense = self.dense_layer("classifier_dense", self.dense_activation)
        self.logits = self.token_logits(self.num_labels, name="classifier_out")

    def head(self, hidden, other, training):
        first = self.dropout(tf.cast(hidden[:, 0], tf.float32), training=training)
        return self.logits(self.dropout(self.classifier_dense(first), training=training))

    def default_loss(self):
        return losses.OF_PROBLEMS[self.problem_type][0]()

    def default_metrics(self):
        return [make() for make in losses.OF_PROBLEMS[self.problem_type][1:]]


class TokenClassification(Labelled, TextHead):
    """Classifies each token.

    Labels are int [batch, length]; -100 is ignored.

    Args:
        encoder: see `TextHead`, as for the other arguments.
        num_labels, labels: see `Labelled`.
        **kwargs: of `TextHead`.
    Returns:
        float32 [batch, length, num_labels]. Logits.
    """

    def make_head(self):
        self.logits = self.token_logits(self.num_labels, name="classifier")

    def head(self, hidden, other, training):
        return self.logits(self.dropout(hidden, training=training))

    def default_loss(self):
        return losses.MeanCrossentropy()


class QuestionAnswering(TextHead):
    """Extractive question answering: predicts where the answer starts and ends.

    Labels are int [batch] `start` and `end`; positions beyond the text are ignored.

    Returns:
        dict of `start` and `end`: float32 [batch, length]. Logits, including those of padding.
    """

    def make_head(self):
        self.span = self.built_on_hidden(
            head_layers.SpanLogits(
                ("start", "end"),
                self.encoder.config.initializer_range,
                name="qa_outputs",
                dtype="float32",
            )
        )

    def head(self, hidden, other, training):
        return self.span(hidden)

    def default_loss(self):
        return {end: losses.PositionCrossentropy() for end in ("start", "end")}

    def default_metrics(self):
        return {end: [losses.SparseAccuracy()] for end in ("start", "end")}


class MultipleChoice(TextHead):
    """Multiple choice: scores several texts by the encoder's second output, a vector of each.

    Features are [batch, choices, length], labels int [batch].

    Returns:
        float32 [batch, choices]. Logits.
    """

    def make_head(self):
        self.logits = self.token_logits(1, name="classifier")

    def feature_shape(self, name):
        return [None, None]

    def call(self, features, training=None, **arguments):
        given = {**_batch_of(features), **arguments}
        wishes = {name: x for name, x in given.items() if x is None or isinstance(x, bool)}
        batch = {name: tf.convert_to_tensor(x) for name, x in given.items() if name not in wishes}
        shape = tf.shape(next(iter(batch.values())))
        flat = {
            name: tf.reshape(x, tf.concat([[-1], tf.shape(x)[2:]], 0)) for name, x in batch.items()
        }
        outputs = super().call(flat, training=training, **wishes)
        if isinstance(outputs, dict):
            return {**outputs, "logits": tf.reshape(outputs["logits"], shape[:2])}
        return tf.reshape(outputs, shape[:2])

    def head(self, hidden, other, training):
        return self.logits(self.dropout(other, training=training))

    def default_loss(self):
        return losses.SparseCrossentropy()
