"""Converts WikiHop's JSON into sharded TFRecords: the training set, the development set, or both.

In --output_dir_path it writes, as the release, `train/tf_examples-…` and `dev/tf_examples-…` and,
for each, the settings they were made with (`tf_examples.config.json`) and the statistics
(`tf_examples.stats.json`). Any flag of Apache Beam may be given too, such as
`--runner=DataflowRunner`.

  python -m etcmodel.tasks.wikihop.preprocess --input_train_json_filepath=train.json \
    --input_dev_json_filepath=dev.json --output_dir_path=/data/wikihop --vocab_file=vocab.txt
"""

import dataclasses
import os

from etcmodel.models import sentence_splitting, tokenization
from etcmodel.preprocessing import program, raw_files
from etcmodel.preprocessing.options import option


@dataclasses.dataclass(frozen=True, kw_only=True)
class PreprocessOptions(program.PreprocessOptions):
    """WikiHop's options; those of role "features" are arguments of `WikiHopInputConfig`."""

    input_pattern: str = option(
        "",
        "WikiHop's JSON file to train on (a pattern for several), possibly .gz.",
        flag="input_train_json_filepath",
    )
    dev_input_pattern: str = option("", "Likewise, to evaluate on.", flag="input_dev_json_filepath")
    output_prefix: str = option(
        "",
        "Directory of the TFRecord files, train/tf_examples-… and dev/tf_examples-….",
        flag="output_dir_path",
    )
    num_shards: int = option(
        100, "Number of training files.", flag="num_train_shards", lower_bound=1
    )
    num_dev_shards: int = option(1, "Number of dev files.", lower_bound=1)
    statistics_file: str = ""  # No flag: there is one for each set.
    is_training: bool = False  # No flag: one of the sets is to train on.
    tokenizer_type: str | None = option(
        None,
        "Which vocabulary to use: that of --vocab_file (BERT) or --spm_model_path (ALBERT). None: "
        "the one that is given.",
        choices=("BERT", "ALBERT"),
    )
    init_checkpoint: str = option(
        "", "Checkpoint of BERT for which --do_lower_case is checked by its name."
    )
    spm_model_file: str = option(
        "",
        "SentencePiece model. If it is given, --vocab_file is ignored.",
        flag="spm_model_path",
        is_file=True,
    )
    global_seq_length: int = option(
        430,
        "Length of the global input in tokens.",
        role="features",
        flag="global_seq_len",
        lower_bound=2,
    )
    long_seq_length: int = option(
        4096,
        "Length of the long input in tokens.",
        role="features",
        flag="long_seq_len",
        lower_bound=2,
    )
    max_num_sentences: int = option(
        200, "Sentences to keep of an example's documents.", role="features", lower_bound=0
    )
    shuffle_docs_within_example: bool = option(
        False, "Put each example's documents in a random order.", role="features"
    )
    random_seed: int = option(0, "Decides that order.", role="features")
    sentence_splitter: str = option(
        "punkt",
        "How documents become sentences: as with NLTK, or at white space after . ! or ?",
        role="features",
        choices=sentence_splitting.SENTENCE_SPLITTERS,
    )

    def __post_init__(self):
        if not (self.input_pattern or self.dev_input_pattern):
            train, dev = map(self.flag_name, ("input_pattern", "dev_input_pattern"))
            raise ValueError(f"--{train} or --{dev} must be given.")
        if not self.output_prefix:
            raise ValueError(f"--{self.flag_name('output_prefix')} must be given.")
        needed = {"BERT": "vocab_file", "ALBERT": "spm_model_file"}.get(self.tokenizer_type)
        if needed and not getattr(self, needed):
            raise ValueError(
                f"--tokenizer_type={self.tokenizer_type} also needs --{self.flag_name(needed)}."
            )
        if not (self.vocab_file or self.spm_model_file):
            raise ValueError("Either --vocab_file or --spm_model_path must be given.")
        if self.vocab_file and not self.spm_model_file:
            tokenization.validate_case_matches_checkpoint(self.do_lower_case, self.init_checkpoint)

    def feature_fields(self):
        return {**super().feature_fields(), "is_training": self.is_training}

    def sets(self):
        """The options of each set that is to be made: its input, its prefix, its shards."""
        sets = {
            "train": (self.input_pattern, self.num_shards),
            "dev": (self.dev_input_pattern, self.num_dev_shards),
        }
        return [
            dataclasses.replace(
                self,
                input_pattern=pattern,
                dev_input_pattern="",
                output_prefix=os.path.join(self.output_prefix, name, "tf_examples"),
                num_shards=num_shards,
                is_training=name == "train",
                spm_model_file="" if self.tokenizer_type == "BERT" else self.spm_model_file,
            )
            for name, (pattern, num_shards) in sets.items()
            if pattern
        ]


def load_parts():
    """The class that makes converters, and the function that reads a raw file."""
    from . import conversion  # With TensorFlow, which takes seconds to import.

    return conversion.ConverterFactory, raw_files.read_json_values


if __name__ == "__main__":
    program.run_program(PreprocessOptions, load_parts)
