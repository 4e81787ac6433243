"""Converts HotpotQA's JSON into sharded TFRecords.

Beside the shards it writes `<prefix>.config.json` (the settings, which training checks) and the
statistics. Any flag of Apache Beam may be given too, such as `--runner=DataflowRunner`.

  python -m etcmodel.tasks.hotpotqa.preprocess --input_json_filename=hotpot_train_v1.1.json \
    --output_tf_examples_file_path_prefix=/data/train --vocab_file=vocab.txt
"""

import logging
import sys

from absl import app, flags
from absl import logging as absl_logging

_INPUT = flags.DEFINE_string(
    "input_json_filename",
    "",
    "HotpotQA's JSON file (a pattern for several), possibly .gz, or Hugging Face's layout of it.",
)
_OUTPUT_PREFIX = flags.DEFINE_string(
    "output_tf_examples_file_path_prefix",
    "",
    "Path and first part of the name of the TFRecord files.",
)
_NUM_SHARDS = flags.DEFINE_integer("num_shards", 256, "Number of TFRecord files.", lower_bound=1)
_STATISTICS = flags.DEFINE_string(
    "output_tf_examples_stat_filename",
    "",
    "JSON file for the statistics; by default <prefix>.stats.json.",
)
_SPM_MODEL = flags.DEFINE_string(
    "spm_model_file", "", "SentencePiece model. If it is given, vocab_file is ignored."
)
_VOCAB = flags.DEFINE_string("vocab_file", "", "WordPiece vocabulary, one token a line.")
_DO_LOWER_CASE = flags.DEFINE_bool(
    "do_lower_case", True, "Lower-case the text and strip accents; for word pieces only."
)
_GLOBAL_LENGTH = flags.DEFINE_integer(
    "global_seq_length", 256, "Length of the global input in tokens.", lower_bound=2
)
_LONG_LENGTH = flags.DEFINE_integer(
    "long_seq_length", 2048, "Length of the long input in tokens.", lower_bound=2
)
_IS_TRAINING = flags.DEFINE_bool(
    "is_training", True, "Make labels, and drop examples that cannot be trained on."
)
_ANSWER_ENCODING = flags.DEFINE_enum(
    "answer_encoding_method",
    "span",
    ["span", "bio"],
    "Labels of the answer: first and last token, or begin, inside, outside for each token.",
)
_DIRECT_NUM_WORKERS = flags.DEFINE_integer(
    "direct_num_workers", 0, "Local processes; 0 for one a core.", lower_bound=0
)
_DEBUG = flags.DEFINE_bool(
    "debug", True, "Add readable features (the tokens) to the examples; they take more space."
)
_RELEASE_COMPATIBLE = flags.DEFINE_bool(
    "release_compatible", False, "Repeat the faults of the authors' release (see the README)."
)
_STRICT = flags.DEFINE_bool(
    "strict", False, "Fail at the first malformed example, instead of counting and listing it."
)


def check_flags():
    """Raises a ValueError if a needed flag is missing."""
    for flag in (_INPUT, _OUTPUT_PREFIX):
        if not flag.value:
            raise ValueError(f"--{flag.name} must be given.")
    if not (_VOCAB.value or _SPM_MODEL.value):
        raise ValueError("Either --vocab_file or --spm_model_file must be given.")


def make_job(beam_args):
    """The `preprocessing.Job` that the flags describe.

    Raises:
        ValueError: if the vocabulary does not fit.
    """
    from etcmodel import preprocessing

    from . import conversion, examples

    factory = conversion.ConverterFactory(
        vocab_file=_VOCAB.value,
        spm_model_file=_SPM_MODEL.value,
        do_lower_case=_DO_LOWER_CASE.value,
        fields={
            "long_seq_length": _LONG_LENGTH.value,
            "global_seq_length": _GLOBAL_LENGTH.value,
            "is_training": _IS_TRAINING.value,
            "answer_encoding_method": _ANSWER_ENCODING.value,
            "debug": _DEBUG.value,
            "release_compatible": _RELEASE_COMPATIBLE.value,
        },
    )
    prefix = _OUTPUT_PREFIX.value
    return preprocessing.Job(
        input_pattern=_INPUT.value,
        output_prefix=prefix,
        num_shards=_NUM_SHARDS.value,
        read=examples.read_raw_examples,
        make_converter=factory,
        settings=factory.settings(),
        statistics_file=_STATISTICS.value or f"{prefix}.stats.json",
        strict=_STRICT.value,
        direct_num_workers=_DIRECT_NUM_WORKERS.value,
        beam_args=tuple(beam_args),
    )


def main(argv):
    absl_logging.set_verbosity(absl_logging.INFO)
    logging.getLogger("apache_beam").setLevel(logging.ERROR)
    try:
        check_flags()
        from etcmodel import preprocessing  # With TensorFlow, which takes seconds to import.

        statistics = preprocessing.run(make_job(argv[1:]))
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
    for message in statistics["bad_examples"]:
        logging.warning("skipped %s", message)
    summary = {name: value for name, value in statistics.items() if name != "bad_examples"}
    print(", ".join(f"{name}: {value}" for name, value in summary.items()))


def parse_known_flags(argv):
    """Parses this program's flags and leaves Beam's."""
    try:
        return flags.FLAGS(argv, known_only=True)
    except flags.Error as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    app.run(main, flags_parser=parse_known_flags)
