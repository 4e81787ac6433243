"""What a sweep tries: choices or ranges of options, the grids of the paper, and the plan.

TensorFlow is not needed.
"""

import dataclasses
import itertools
import json
import math
import os
import re

from etcmodel import atomic_files, bounded_json
from etcmodel.options import config_files
from etcmodel.shown_values import shortened, shown

__all__ = [
    "PLAN_FILE",
    "PRESETS",
    "Choices",
    "Plan",
    "Preset",
    "Range",
    "as_json",
    "as_text",
    "claim_folder",
    "grid",
    "parse",
    "parse_all",
    "read_yaml",
]

_NAME = re.compile(r"[a-zA-Z]\w*")
# Python also reads "nan" and "1_000", which are texts here.
_NUMBER = re.compile(r"[-+]?[\d.]+(e[-+]?\d+)?", re.ASCII | re.IGNORECASE)
_FORMS = "name=value,value,… or name=low:high or name=low:high:log"


@dataclasses.dataclass(frozen=True)
class Choices:
    """Choices of an option: tuple of int, float and str."""

    values: tuple


@dataclasses.dataclass(frozen=True)
class Range:
    """All values from `low` to `high`; integers if both are.

    Raises:
        ValueError: if there are none.
    """

    low: int | float
    high: int | float
    is_log: bool = False

    def __post_init__(self):
        if not self.low < self.high:
            raise ValueError(f"a range begins below its end. Received: {self.low}:{self.high}")
        if self.is_log and self.low <= 0:
            raise ValueError(f"a range with `log` begins above 0. Received: {self.low}")


def parse(text):
    """Parses a dimension, such as "learning_rate=1e-5,3e-5" or "learning_rate=1e-5:1e-4:log".

    Returns:
        (name, `Choices` or `Range`).
    Raises:
        ValueError: naming the flag, for another form.
    """
    name, equals, values = text.partition("=")
    source = f"--space={shortened(text, 200)}"
    if not (equals and _NAME.fullmatch(name) and values):
        raise ValueError(f"{source}: give {_FORMS}.")
    low, *others = values.split(":")
    if not others:
        return name, _choices(values.split(","), source)
    if len(others) > 2 or others[1:] not in ([], ["log"]):
        raise ValueError(f"{source}: give {_FORMS}.")
    return name, _range(low, others[0], len(others) == 2, source)


def parse_all(items):
    """Parses the dimensions of a flag with comma-separated items: dict, as in `read_yaml`.

    Args:
        items: sequence of str, such as ("learning_rate=1e-5", "3e-5", "train_batch_size=8:64"): one
            without `=` is a further value of the one before.
    Raises:
        ValueError: naming the flag, as in `parse`, or for a repeated option.
    """
    texts = []
    for item in items:
        if "=" in item or not texts:
            texts.append(item)
        else:
            texts[-1] += f",{item}"
    space = {}
    for name, dimension in map(parse, texts):
        if name in space:
            raise ValueError(f"--space: `{name}` is given twice. Give all of its values at once.")
        space[name] = dimension
    return space


def read_yaml(path):
    """Reads the space in a YAML file: dict from name to `Choices` or `Range`.

    Args:
        path: str. An entry is `name: [value, …]`, `name: value`, or `name: {low: …, high: …}`, also
            with `log: true`.
    Raises:
        ValueError: naming the file and the entry, for any other form.
    """
    space = {}
    for name, value in config_files.read_mapping(path, "--space_file").items():
        source = f"{path}: `{shortened(str(name), 100)}`"
        if not _NAME.fullmatch(str(name)):
            raise ValueError(f"{source} is no name of an option.")
        if isinstance(value, dict):
            is_log = value.get("log", False)
            if not {"low", "high"} <= set(value) <= {"low", "high", "log"} or is_log not in (0, 1):
                raise ValueError(f"{source}: a range has `low`, `high` and perhaps `log: true`.")
            space[name] = _range(value["low"], value["high"], bool(is_log), source)
        else:
            space[name] = _choices(value if isinstance(value, list) else [value], source)
    return space


