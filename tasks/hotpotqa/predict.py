"""Answers questions in raw HotpotQA JSON with an exported model."""

from etcmodel import finetuning

from . import examples, features
from .task import HotpotQaTask

__all__ = ["HotpotQaPredictor"]


class HotpotQaPredictor(finetuning.Predictor):
    """Answers questions with an exported model.

    `predict` returns the official format: {"answer": {id: str}, "sp": {id: [[title, index], …]}};
    with marked evidence also "paragraphs": {id: [[title, score], …]}. A model of the second stage
    reads those of the first from the option `first_stage`, or from the field `paragraphs` of each
    example.

    Args: see `finetuning.Predictor`; `supporting_fact_threshold` is one of the options.
    """

    task_class = HotpotQaTask
    id_fields = ("_id", "id")
    served_options = {"first_stage": None}  # A request has the scores of its own paragraphs.

    def __init__(self, directory, **options):
        super().__init__(directory, **options)
        self._features = features.FeatureMaker(self.config.features(self.tokenizer), self.tokenizer)

    parse_example = staticmethod(examples.parse_example)

    def make_features(self, example):
        return [self._features(example).features]

    def prediction(self, example, outputs):
        decoded = self.task.decode(outputs, [example])
        return {name: by_id[example.example_id] for name, by_id in decoded.items()}

    def predict_one(self, question):
        """Returns (answer, [[title, sentence index], …]) for one question, as in `predict`."""
        prediction = self.predict([question])
        (example_id,) = prediction["answer"]
        return prediction["answer"][example_id], prediction["sp"][example_id]
