"""Summarizes raw documents with an exported model."""

from etcmodel import finetuning, serving

from . import examples, features, task
from .task import SummarizationTask

__all__ = ["SummarizationPredictor"]


class SummarizationPredictor(finetuning.LinePredictor):
    """Summarizes with an exported model; `predict` returns the dicts of `SummarizationTask`.

    Args: see `finetuning.Predictor`; options of generation, such as `num_beams`, override those of
        the export.
    """

    task_class = SummarizationTask
    runner_class = serving.GenerationRunner

    def __init__(self, directory, **options):
        super().__init__(directory, **options)
        self._features = self.config.features()
        self._numbers = task.generation_numbers(self._runner, self.config)

    def parse_example(self, raw):
        return examples.parse_example(raw, self.config, with_summary=False)

    def make_features(self, example):
        return [features.make_input(example, self._features, self.tokenizer)]

    def runner_options(self):
        return self._numbers

    def summarize(self, text):
        """The summary of a text: str; `predict` also returns how much of the text was cut."""
        (prediction,) = self.predict([{self.config.text_fields[0]: text}])
        return prediction["summary"]
