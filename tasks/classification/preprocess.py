"""Converts texts with labels (JSON lines, CSV, or folders) into sharded TFRecords.

Unless given, the labels are collected from the files and kept in the records' settings
(`<prefix>.config.json`). For every other set, pass the settings of the training records. Flags of
Apache Beam, such as `--runner=DataflowRunner`, are accepted too.

  python -m etcmodel.tasks.classification.preprocess --input_pattern=train.jsonl \
    --output_prefix=records/train --vocab_file=vocab.txt
  python -m etcmodel.tasks.classification.preprocess --input_pattern=dev.jsonl \
    --output_prefix=records/dev --vocab_file=vocab.txt --labels_file=records/train.config.json
"""

import dataclasses

from etcmodel.options import TableOptions, changed
from etcmodel.preprocessing import program

from .config import REGRESSION, ClassificationFeatureOptions


@dataclasses.dataclass(frozen=True, kw_only=True)
class PreprocessOptions(
    ClassificationFeatureOptions, TableOptions, program.LabelsOptions, program.PreprocessOptions
):
    """Classification's options; those of role "features" are arguments of its input config."""

    help_texts = {
        "input_pattern": "JSON (lines or an array), a table with a header, Parquet or Arrow, or a "
        "folder of .txt with a sub-folder for each label; or a pattern for several.",
    }

    num_shards: int = changed(program.PreprocessOptions, "num_shards", default=16)

    def __post_init__(self):
        super().__post_init__()
        if self.labels_file and self.problem_type == REGRESSION:
            raise ValueError("--labels_file does not go with a regression.")
        if self.question_separators > 1 and not self.second_text_field:
            raise ValueError("--question_separators is for two texts: give --second_text_field.")

    def sets(self):
        """The options, with the labels filled in."""
        if self.problem_type == REGRESSION:
            return [self]
        from . import examples  # Imports TensorFlow, which takes seconds.

        return [self.with_labels(examples.gather_labels)]


load_parts = program.parts_beside(__package__)


if __name__ == "__main__":
    program.run_program(PreprocessOptions, load_parts)
