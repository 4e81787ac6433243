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


class ConverterFactory(preprocessing.ProcessorConverterFactory):
    """Makes the converter; `fields` are arguments of `TriviaQaInputConfig`."""

    task = "triviaqa"
    deals_records = True  # A question may have many documents.
    line_files = ("left_out",)  # The documents that cannot be used.

    def input_config(self, tokenizer):
        config = TriviaQaInputConfig(**self.fields)
        evidence.check_folder(config.evidence_dir)
        config.make_processor(tokenizer)  # Raises an error if the vocabulary does not fit.
        return config

    def convert(self, row, config, processor):
        raw_files.check_readable(row["question"])
        example = examples.parse_example(row["question"], config.is_training)
        converted = examples.make_features(example, config, processor)
        left_out = {"place": row["place"], "question_id": example.example_id}
        left_out["problems"] = converted.problems
        return preprocessing.Converted(
            features=converted.windows,
            counts={name: converted.counts[name] for name in _COUNTS},
            lengths={"documents": len(example.pages)},
            lines={"left_out": json.dumps(left_out)} if converted.problems else {},
        )
