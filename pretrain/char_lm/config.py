"""The options of a run, besides the training options."""

import dataclasses
import types
import typing

from etcmodel.models.longformer_char_lm import config as presets
from etcmodel.options import Options, changed, option
from etcmodel.pretrain import program_options

__all__ = ["DEFAULTS", "SPLITS", "CharLmOptions", "ProgramOptions", "option_flags"]

if typing.TYPE_CHECKING:
    from etcmodel.models.longformer_char_lm.config import CharLmConfig


SPLITS = ("dev", "test")
# Table 12 of the paper.
DEFAULTS = {
    "learning_rate": 2.5e-4,
    "learning_rate_schedule": "constant",
    "gradient_clip_norm": 0.25,
    "train_batch_size": 32,
    "num_train_epochs": 1.0,
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class CharLmOptions(Options):
    """The options of a phase besides the training options; the help of each field describes it.

    Flags give the values of the first phase.

    Attributes:
        encoder_config: `CharLmConfig`.
        removed_options: see `finetuning.FinetuningConfig`.
    """

    removed_options: typing.ClassVar[dict] = {}

    encoder_config: "CharLmConfig"
    text_file: str | None = option(
        None,
        "Text file read byte by byte, such as enwik8 or text8: the training text, then the dev "
        "text, then the test text. None: in evaluations, the file of the run.",
        is_file=True,
        group="data",
        example="text8",
    )
    dev_bytes: int | None = option(
        None,
        "Size of the dev text, in bytes. None: 5 % of the file.",
        role="training",
        lower_bound=2,
        group="data",
    )
    test_bytes: int | None = option(
        None,
        "Size of the test text at the end of the file, in bytes. None: 5 % of the file.",
        role="training",
        lower_bound=2,
        group="data",
    )
    steps_per_phase: tuple[int, ...] = option(
        (430_000, 50_000, 50_000, 35_000, 5_000),
        "Number of steps of each phase, one number per phase. From phase to phase, windows and "
        "sequences double in length and the learning rate is halved.",
        role="training",
    )
    seq_length: int = option(
        2048,
        "Length of a training sequence in the first phase, in characters.",
        role="training",
        lower_bound=1,
    )
    max_seq_length: int | None = option(
        None,
        "Length in characters up to which training sequences double. None: no limit.",
        lower_bound=1,
        group="training",
    )
    eval_split: str = option("dev", "Text to evaluate on.", choices=SPLITS, group="evaluation")
    eval_length: int | None = option(
        None,
        "Length of a sequence in evaluations, in characters; 32256 in the paper. None: as in "
        "training.",
        lower_bound=1,
        group="evaluation",
    )
    eval_step: int | None = option(
        None,
        "Number of characters from one sequence to the next in evaluations; this many characters "
        "at the end of each sequence are scored. 512 in the paper. None: half a sequence.",
        lower_bound=1,
        group="evaluation",
    )
    max_eval_bytes: int | None = option(
        None,
        "Maximum number of bytes to evaluate. None: all of the text.",
        lower_bound=2,
        group="evaluation",
    )

    def __post_init__(self):
        super().__post_init__()
        if not self.steps_per_phase or min(self.steps_per_phase) < 1:
            raise ValueError(
                "`steps_per_phase` must have a number for each phase, at least 1. Received: "
                f"{self.steps_per_phase}"
            )

    @property
    def eval_sizes(self):
        """(length of a sequence, number of characters that count) in evaluations.

        Raises:
            ValueError: if more characters should count than there are.
        """
        length = self.eval_length or self.seq_length
        step = self.eval_step or max(1, length // 2)
        if step > length:
            raise ValueError(
                f"--eval_step={step} must not be above the length of the sequences, {length}."
            )
        return length, step


@dataclasses.dataclass(frozen=True, kw_only=True)
class ProgramOptions(program_options.PresetOptions):
    """The mode and the model of the program."""

    needed = types.MappingProxyType(
        {"train": ("output_dir", "preset", "text_file"), "evaluate": ("output_dir",)}
    )

    preset: str | None = changed(
        program_options.PresetOptions,
        "preset",
        choices=tuple(sorted(presets.PRESETS)),
        example="small",
    )


def option_flags(flag_values):
    """The `ProgramFlags` of the training's options, the models' and the program's own."""
    return program_options.option_flags(ProgramOptions, CharLmOptions, DEFAULTS, flag_values)
