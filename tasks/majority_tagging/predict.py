"""Tags raw sequences with an exported model."""

import dataclasses

from etcmodel import finetuning

from . import examples, features
from .task import MajorityTask

__all__ = ["MajorityPredictor"]


class MajorityPredictor(finetuning.LinePredictor):
    """Tags sequences with an exported model; `predict` returns {example id: list of tags}.

    Args: see `finetuning.Predictor`.
    """

    task_class = MajorityTask

    parse_example = staticmethod(examples.parse_example)

    def make_features(self, example):
        untagged = dataclasses.replace(example, tags=None)
        return [features.make_features(untagged, self.config.features(), self.tokenizer)]