def grid(space):
    """All combinations of a space's choices: list of dict, the last option's changing fastest.

    Raises:
        ValueError: naming the option, if one has a range.
    """
    for name, dimension in space.items():
        if isinstance(dimension, Range):
            raise ValueError(
                f"`{name}` has a range, of which there is no grid: give its values, or "
                "--sampler=tpe."
            )
    values = [dimension.values for dimension in space.values()]
    return [dict(zip(space, point, strict=True)) for point in itertools.product(*values)]


def as_json(space):
    """The space for JSON: dict from name to list, or to dict of a range."""
    return {
        name: list(x.values)
        if isinstance(x, Choices)
        else {"low": x.low, "high": x.high, "log": x.is_log}
        for name, x in space.items()
    }


def as_text(value):
    """A value as on a command line: str."""
    return value if isinstance(value, str) else repr(value)


def _choices(values, source):
    found = tuple(_value(value, source) for value in values)
    if not found or len(set(found)) < len(found):
        raise ValueError(f"{source}: give each value once. Received: {shown(values)}")
    return Choices(found)


def _range(low, high, is_log, source):
    ends = _value(low, source), _value(high, source)
    if any(isinstance(end, str) for end in ends):
        given = shortened(f"{low} and {high}", 400)
        raise ValueError(f"{source}: a range is of numbers. Received: {given}")
    try:
        return Range(*ends, is_log)
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from error


