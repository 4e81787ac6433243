"""Converts OpenKP's JSON lines into sharded TFRecords.

Clean the file with `input_validate_and_dedup` first. Beside the shards this writes
`<prefix>.config.json` (the settings they were made with) and the statistics. Any flag of Apache
Beam may be given too, such as `--runner=DataflowRunner`.

  python -m etcmodel.tasks.openkp.preprocess --input_patterns=OpenKPTrain.jsonl \
    --output_dir=/data --bert_vocab_path=vocab.txt
"""

import dataclasses
import os

from etcmodel.preprocessing import program
from etcmodel.preprocessing.options import option


@dataclasses.dataclass(frozen=True, kw_only=True)
class PreprocessOptions(program.PreprocessOptions):
    """OpenKP's options; those of role "features" are arguments of `OpenKpInputConfig`."""

    input_pattern: str = option(
        "",
        "OpenKP's JSONL file (a pattern for several), possibly .gz.",
        flag="input_patterns",
    )
    output_dir: str = option(
        "",
        "Directory of the TFRecord files, which are then named as the input file, if "
        "--output_tf_examples_file_path_prefix is not given.",
    )
    num_shards: int = option(
        100, "Number of TFRecord files.", flag="output_num_shards", lower_bound=1
    )
    vocab_file: str = option(
        "", "WordPiece vocabulary, one token a line.", flag="bert_vocab_path", is_file=True
    )
    spm_model_file: str = option(
        "",
        "SentencePiece model. If it is given, --bert_vocab_path is ignored.",
        flag="spm_model_path",
        is_file=True,
    )
    long_seq_length: int = option(
        4096,
        "Length of the long input in tokens.",
        role="features",
        flag="long_max_length",
        lower_bound=2,
    )
    global_seq_length: int = option(
        512,
        "Length of the global input in tokens.",
        role="features",
        flag="global_max_length",
        lower_bound=2,
    )
    url_max_code_points: int = option(
        1000, "Length of the longest URL in characters.", role="features", lower_bound=1
    )
    fixed_block_len: int | None = option(
        None,
        "Long tokens of each global token, in place of the VDOM, without visual features.",
        role="features",
        lower_bound=1,
    )
    kp_max_length: int = option(
        5, "Words of the longest key phrase that can be found.", role="features", lower_bound=1
    )
    is_training: bool = option(True, "Drop pages that cannot be trained on.", role="features")

    def __post_init__(self):
        if self.output_dir and not self.output_prefix and self.input_pattern:
            name = os.path.basename(self.input_pattern)
            name = name.removesuffix(".gz").removesuffix(".jsonl")
            if not set(name) & set("*?[]{}"):
                # A frozen dataclass sets its own derived field so.
                object.__setattr__(self, "output_prefix", os.path.join(self.output_dir, name))
        super().__post_init__()

    def feature_fields(self):
        fields = super().feature_fields()
        fields["long_max_length"] = fields.pop("long_seq_length")
        fields["global_max_length"] = fields.pop("global_seq_length")
        return fields


def load_parts():
    """The class that makes converters, and the function that reads a raw file."""
    from . import conversion, examples  # With TensorFlow, which takes seconds to import.

    return conversion.ConverterFactory, examples.read_lines


if __name__ == "__main__":
    program.run_program(PreprocessOptions, load_parts)
