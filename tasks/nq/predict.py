"""Answers raw Natural Questions lines with an exported model."""

from etcmodel import finetuning

from . import examples, features
from .task import NqTask

__all__ = ["NqPredictor"]


class NqPredictor(finetuning.Predictor):
    """Answers questions about pages, taken one at a time, with an exported model.

    `predict` returns the official format: {"predictions": [{"example_id": int, …}, …]}.

    Args: see `finetuning.Predictor`; `max_short_answer_len` is one of the options.
    """

    task_class = NqTask
    id_fields = ("example_id", "id")

    def __init__(self, directory, **options):
        super().__init__(directory, **options)
        self._features = self.config.features(self.tokenizer)
        self._word_ids = features.make_word_tokenizer(self.tokenizer)

    parse_example = staticmethod(examples.parse_example)

    def make_features(self, example):
        return features.make_windows(example, self._features, self._word_ids).windows

    def prediction(self, example, outputs):
        (one,) = self.task.decode(outputs, None)["predictions"]
        return {name: value for name, value in one.items() if name != "example_id"}
