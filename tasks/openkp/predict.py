"""Extracts key phrases from raw OpenKP pages with an exported model."""

import dataclasses

from etcmodel import finetuning

from . import examples, features, metrics
from .task import OpenKpTask

__all__ = ["OpenKpPredictor"]


class OpenKpPredictor(finetuning.Predictor):
    """Extracts key phrases with an exported model.

    Args: see `finetuning.Predictor`; `max_kp_predictions` is one of the options.
    """

    task_class = OpenKpTask
    id_fields = ("url",)

    def __init__(self, directory, **options):
        super().__init__(directory, **options)
        self._features = self.config.features()
        self._features.check_vocabulary(self.tokenizer)
        self._tokenize_word = features.word_tokenizer(self.tokenizer)

    parse_example = staticmethod(examples.parse_example)

    def make_features(self, example):
        unlabeled = dataclasses.replace(example, key_phrases=None)
        converted = features.make_features(unlabeled, self._features, self._tokenize_word)
        # The words are passed to `predict`, which does not keep the pages.
        return [{**converted.features, "url": example.url, "words": example.words}]

    def prediction(self, example, outputs):
        """The key phrases of a page, best first: list of str."""
        (output,) = outputs
        return metrics.decode_page(
            output,
            output["words"],
            self.config.max_kp_predictions,
            release_compatible=self.config.release_compatible,
        )

    def predict(self, pages, batch_size=8):
        """Predicts key phrases for each page.

        Args:
            pages: iterable of `OpenKpExample`s (`read_examples`), or of dicts in the dataset's
                format; key phrases are not needed. They are taken one at a time.
            batch_size: int.
        Returns:
            dict from URL to list of str, in lower case, best first.
        Raises:
            ValueError: naming the page, if one is malformed.
        """
        return {
            output["url"]: self.prediction(None, [output])
            for output in self.outputs(self.parsed(pages), batch_size)
        }
