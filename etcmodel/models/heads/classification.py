"""Classification of texts and of tokens."""

import typing

from etcmodel.models import pooling as pooling_lib
from etcmodel.models.heads import base, losses
from etcmodel.models.heads.base import Labelled
from etcmodel.text.labels import MULTI_LABEL, SINGLE_LABEL

__all__ = ["EtcForSequenceClassification", "EtcForTokenClassification"]


@base.register_head
class EtcForSequenceClassification(Labelled, base.HeadModel):
    """Classifies texts: a linear layer on their pooled hidden states.

    Labels are int [batch], or with `multi_label` 0/1 [batch, num_labels]; -1 is ignored.

    Args:
        encoder: `EtcModel`, or the `EtcConfig` of a new one; see `HeadModel`.
        num_labels, labels: see `Labelled`.
        pooling: 'mean', 'first' or 'first_global': see `models.pooling.pool`.
        multi_label: bool. Whether a text may have several labels, each scored by a sigmoid.
        **kwargs: of `HeadModel`.
    Call args: see `HeadModel`.
    Returns:
        float32 [batch, num_labels]. Logits.

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
        **kwargs,
    ):
        own = {"pooling": pooling, "multi_label": multi_label}
        super().__init__(encoder, num_labels=num_labels, labels=labels, own=own, **kwargs)

    @property
    def problem_type(self):
        """str. The problem type as named in Hugging Face's configs."""
        return MULTI_LABEL if self.multi_label else SINGLE_LABEL

    def make_head(self):
        self.logits = self.token_logits(self.num_labels)

    def head(self, long_output, global_output, inputs, training):
        return self.logits(self.pooled(long_output, global_output, inputs, training))

    def default_loss(self):
        return losses.BinaryCrossentropy() if self.multi_label else losses.SparseCrossentropy()

    def default_metrics(self):
        return [losses.BinaryAccuracy() if self.multi_label else losses.SparseAccuracy()]


@base.register_head
class EtcForTokenClassification(Labelled, base.HeadModel):
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

    def default_loss(self):
        return losses.SparseCrossentropy()

    def default_metrics(self):
        return [losses.SparseAccuracy()]
