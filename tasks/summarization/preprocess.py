"""Converts documents with summaries (JSON lines, or tables) into sharded TFRecords.

The statistics report how many documents and summaries were too long and how much was cut. Flags of
Apache Beam, such as `--runner=DataflowRunner`, are accepted too.

  python -m etcmodel.tasks.summarization.preprocess --input_pattern=train.jsonl \
    --output_prefix=records/train --vocab_file=led/tokenizer.json --long_seq_length=4096
"""

import dataclasses

from etcmodel.options import TableOptions, changed
from etcmodel.preprocessing import program

from .config import SummarizationFeatureOptions


@dataclasses.dataclass(frozen=True, kw_only=True)
class PreprocessOptions(SummarizationFeatureOptions, TableOptions, program.PreprocessOptions):
    """Options of role "features" are arguments of `SummarizationInputConfig`."""

    help_texts = {
        "input_pattern": "JSON (lines or an array), a table with a header, Parquet or Arrow; a "
        "pattern for several.",
        "vocab_file": "Byte-level BPE, for LED: tokenizer.json, or vocab.json with merges.txt "
        "beside it.",
        "do_lower_case": "No effect: texts are as they are.",
        "split_punctuation": "Must be left out: texts are split as their models were pretrained.",
    }

    num_shards: int = changed(program.PreprocessOptions, "num_shards", default=16)


load_parts = program.parts_beside(__package__)


if __name__ == "__main__":
    program.run_program(PreprocessOptions, load_parts)
