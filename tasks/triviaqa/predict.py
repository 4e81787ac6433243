"""Answers raw questions about documents with an exported model."""

import logging

from etcmodel import finetuning
from etcmodel.shown_values import shown

from . import examples, features
from .task import TriviaQaTask

__all__ = ["TriviaQaPredictor"]


class TriviaQaPredictor(finetuning.ProcessorPredictor):
    """Answers questions with an exported model; `predict` returns the result of `metrics.combine`.

    Args:
        directory: an export, or a directory of numbered exports (the highest number is used).
        **options: override options stored with the model, such as `evidence_dir`.
    Raises:
        ValueError: if there is no export with the files of this task, or the given folder does not
            exist.
    """

    task_class = TriviaQaTask
    id_fields = ("QuestionId", "question_id")
    served_options = {"evidence_dir": None}  # A request names no files of the server.

    def __init__(self, directory, **options):
        super().__init__(directory, **options)
        if "evidence_dir" in options:  # The export's folder may be from another machine.
            examples.check_folder(self.config.evidence_dir)

    parse_example = staticmethod(examples.parse_example)

    def read_examples(self, path):
        def check(example):
            for problem in self._converted(example).problems:
                logging.warning("%s: example %r: %s", path, example.example_id, problem)

        return self.task.read_examples(path, check)

    def read_rows(self, path):
        return ((row["place"], row["question"]) for row in examples.read_questions(path))

    def make_features(self, example):
        return self._converted(example).windows

    def prediction(self, example, outputs):
        """The entry of `metrics.combine`; of each document a list of these, if `by_document`."""
        found = list(self.task.decode(outputs, None).values())
        return found if self.config.by_document else found[0]

    def _converted(self, example):
        converted = features.make_features(example, self.features, self.processor)
        if not converted.windows:
            raise ValueError(f"example {example.example_id!r}: {'; '.join(converted.problems)}")
        return converted

    def predict_one(self, question, texts):
        """The result of `predict` for one question about texts, a list of str.

        Raises:
            ValueError: if `texts` is a str, or the question cannot be answered from them.
        """
        if isinstance(texts, str | bytes):
            raise ValueError(f"`texts` must be a list of texts. Received: {shown(texts)}")
        pages = [{"Text": text} for text in texts]
        raw = {"QuestionId": "one", "Question": question, "SearchResults": pages}
        return self.predict([raw])["one"]
