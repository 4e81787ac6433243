"""Tags raw words with an exported model."""

from etcmodel import finetuning
from etcmodel.preprocessing import raw_files

from . import examples
from . import features as features_lib
from .task import TokenClassificationTask

__all__ = ["TokenClassificationPredictor"]


class TokenClassificationPredictor(finetuning.ProcessorPredictor):
    """Tags words with an exported model; `predict` returns the result of `metrics.combine`.

    Args: see `finetuning.Predictor`.
    """

    task_class = TokenClassificationTask

    @property
    def id_fields(self):
        return (self.config.id_field,)

    def parse_example(self, raw):
        raw_files.check_readable(raw)
        return examples.parse_example(raw, self.config, with_tags=False)

    def read_rows(self, path):
        for row in examples.read_rows(path):
            try:
                raw = examples.fields_of(row, self.config, with_tags=False)
            except ValueError as error:
                raw = raw_files.unreadable(str(error))
            yield row["place"], raw

    def make_features(self, example):
        windows, _ = features_lib.make_features(example, self.features, self.processor)
        return windows

    def predict_one(self, words):
        """The result of `predict` for the words of one text: list of str, or of sentences."""
        return self.predict([{self.config.id_field: "one", self.config.words_field: words}])["one"]
