"""Converts Natural Questions' files into sharded TFRecords.

  python -m etcmodel.tasks.nq.preprocess --input_pattern='v1.0/train/nq-train-*.jsonl.gz' \
    --output_prefix=/data/nq-train --vocab_file=vocab.txt --include_unknown_rate=0.02

or both splits of the official download (v1.0/train, v1.0/dev) at once, as in the release:

  python -m etcmodel.tasks.nq.preprocess --input_dir=v1.0 --output_dir=/data --vocab_file=vocab.txt

Beside the shards it writes `<prefix>.config.json` (the settings they were made with) and the
statistics. Files of any size are streamed; with flags of Apache Beam, such as
`--runner=DataflowRunner`, it runs as a Beam pipeline instead.
"""

import dataclasses
import os

from etcmodel.preprocessing import program
from etcmodel.preprocessing.options import option

_SPLITS = ("train", "dev")


@dataclasses.dataclass(frozen=True, kw_only=True)
class PreprocessOptions(program.PreprocessOptions):
    """Natural Questions' options; those of role "features" are arguments of `NqInputConfig`."""

    input_pattern: str = option(
        "", "JSON lines, original or simplified layout, possibly .gz (a pattern for several)."
    )
    output_prefix: str = option("", "Path and first part of the name of the TFRecord files.")
    input_dir: str = option(
        "",
        "Instead of --input_pattern: folder with train/nq-train-*.jsonl.gz and "
        "dev/nq-dev-*.jsonl.gz, of which there may be only one.",
    )
    output_dir: str = option("", "With --input_dir: folder for nq-train-* and nq-dev-*.")
    statistics_file: str = option(
        "", "JSON file for the statistics; by default <prefix>.stats.json."
    )
    tokenizer_type: str | None = option(
        None,
        "BERT for word pieces, ALBERT for SentencePiece. None: as the given file says.",
        choices=("BERT", "ALBERT"),
    )
    spm_model_file: str = option(
        "",
        "SentencePiece model. If it is given, --vocab_file is ignored.",
        flag="spm_model_path",
        is_file=True,
    )
    long_seq_length: int = option(
        4096, "Tokens of a window.", role="features", flag="seq_len", lower_bound=5
    )
    global_seq_length: int = option(
        230,
        "Length of the global input in tokens.",
        role="features",
        flag="global_seq_len",
        lower_bound=1,
    )
    stride: int = option(
        2048, "Page tokens from one window to the next.", role="features", lower_bound=1
    )
    question_len: int = option(32, "Question tokens kept.", role="features", lower_bound=1)
    is_training: bool = option(
        True,
        "Leave out windows without an answer, at the rates below. With --input_dir it is so for "
        "train, not for dev.",
        role="features",
    )
    include_unknown_rate: float = option(
        1.0,
        "Share of the windows without an answer to keep, on pages that have one.",
        role="features",
        lower_bound=0.0,
    )
    include_unknown_rate_for_unanswerable: float | None = option(
        None,
        "The same on pages without any answer. None: four times --include_unknown_rate.",
        role="features",
        lower_bound=0.0,
    )
    predict_la_when_no_sa: bool = option(
        False, "The long answer takes the place of a missing short one.", role="features"
    )
    include_html_tokens: bool = option(True, "Keep tags, as two kinds of token.", role="features")
    global_token_types: tuple = option(
        ("0", "1", "2"),
        "Type ids of the global tokens: of candidates, of CLS, of the question.",
        role="features",
        is_repeated=True,
    )
    fixed_blocks: bool = option(
        False, "A global token a block of long tokens, not a candidate.", role="features"
    )
    fixed_block_size: int = option(27, "Long tokens of a block.", role="features", lower_bound=1)
    seed: int = option(0, "Which windows without an answer are kept.", role="features")

    def __post_init__(self):
        given = {name for name in ("input_dir", "output_dir") if getattr(self, name)}
        if len(given) == 1:
            raise ValueError("--input_dir and --output_dir must be given together.")
        if given and (self.input_pattern or self.output_prefix):
            raise ValueError(
                "Give either --input_dir and --output_dir, or --input_pattern and --output_prefix."
            )
        if self.tokenizer_type == "ALBERT" and not self.spm_model_file:
            raise ValueError("--tokenizer_type=ALBERT also needs --spm_model_path.")
        if self.tokenizer_type == "BERT" and not self.vocab_file:
            raise ValueError("--tokenizer_type=BERT also needs --vocab_file.")
        if not given:
            super().__post_init__()
        elif not (self.vocab_file or self.spm_model_file):
            raise ValueError("Either --vocab_file or --spm_model_path must be given.")

    def feature_fields(self):
        fields = super().feature_fields()
        try:
            types = tuple(map(int, self.global_token_types))
        except ValueError as error:
            raise ValueError(f"--global_token_types must be integers: {error}") from error
        return {**fields, "global_token_types": types}

    def sets(self):
        """The options of each split: one pattern and one prefix.

        Raises:
            ValueError: if `input_dir` has neither split.
        """
        options = self
        if self.tokenizer_type == "BERT":
            options = dataclasses.replace(options, spm_model_file="")
        return [options] if self.input_pattern else list(options._splits())

    def _splits(self):
        import tensorflow as tf  # Takes seconds to import.

        found = False
        for split in _SPLITS:
            name = f"nq-{split}"
            pattern = os.path.join(self.input_dir, split, f"{name}-*.jsonl*")
            if tf.io.gfile.glob(pattern):
                found = True
                yield dataclasses.replace(
                    self,
                    input_dir="",
                    output_dir="",
                    input_pattern=pattern,
                    output_prefix=os.path.join(self.output_dir, name),
                    is_training=split == "train",
                )
        if not found:
            raise ValueError(
                f"--input_dir: {self.input_dir!r} has neither train/nq-train-*.jsonl.gz nor "
                "dev/nq-dev-*.jsonl.gz."
            )


def load_parts():
    """The class that makes converters, and the function that reads a raw file."""
    from . import conversion, examples  # With TensorFlow, which takes seconds to import.

    return conversion.ConverterFactory, examples.read_lines


if __name__ == "__main__":
    program.run_program(PreprocessOptions, load_parts)
