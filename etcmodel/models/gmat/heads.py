"""GMAT with heads (Gupta and Berant 2020, arXiv:2006.03274, section 4)."""

import tensorflow as tf

from etcmodel.models.gmat import inputs as inputs_lib
from etcmodel.models.gmat.modeling import GmatModel
from etcmodel.models.heads import base, losses, of_text

__all__ = [
    "GmatForMaskedLM",
    "GmatForMultipleChoice",
    "GmatForQuestionAnswering",
    "GmatForSequenceClassification",
    "GmatFirstTokenHead",
    "GmatForTokenClassification",
    "GmatHead",
]


class GmatHead(of_text.TextHead):
    """The base of GMAT's heads, which read the tokens' hidden states.

    Args:
        encoder: `GmatModel`, or `GmatConfig`, from which a model is created.
        **kwargs: of `TextHead`.
    Call args: see `TextHead`; the arguments are those of `GmatModel`.
    """

    encoder_class = GmatModel

    def encode(self, batch, training):
        hidden, memory, *observed = super().encode(batch, training)
        if memory is not None:
            # So that variables of the last layer's memory, which heads do not read, get gradients
            # of 0.
            hidden, memory = tf.identity_n([hidden, memory])
        return (hidden, memory, *observed)


class GmatFirstTokenHead(GmatHead, of_text.FirstTokenHead):
    """The base of GMAT's heads that read the first token.

    Positions and chunks are counted from the start of a row, so leading padding is moved behind the
    text first.
    """

    def encode(self, batch, training):
        return super().encode(inputs_lib.from_first_token(batch), training)


@base.register_head
class GmatForMaskedLM(GmatHead, of_text.MaskedLM):
    """Masked language model over a GMAT: see `MaskedLM`.

    The metrics are perplexity and percentage of errors, as in the paper.

    >>> config = etcmodel.GmatConfig(hidden_size=12, num_hidden_layers=1)
    >>> etcmodel.GmatForMaskedLM(config)([[2, 4, 8, 3]]).shape
    TensorShape([1, 4, 30522])
    """

    head_type = "gmat_masked_lm"

    def default_metrics(self):
        return [losses.Perplexity(), losses.ErrorPercent()]


@base.register_head
class GmatForSequenceClassification(GmatFirstTokenHead, of_text.SequenceClassification):
    """Text classifier or regression over a GMAT: see `SequenceClassification`.

    >>> config = etcmodel.GmatConfig(hidden_size=12, num_hidden_layers=1)
    >>> model = etcmodel.GmatForSequenceClassification(config, labels=["neg", "pos"])
    >>> model([[2, 7, 8, 3]]).shape
    TensorShape([1, 2])
    """

    head_type = "gmat_sequence_classification"


@base.register_head
class GmatForTokenClassification(GmatHead, of_text.TokenClassification):
    """Token classifier over a GMAT, such as for named entities: see `TokenClassification`.

    >>> config = etcmodel.GmatConfig(hidden_size=12, num_hidden_layers=1)
    >>> model = etcmodel.GmatForTokenClassification(config, labels=["O", "B-PER", "I-PER"])
    >>> model([[2, 7, 8, 3]]).shape
    TensorShape([1, 4, 3])
    """

    head_type = "gmat_token_classification"


@base.register_head
class GmatForQuestionAnswering(GmatHead, of_text.QuestionAnswering):
    """Extractive question answering over a GMAT: see `QuestionAnswering`.

    >>> config = etcmodel.GmatConfig(hidden_size=12, num_hidden_layers=1)
    >>> logits = etcmodel.GmatForQuestionAnswering(config)([[2, 7, 3, 8, 3]])
    >>> logits["start"].shape, logits["end"].shape
    (TensorShape([1, 5]), TensorShape([1, 5]))
    """

    head_type = "gmat_question_answering"


@base.register_head
class GmatForMultipleChoice(GmatFirstTokenHead, of_text.MultipleChoice):
    """Multiple choice over a GMAT, from pooled first tokens as in BERT: see `MultipleChoice`.

    >>> config = etcmodel.GmatConfig(hidden_size=12, num_hidden_layers=1)
    >>> model = etcmodel.GmatForMultipleChoice(config)
    >>> model([[[2, 7, 3], [2, 8, 3]]]).shape  # One question, two choices.
    TensorShape([1, 2])
    """

    head_type = "gmat_multiple_choice"

    def make_head(self):
        super().make_head()
        self.pooler = self.tanh_layer("pooler")

    def head(self, hidden, other, training):
        pooled = self.pooler(tf.cast(hidden[:, 0], tf.float32))
        return super().head(hidden, pooled, training)
