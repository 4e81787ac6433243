"""Converts documents with clusters (CoNLL-2012, JSON lines) into sharded TFRecords.

Flags of Apache Beam, such as `--runner=DataflowRunner`, are accepted too.

  python -m etcmodel.tasks.coreference.preprocess --input_pattern=train.english.v4_gold_conll \
    --output_prefix=records/train --vocab_file=vocab.txt
"""

import dataclasses

from etcmodel.options import changed
from etcmodel.preprocessing import program

from .config import CoreferenceFeatureOptions


@dataclasses.dataclass(frozen=True, kw_only=True)
class PreprocessOptions(CoreferenceFeatureOptions, program.PreprocessOptions):
    """The task's options; those of role "features" are arguments of its input config."""

    help_texts = {
        "input_pattern": "Documents in the format of CoNLL-2012, JSON (lines or an array), Parquet "
        "or Arrow; or a pattern for several files.",
    }

    num_shards: int = changed(program.PreprocessOptions, "num_shards", default=16)


load_parts = program.parts_beside(__package__)


if __name__ == "__main__":
    program.run_program(PreprocessOptions, load_parts)
