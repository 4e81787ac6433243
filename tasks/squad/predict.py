"""Answers raw questions about contexts with an exported model."""

from etcmodel import finetuning

from . import examples, features
from .task import SquadTask

__all__ = ["SquadPredictor"]


class SquadPredictor(finetuning.ProcessorPredictor):
    """Answers questions with an exported model; `predict` returns the result of `metrics.combine`.

    Args: see `finetuning.Predictor`.
    """

    task_class = SquadTask

    def parse_example(self, raw):
        return examples.parse_example(raw, arrangement=self.features)

    def read_rows(self, path):
        return ((row["place"], row["question"]) for row in examples.read_questions(path))

    def make_features(self, example):
        return features.make_features(example, self.features, self.processor)[0]

    def predict_one(self, question, context):
        """The result of `predict` for one question about a text, both str."""
        return self.predict([{"id": "one", "question": question, "context": context}])["one"]
