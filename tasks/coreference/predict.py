"""Resolves raw documents with an exported model."""

from etcmodel import finetuning
from etcmodel.preprocessing import raw_files

from . import examples, features
from .task import CoreferenceTask

__all__ = ["CoreferencePredictor"]


class CoreferencePredictor(finetuning.ProcessorPredictor):
    """Finds clusters with an exported model; `predict` returns the result of `metrics.combine`.

    Args: see `finetuning.Predictor`.
    """

    task_class = CoreferenceTask
    id_fields = ("doc_key",)

    def parse_example(self, raw):
        return examples.parse_example(raw, with_clusters=False)

    def read_rows(self, path):
        return raw_files.raw_examples(examples.read_rows(path), examples.fields_of)

    def make_features(self, example):
        return features.make_features(example, self.features, self.processor)[0]

    def predict_one(self, sentences):
        """The result of `predict` for the sentences of one document: list of lists of words."""
        return self.predict([{"doc_key": "one", "sentences": sentences}])["one"]
