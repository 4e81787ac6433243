"""Converts questions about passages (JSON lines) into sharded TFRecords.

  python -m etcmodel.tasks.numerical_reasoning.preprocess --input_pattern=train.jsonl \
    --output_prefix=records/train --vocab_file=vocab.txt --long_seq_length=140
"""

import dataclasses

from etcmodel.options import WORD_PIECES
from etcmodel.preprocessing import program

from .config import NumericalExampleOptions


@dataclasses.dataclass(frozen=True, kw_only=True)
class PreprocessOptions(NumericalExampleOptions, program.PreprocessOptions):
    """Options of role "features" are arguments of `InputConfig`."""

    help_texts = {"vocab_file": WORD_PIECES}


load_parts = program.parts_beside(__package__)


if __name__ == "__main__":
    program.run_program(PreprocessOptions, load_parts)
