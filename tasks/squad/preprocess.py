"""Converts SQuAD's questions into sharded TFRecords.

Also writes the settings of the records (`<prefix>.config.json`) and the statistics. Questions whose
answer is not at its place in the context are left out, counted and listed. Flags of Apache Beam,
such as `--runner=DataflowRunner`, are accepted too.

  python -m etcmodel.tasks.squad.preprocess --input_pattern=train-v2.0.json \
    --output_prefix=records/train --vocab_file=vocab.txt
  python -m etcmodel.tasks.squad.preprocess --input_pattern=dev-v2.0.json \
    --output_prefix=records/dev --vocab_file=vocab.txt --is_training=false
"""

import dataclasses

from etcmodel.options import changed
from etcmodel.preprocessing import program

from .config import SquadExampleOptions


@dataclasses.dataclass(frozen=True, kw_only=True)
class PreprocessOptions(SquadExampleOptions, program.PreprocessOptions):
    """SQuAD's options; those of role "features" are arguments of `SquadInputConfig`."""

    help_texts = {
        "input_pattern": "SQuAD's JSON file, or questions with contexts, one a row, as JSON, "
        "Parquet or Arrow; or a pattern for several files.",
    }

    num_shards: int = changed(program.PreprocessOptions, "num_shards", default=16)

    def sets(self):
        """The options, which say whether training data have questions without an answer."""
        if self.version_2_with_negative is not None or not self.is_training:
            return [self]
        from . import examples  # Imports TensorFlow, which takes seconds.

        found = examples.has_unanswerable(self.input_pattern)
        return [dataclasses.replace(self, version_2_with_negative=found)]


load_parts = program.parts_beside(__package__)


if __name__ == "__main__":
    program.run_program(PreprocessOptions, load_parts)
