"""Answers raw questions with an exported model."""

import dataclasses

from etcmodel import finetuning

from . import examples, features
from .task import NumericalTask

__all__ = ["NumericalPredictor"]


class NumericalPredictor(finetuning.LinePredictor):
    """Answers questions with an exported model; `predict` returns {example id: answer}.

    Args: see `finetuning.Predictor`.
    """

    task_class = NumericalTask

    parse_example = staticmethod(examples.parse_example)

    def make_features(self, example):
        unanswered = dataclasses.replace(example, answer=None)
        found = features.make_features(unanswered, self.config.features(), self.tokenizer)
        return [found.values]
