"""The plan of a sweep, and the file in its folder that stores it.

TensorFlow is not needed.
"""

import dataclasses
import json
import os

from etcmodel import atomic_files, bounded_json
from etcmodel.tools.sweeps import space as space_lib

__all__ = ["PLAN_FILE", "Plan", "claim_folder"]

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
            space_lib.grid(self.space)  # Raises an error for a range.
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
        tried = [f"--{name}={space_lib.as_text(value)}" for name, value in values.items()]
        return [*self.flags, *tried, f"--output_dir={output_dir}"]

    def kept(self):
        """The settings that may not change when the sweep resumes: dict for JSON."""
        return {
            "format": _FORMAT,
            "program": self.program,
            "flags": list(self.flags),
            "space": space_lib.as_json(self.space),
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
