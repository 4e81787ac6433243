"""Converts WikiHop's JSON into sharded TFRecords: the training set, the development set, or both.

Writes `train/tf_examples-…` and `dev/tf_examples-…` to --output_dir, as the release does, and for
each the settings of the records (`tf_examples.config.json`) and the statistics
(`tf_examples.stats.json`). Flags of Apache Beam, such as `--runner=DataflowRunner`, are accepted
too.

  python -m etcmodel.tasks.wikihop.preprocess --input_pattern=train.json \
    --dev_input_pattern=dev.json --output_dir=/data/wikihop --vocab_file=vocab.txt
"""

import dataclasses
import os

from etcmodel.options import ANY_VOCABULARY, changed, option
from etcmodel.preprocessing import program

from .config import WikiHopExampleOptions


@dataclasses.dataclass(frozen=True, kw_only=True)
class PreprocessOptions(WikiHopExampleOptions, program.TokenizerTypeOptions):
    """WikiHop's options; those of role "features" are arguments of `WikiHopInputConfig`."""

    aliases = {
        "input_train_json_filepath": "input_pattern",
        "input_dev_json_filepath": "dev_input_pattern",
        "output_dir_path": "output_dir",
        "num_train_shards": "num_shards",
        "spm_model_path": "spm_model_file",
        "long_seq_len": "long_seq_length",
        "global_seq_len": "global_seq_length",
    }
    help_texts = {
        "vocab_file": f"{ANY_VOCABULARY} Without --candidates_as=marks, word pieces only.",
        "input_pattern": "WikiHop's JSON file to train on (a pattern for several), packed or not.",
    }

    needed = ("input_pattern", "output_dir", "vocab_file")

    dev_input_pattern: str = option(
        "", "Raw file of the development set, or a pattern for several."
    )
    output_dir: str = option(
        "",
        "Directory for the TFRecord files train/tf_examples-… and dev/tf_examples-….",
        example="records",
    )
    output_prefix: str = ""  # No flag: there is one for each set.
    num_shards: int = changed(
        program.PreprocessOptions,
        "num_shards",
        default=100,
        help_text="Number of TFRecord files for training.",
    )
    num_dev_shards: int = option(
        1, "Number of TFRecord files for development.", lower_bound=1, upper_bound=99_999
    )
    statistics_file: str = ""  # No flag, likewise.
    is_training: bool = False  # No flag: only one of the sets is for training.

    def check_inputs(self):
        if not (self.input_pattern or self.dev_input_pattern):
            raise ValueError("--input_pattern or --dev_input_pattern must be given.")
        if not (self.output_dir or self.output_prefix):
            raise ValueError("--output_dir must be given.")

    def feature_fields(self):
        return {**super().feature_fields(), "is_training": self.is_training}

    def sets(self):
        """The options of each set to make: its input, its prefix, its shards."""
        sets = {
            "train": (self.input_pattern, self.num_shards),
            "dev": (self.dev_input_pattern, self.num_dev_shards),
        }
        return [
            dataclasses.replace(
                self,
                input_pattern=pattern,
                dev_input_pattern="",
                output_prefix=os.path.join(self.output_dir, name, "tf_examples"),
                num_shards=num_shards,
                is_training=name == "train",
                spm_model_file=self.chosen_spm_model_file,
            )
            for name, (pattern, num_shards) in sets.items()
            if pattern
        ]


load_parts = program.parts_beside(__package__)


if __name__ == "__main__":
    program.run_program(PreprocessOptions, load_parts)
