"""TriviaQA's part of the preprocessing: what a worker does to one raw question."""

import json

from etcmodel import preprocessing
from etcmodel.preprocessing import raw_files

from . import evidence, examples
from .config import TriviaQaInputConfig

__all__ = ["ConverterFactory"]

_COUNTS = (
    *(f"documents_{problem}" for problem in (*evidence.PROBLEMS, "cut")),
    "windows_without_answer",
    "questions_without_answer",
    "questions_without_evidence",
)


class ConverterFactory(preprocessing.ConverterFactory):
    """Makes the converter; `fields` are arguments of `TriviaQaInputConfig`."""

    task = "triviaqa"
    deals_records = True  # A question may have many documents.
    line_files = ("left_out",)  # The documents that cannot be used.

    def input_config(self, tokenizer):
        config = TriviaQaInputConfig(**self.fields)
        evidence.check_folder(config.evidence_dir)
        config.make_processor(tokenizer)  # Raises an error if the vocabulary does not fit.
        return config

    def __call__(self):
        tokenizer = self.tokenizer()
        config = self.input_config(tokenizer)
        processor = config.make_processor(tokenizer)
        return lambda row: self.convert(row, config, processor)

    def convert(self, row, config, processor):
        try:
            raw_files.check_readable(row["question"])
            example = examples.parse_example(row["question"])
            converted = examples.make_features(example, config, processor)
        except ValueError as error:
            raise ValueError(f"{row['place']}: {error}") from error
        place = {"place": row["place"], "question_id": example.example_id}
        left_out = json.dumps({**place, "problems": converted.problems})
        return preprocessing.Converted(
            features=converted.windows,
            counts={name: converted.counts[name] for name in _COUNTS},
            lengths={"documents": len(example.pages)},
            lines={"left_out": left_out} if converted.problems else {},
        )
