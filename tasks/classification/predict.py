"""Predicts labels of raw texts with an exported model."""

from etcmodel import finetuning

from . import examples, features
from .task import ClassificationTask

__all__ = ["ClassificationPredictor"]


class ClassificationPredictor(finetuning.ProcessorPredictor):
    """Classifies texts with an exported model; `predict` returns a list of `metrics.prediction`.

    Args: see `finetuning.Predictor`.
    """

    task_class = ClassificationTask

    @property
    def id_fields(self):
        return (self.config.id_field,)

    def parse_example(self, raw):
        return examples.parse_example(raw, self.config, with_label=False)

    def make_features(self, example):
        return [features.make_features(example, self.features, self.processor)[0]]

    def predict_one(self, text):
        """The result of `predict` for one raw text, a dict such as {"text": "…"}."""
        (prediction,) = self.predict([text])
        return prediction
