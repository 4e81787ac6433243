"""Tags raw words with an exported model."""

import functools

from etcmodel import finetuning
from etcmodel.preprocessing import raw_files

from . import examples, features
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
        return examples.parse_example(raw, self.config, with_tags=False)

    def read_rows(self, path):
        fields_of = functools.partial(examples.fields_of, options=self.config, with_tags=False)
        return raw_files.raw_examples(examples.read_rows(path), fields_of)

    def make_features(self, example):
        return features.make_features(example, self.features, self.processor)[0]

    def predict_one(self, words):
        """The result of `predict` for the words of one text: list of str, or of sentences."""
        return self.predict([{self.config.id_field: "one", self.config.words_field: words}])["one"]
