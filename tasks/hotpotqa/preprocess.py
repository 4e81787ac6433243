"""Converts HotpotQA's JSON into sharded TFRecords.

Beside the shards it writes `<prefix>.config.json` (the settings they were made with) and the
statistics. Any flag of Apache Beam may be given too, such as `--runner=DataflowRunner`.

  python -m etcmodel.tasks.hotpotqa.preprocess --input_json_filename=hotpot_train_v1.1.json \
    --output_tf_examples_file_path_prefix=/data/train --vocab_file=vocab.txt
"""

import dataclasses

from etcmodel.preprocessing import program, raw_files
from etcmodel.preprocessing.options import option


@dataclasses.dataclass(frozen=True, kw_only=True)
class PreprocessOptions(program.PreprocessOptions):
    """HotpotQA's options; those of role "features" are arguments of `HotpotQAInputConfig`."""

    input_pattern: str = option(
        "",
        "HotpotQA's JSON file (a pattern for several), possibly .gz, or Hugging Face's layout of "
        "it.",
        flag="input_json_filename",
    )
    is_training: bool = option(
        True, "Make labels, and drop examples that cannot be trained on.", role="features"
    )
    answer_encoding_method: str = option(
        "span",
        "Labels of the answer: first and last token, or begin, inside, outside for each token.",
        role="features",
        choices=("span", "bio"),
    )
    debug: bool = option(
        True,
        "Add readable features (the tokens) to the examples; they take more space.",
        role="features",
    )


def load_parts():
    """The class that makes converters, and the function that reads a raw file."""
    from . import conversion  # With TensorFlow, which takes seconds to import.

    return conversion.ConverterFactory, raw_files.read_json_values


if __name__ == "__main__":
    program.run_program(PreprocessOptions, load_parts)
