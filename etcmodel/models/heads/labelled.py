"""The base of heads that predict labels, which may have names."""

import numpy as np

from etcmodel import shown_values
from etcmodel.models.heads import encoder_with_head
from etcmodel.text import labels as labels_lib

__all__ = ["Labelled"]


class Labelled(encoder_with_head.EncoderWithHead):
    """The base of heads that predict labels; list it before the other base class.

    Args:
        encoder: see `EncoderWithHead`.
        num_labels: int. None: the number of `labels`, or 2 without names.
        labels: sequence of distinct str, in the order of the logits; or empty. They are the
            `id2label` of Hugging Face's files.
        **kwargs: of `EncoderWithHead`.
    Raises:
        ValueError: if there are more or fewer names than labels, or two are the same.
    """

    problem_type = None  # Of labels of texts, named as in `text.labels`.

    def __init__(
        self,
        encoder,
        *,
        num_labels: int = None,  # No None in files, which are checked by types.
        labels: tuple[str, ...] = (),
        own=None,
        **kwargs,
    ):
        if num_labels is None:
            num_labels = len(labels) or 2
        own = {"num_labels": num_labels, **(own or {}), "labels": tuple(labels)}
        super().__init__(encoder, own=own, **kwargs)

    @classmethod
    def check_settings(cls, settings):
        super().check_settings(settings)
        names, number = settings.get("labels") or (), settings.get("num_labels")
        if names and number is not None and len(names) != number:
            raise ValueError(
                f"`labels` must be as many as `num_labels`, {number}. Received: "
                f"{shown_values.shown(list(names))}"
            )
        if len(set(names)) < len(names):
            raise ValueError(
                f"`labels` must be different. Received: {shown_values.shown(list(names))}"
            )

    @property
    def labels(self):
        """tuple of str: the labels in the order of the logits; () if they have no names."""
        return self._labels

    @labels.setter
    def labels(self, names):
        self.check_settings({"labels": tuple(names), "num_labels": self.num_labels})
        self._labels = tuple(names)

    def settings(self):
        settings = super().settings()
        if not self.labels:  # As before, so that earlier versions can read the folder.
            del settings["labels"]
        return settings

    def as_labels(self, logits):
        """Converts logits to the names of the predicted labels.

        Args:
            logits: float [..., num_labels].
        Returns:
            list of str, nested as the logits without their last axis; for multi-label models, of
            tuples of the labels with a probability above 0.5.
        Raises:
            ValueError: if the labels have no names, or the model is a regression.

        >>> config = etcmodel.EtcConfig(128, hidden_size=12, num_hidden_layers=1)
        >>> model = etcmodel.EtcForTokenClassification(config, labels=["O", "B-PER", "I-PER"])
        >>> model.as_labels([[[0.1, 2.0, 0.3], [1.0, 0.0, 0.0]]])
        [['B-PER', 'O']]
        """
        if not self.labels:
            raise ValueError(
                "The model has no names of its labels: train it on words, or set `model.labels`, "
                f"{self.num_labels} of them in the order of its outputs."
            )
        logits, names = np.asarray(logits), self.labels
        if self.problem_type == labels_lib.MULTI_LABEL:
            return [tuple(x for x, y in zip(names, row, strict=True) if y > 0) for row in logits]
        return np.array(names, object)[logits.argmax(axis=-1)].tolist()
