"""Converts tagged sequences (JSON lines) into sharded TFRecords.

  python -m etcmodel.tasks.majority_tagging.preprocess --input_pattern=train.jsonl \
    --output_prefix=records/train --vocab_file=vocab.txt --long_seq_length=64 --pairs=1
"""

import dataclasses

from etcmodel.preprocessing import program

from .config import MajorityExampleOptions


@dataclasses.dataclass(frozen=True, kw_only=True)
class PreprocessOptions(MajorityExampleOptions, program.PreprocessOptions):
    """Options of role "features" are arguments of `InputConfig`."""


load_parts = program.parts_beside(__package__)


if __name__ == "__main__":
    program.run_program(PreprocessOptions, load_parts)
