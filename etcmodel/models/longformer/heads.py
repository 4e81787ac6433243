"""Longformer with heads, like Hugging Face's classes of the same names."""

import tensorflow as tf

from etcmodel.models import padding
from etcmodel.models.heads import base, of_text
from etcmodel.models.longformer.modeling import LongformerModel
from etcmodel.ops import argument_checks

__all__ = [
    "LabelledHead",
    "LongformerForMaskedLM",
    "LongformerForMultipleChoice",
    "LongformerForQuestionAnswering",
    "LongformerForSequenceClassification",
    "LongformerForTokenClassification",
    "LongformerHead",
]


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
        """Returns the `global_attention_mask` for a batch without one."""
        del batch

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


@base.register_head
class LongformerForMaskedLM(LongformerHead, of_text.MaskedLM):
    """Masked language model over a Longformer: see `MaskedLM`; by default no token is global.

    >>> config = etcmodel.LongformerConfig(hidden_size=12, num_hidden_layers=1)
    >>> etcmodel.LongformerForMaskedLM(config)([[0, 4, 8, 2]]).shape
    TensorShape([1, 4, 30522])
    """

    head_type = "longformer_masked_lm"


@base.register_head
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


@base.register_head
class LongformerForTokenClassification(LabelledHead, of_text.TokenClassification):
    """Token classifier over a Longformer: see `TokenClassification`; by default none is global.

    Args: see `LabelledHead`.

    >>> config = etcmodel.LongformerConfig(hidden_size=12, num_hidden_layers=1)
    >>> model = etcmodel.LongformerForTokenClassification(config, labels=["O", "B-PER", "I-PER"])
    >>> model([[0, 7, 8, 2]]).shape
    TensorShape([1, 4, 3])
    """

    head_type = "longformer_token_classification"


@base.register_head
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


@base.register_head
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