def _value(value, source):
    """An int or a finite float if the value, or its text, is one; else str."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if not isinstance(value, str) or not value:
        raise ValueError(f"{source}: a value is a number or a text. Received: {shown(value)}")
    if _NUMBER.fullmatch(value):
        for kind in (int, float):
            try:
                number = kind(value)
            except ValueError:
                continue
            return number if kind is int or math.isfinite(number) else value
    return value


# The grids of the paper's own sweeps (appendix C, "Fine-Tuning" of each data set).


@dataclasses.dataclass(frozen=True)
class Preset:
    """A sweep of the paper.

    Attributes:
        program: str. The name of the data set's program in `etcmodel train`.
        space: dict of an option to its `Choices`.
    """

    program: str
    space: dict[str, Choices]


def _preset(program, rates, epochs, batch_sizes, **others):
    values = {
        "learning_rate": rates,
        "num_train_epochs": epochs,
        "train_batch_size": batch_sizes,
        **others,
    }
    return Preset(program, {name: Choices(tuple(x)) for name, x in values.items()})


_FINE = (1e-5, 2e-5, 3e-5, 4e-5, 5e-5)
_TENTHS = tuple(tenth / 10 for tenth in range(11))
PRESETS = {
    "hotpotqa": _preset(
        "hotpotqa", (3e-5, 5e-5), (3, 5, 7, 9), (32, 64), supporting_fact_threshold=_TENTHS
    ),
    # The paper gives the threshold only for the base models.
    "hotpotqa_large": _preset(
        "hotpotqa", (1e-5, 2e-5, 3e-5, 5e-5, 7e-5), (2, 5, 9, 13), (32, 64, 128)
    ),
    "nq": _preset("nq", (3e-5, 5e-5), (3, 5), (64,)),
    "nq_large": _preset("nq", (3e-5, 5e-5), (2, 3), (64,)),
    "openkp": _preset("openkp", (3e-5, 5e-5), (2, 3), (64,)),
    "wikihop": _preset("wikihop", _FINE, (5, 10, 15), (64,)),
    "wikihop_large": _preset("wikihop", _FINE[1:], (5, 10), (64,)),
}


# The plan of a sweep, and the file in its folder that stores it.


PLAN_FILE = "sweep.json"
_FORMAT = 1
_NAMES = {
    "format": "format",
    "program": "program",
    "flags": "list of flags",
    "space": "space",
    "sampler": "sampler",
    "seed": "seed",
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Plan:
    """A sweep.

    Attributes:
        folder: str. The folder for all files of the sweep.
        program: str. The display name of the program.
        command: tuple of str. The command that starts it, without flags of a trial.
        title: str. The same, as a user would type it.
        flags: tuple of str. Flags for every trial.
        space: dict from an option to its `Choices` or `Range`.
        sampler: "grid" or "tpe".
        seed: int. Seed of the grid's order, or of TPE.
        num_trials: int. None: the whole grid.
        num_processes: int. Number of parallel trials.
        pruner: "none" or "median".
        prune_after_trials: int. Number of complete trials before any is pruned.
        prune_after_step: int. Step before which none is pruned.
        seconds_between_looks: float. Time between two checks of the trials' output.
    Raises:
        ValueError: if the space is empty, or does not fit the sampler or the flags.
    """

    folder: str
    program: str
    command: tuple[str, ...]
    title: str
    flags: tuple[str, ...] = ()
    space: dict = dataclasses.field(default_factory=dict)
    sampler: str = "grid"
    seed: int = 0
    num_trials: int | None = None
    num_processes: int = 1
    pruner: str = "none"
    prune_after_trials: int = 5
    prune_after_step: int = 0
    seconds_between_looks: float = 0.5

    def __post_init__(self):
        if "://" in self.folder:
            raise ValueError(
                f"--output_dir: a sweep's data base is a local file. Received: {self.folder!r}"
            )
        if not self.space:
            raise ValueError("There is nothing to try: give --space, --space_file or --preset.")
        if self.sampler == "grid":
            grid(self.space)  # Raises an error for a range.
        elif self.num_trials is None:
            raise ValueError("--sampler=tpe also needs --num_trials.")
        own = {"output_dir", *_flag_names(self.command)}
        if doubled := sorted((own | set(self.space)) & _flag_names(self.flags)):
            raise ValueError(f"The sweep itself gives --{doubled[0]}. Leave it out behind `--`.")
        if doubled := sorted(own & set(self.space)):
            raise ValueError(f"The sweep itself gives --{doubled[0]}. Leave it out of the space.")

    def trial_flags(self, values, output_dir):
        """The flags of a trial: list of str.

        Args:
            values: dict from an option to its value.
            output_dir: str. The directory of its run.
        """
        tried = [f"--{name}={as_text(value)}" for name, value in values.items()]
        return [*self.flags, *tried, f"--output_dir={output_dir}"]

    def kept(self):
        """The settings that may not change when the sweep resumes: dict for JSON."""
        return {
            "format": _FORMAT,
            "program": self.program,
            "flags": list(self.flags),
            "space": as_json(self.space),
            "sampler": self.sampler,
            "seed": self.seed,
        }


def _flag_names(words):
    """The options set by flags, including `--nooption`: set of str."""
    given = [word.lstrip("-").partition("=")[0] for word in words if word.startswith("-")]
    return {*given, *(name.removeprefix("no") for name in given)}


def claim_folder(plan):
    """Marks a folder as belonging to a sweep; to be called by one process at a time.

    Raises:
        ValueError: naming the difference, if it belongs to another sweep.
    """
    path, new = os.path.join(plan.folder, PLAN_FILE), plan.kept()
    if not os.path.exists(path):
        atomic_files.write_json(path, new)
        return
    with open(path, "rb") as file:
        old = bounded_json.load_object(file.read(), path, "Restore the file.")
    for key, name in _NAMES.items():
        if old.get(key) != new[key]:
            was, is_now = (json.dumps(x.get(key), ensure_ascii=False) for x in (old, new))
            raise ValueError(
                f"{plan.folder} holds a sweep with another {name}: {was}, not {is_now}. Give the "
                "same to go on with it, or another --output_dir."
            )
