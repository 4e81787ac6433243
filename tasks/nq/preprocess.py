"""Converts Natural Questions' files into sharded TFRecords.

  python -m etcmodel.tasks.nq.preprocess --input_pattern='v1.0/train/nq-train-*.jsonl.gz' \
    --output_prefix=/data/nq-train --vocab_file=vocab.txt --include_unknown_rate=0.02

Both splits of the official download (v1.0/train, v1.0/dev) at once, as in the release:

  python -m etcmodel.tasks.nq.preprocess --input_dir=v1.0 --output_dir=/data --vocab_file=vocab.txt

Also writes `<prefix>.config.json` (the settings of the records) and the statistics. Files of any
size are streamed; with flags of Apache Beam, such as `--runner=DataflowRunner`, it runs as a Beam
pipeline instead.
"""

import dataclasses
import os

from etcmodel import opener
from etcmodel.options import WORD_PIECES, option
from etcmodel.preprocessing import program

from .config import NqExampleOptions

_SPLITS = ("train", "dev")


@dataclasses.dataclass(frozen=True, kw_only=True)
class PreprocessOptions(NqExampleOptions, program.TokenizerTypeOptions):
    """Natural Questions' options; those of role "features" are arguments of `NqInputConfig`."""

    aliases = {
        "spm_model_path": "spm_model_file",
        "seq_len": "long_seq_length",
        "global_seq_len": "global_seq_length",
    }
    help_texts = {
        "input_pattern": "JSON lines, original or simplified layout, packed or not (a pattern "
        "for several).",
        "vocab_file": WORD_PIECES,
    }

    input_dir: str = option(
        "",
        "Instead of --input_pattern: folder with train/nq-train-*.jsonl.gz, dev/nq-dev-*.jsonl.gz, "
        "or both.",
    )
    output_dir: str = option("", "With --input_dir: folder to write nq-train-* and nq-dev-* to.")

    def check_inputs(self):
        given = {name for name in ("input_dir", "output_dir") if getattr(self, name)}
        if len(given) == 1:
            raise ValueError("--input_dir and --output_dir must be given together.")
        if given and (self.input_pattern or self.output_prefix):
            raise ValueError(
                "Give either --input_dir and --output_dir, or --input_pattern and --output_prefix."
            )
        if not given:
            super().check_inputs()

    def sets(self):
        """The options of each split: one pattern and one prefix.

        Raises:
            ValueError: if `input_dir` has neither split, or a file both uncompressed and
                compressed.
        """
        options = dataclasses.replace(self, spm_model_file=self.chosen_spm_model_file)
        return [options] if self.input_pattern else list(options._splits())

    def _splits(self):
        found = False
        for split in _SPLITS:
            name = f"nq-{split}"
            if patterns := _patterns(os.path.join(self.input_dir, split, f"{name}-*.jsonl")):
                found = True
                yield dataclasses.replace(
                    self,
                    input_dir="",
                    output_dir="",
                    input_pattern=patterns,
                    output_prefix=os.path.join(self.output_dir, name),
                    is_training=split == "train",
                )
        if not found:
            raise ValueError(
                f"--input_dir: {self.input_dir!r} has neither train/nq-train-*.jsonl.gz nor "
                "dev/nq-dev-*.jsonl.gz."
            )


def _patterns(pattern):
    """The given pattern and the pattern of compressed files, if they match: list of str."""
    import tensorflow as tf  # Takes seconds to import.

    found = {x: opener.shown(tf.io.gfile.glob(x), x) for x in (pattern, f"{pattern}.gz")}
    plain, packed = found.values()
    if twice := sorted({f"{file}.gz" for file in plain} & set(packed)):
        raise ValueError(
            f"--input_dir: {twice[0]} is there unpacked, too: its pages would count twice. Move "
            "one of them away."
        )
    return [x for x, files in found.items() if files]


load_parts = program.parts_beside(__package__)


if __name__ == "__main__":
    program.run_program(PreprocessOptions, load_parts)
