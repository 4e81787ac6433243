"""Converts words with tags (CoNLL's format, JSON lines, Parquet) into sharded TFRecords.

Unless given, the tags are collected from the files and kept in the records' settings
(`<prefix>.config.json`). For every other set, pass the settings of the training records. Flags of
Apache Beam, such as `--runner=DataflowRunner`, are accepted too.

  python -m etcmodel.tasks.token_classification.preprocess --input_pattern=train.conll \
    --output_prefix=records/train --vocab_file=vocab.txt
  python -m etcmodel.tasks.token_classification.preprocess --input_pattern=dev.conll \
    --output_prefix=records/dev --vocab_file=vocab.txt --labels_file=records/train.config.json
"""

import dataclasses

from etcmodel.options import changed
from etcmodel.preprocessing import program

from .config import TokenClassificationFeatureOptions


@dataclasses.dataclass(frozen=True, kw_only=True)
class PreprocessOptions(
    TokenClassificationFeatureOptions, program.LabelsOptions, program.PreprocessOptions
):
    """The task's options; those of role "features" are arguments of its input config."""

    help_texts = {
        "input_pattern": "Words in columns (CoNLL), JSON (lines or an array), Parquet or Arrow; or "
        "a pattern for several files.",
    }

    num_shards: int = changed(program.PreprocessOptions, "num_shards", default=16)

    def sets(self):
        """The options, with the labels filled in."""
        from . import examples  # Imports TensorFlow, which takes seconds.

        return [self.with_labels(examples.gather_labels)]


load_parts = program.parts_beside(__package__)


if __name__ == "__main__":
    program.run_program(PreprocessOptions, load_parts)
