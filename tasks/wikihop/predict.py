"""Answers questions in raw WikiHop JSON with an exported model."""

import dataclasses

from etcmodel import finetuning
from etcmodel.finetuning.metrics import softmax

from . import examples, metrics
from .task import WikiHopTask

__all__ = ["WikiHopPredictor"]


class WikiHopPredictor(finetuning.Predictor):
    """Answers questions with an exported model; `predict` returns {example id: answer}.

    Args: see `finetuning.Predictor`; `sentence_splitter` is one of the options.
    """

    task_class = WikiHopTask
    page_fields = {"question": "query", "documents": "supports", "candidates": "candidates"}

    def __init__(self, directory, **options):
        super().__init__(directory, **options)
        self._features = self.config.features()
        self._features.check_tokenizer(self.tokenizer)

    parse_example = staticmethod(examples.parse_example)

    def make_features(self, example):
        unlabeled = dataclasses.replace(example, answer=None)
        return self.config.form.convert(unlabeled, self._features, self.tokenizer).features

    def read_raw_examples(self, path):
        for example in self.read_examples(path):
            yield {
                "query": example.query,
                "candidates": list(example.candidates),
                "supports": list(example.documents),
            }

    def prediction(self, example, outputs):
        """The answer, and the probabilities of the candidates, in their order: dict for JSON."""
        (output,) = outputs
        candidates, logits = output["candidates"], output["logits"]
        probabilities = softmax(logits[: len(candidates)]).tolist()
        return {
            "answer": metrics.predicted_answer(candidates, logits),
            "probabilities": list(zip(candidates, probabilities, strict=True)),
        }

    def predict_one(self, question):
        """The answer to one question, as in `predict`."""
        (answer,) = self.predict([question]).values()
        return answer
