"""Resolves raw documents with an exported model."""

from etcmodel import finetuning
from etcmodel.preprocessing import raw_files

from . import examples
from . import features as features_lib
from .task import CoreferenceTask

__all__ = ["CoreferencePredictor"]


class CoreferencePredictor(finetuning.ProcessorPredictor):
    """Finds clusters with an exported model; `predict` returns the result of `metrics.combine`.

    Args: see `finetuning.Predictor`.
    """

    task_class = CoreferenceTask
    id_fields = ("doc_key",)

    def parse_example(self, raw):
        raw_files.check_readable(raw)
        return examples.parse_example(raw, with_clusters=False)

    def read_rows(self, path):
        for row in examples.read_rows(path):
            try:
                raw = examples.fields_of(row)
            except ValueError as error:
                raw = raw_files.unreadable(str(error))
            yield row["place"], raw

    def make_features(self, example):
        windows, _ = features_lib.make_features(example, self.features, self.processor)
        return windows

    def predict_one(self, sentences):
        """The result of `predict` for the sentences of one document: list of lists of words."""
        return self.predict([{"doc_key": "one", "sentences": sentences}])["one"]
