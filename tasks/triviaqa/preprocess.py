"""Converts TriviaQA's questions and their evidence files into sharded TFRecords.

Also writes the settings of the records (`<prefix>.config.json`), the statistics, and
`<prefix>_left_out.jsonl`: questions with unusable documents, and why. Flags of Apache Beam are
accepted too.

  python -m etcmodel.tasks.triviaqa.preprocess --input_pattern=qa/wikipedia-train.json \
    --evidence_dir=evidence --output_prefix=records/train --vocab_file=vocab.txt
"""

import dataclasses

from etcmodel.options import changed
from etcmodel.preprocessing import program

from .config import TriviaQaExampleOptions


@dataclasses.dataclass(frozen=True, kw_only=True)
class PreprocessOptions(TriviaQaExampleOptions, program.PreprocessOptions):
    """TriviaQA's options; those of role "features" are arguments of `TriviaQaInputConfig`."""

    help_texts = {
        "input_pattern": "TriviaQA's JSON file (a pattern for several), packed or not.",
    }

    num_shards: int = changed(program.PreprocessOptions, "num_shards", default=64)

    def feature_fields(self):
        return {**super().feature_fields(), "evidence_dir": self.evidence_dir}


load_parts = program.parts_beside(__package__)


if __name__ == "__main__":
    program.run_program(PreprocessOptions, load_parts)
