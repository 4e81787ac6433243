"""The history of changes to a run's options during training: `history.json` in its directory."""

import dataclasses
import json
import os

import tensorflow as tf

from etcmodel import atomic_files, bounded_json, bounded_yaml
from etcmodel import options as options_lib
from etcmodel.shown_values import shortened
from etcmodel.training.config import CHANGEABLE, TrainingConfig

__all__ = [
    "HISTORY_FILE",
    "Change",
    "checked_changes",
    "former_values",
    "in_force",
    "num_train_steps",
    "parse_changes",
    "read",
    "record",
]

HISTORY_FILE = "history.json"
_ADVICE = "Restore the file."


@dataclasses.dataclass(frozen=True, kw_only=True)
class Change:
    """A change of an option.

    Attributes:
        step: int. Steps done before the change.
        option: str. A field of `TrainingConfig`.
        old, new: its values.
        num_train_steps: int. The run's last step with the new value.
    """

    step: int
    option: str
    old: float | int | str | None
    new: float | int | str | None
    num_train_steps: int


def parse_changes(texts):
    """Parses the values of `--change`, such as ["learning_rate=3e-5"]: dict from option to value.

    Raises:
        ValueError: naming the flag, if an option may not be changed or its value is invalid.

    >>> from etcmodel import training
    >>> training.parse_changes(["learning_rate=3e-5"])
    {'learning_rate': 3e-05}
    """
    changes = {}
    for text in texts:
        name, equals, value = text.partition("=")
        source = f"--change={shortened(text, 200)}"
        if not equals:
            raise ValueError(f"{source}: give name=value.")
        if (name := name.strip()) in changes:
            raise ValueError(f"{source}: `{name}` is given twice.")
        # As in help texts; no option may have the text "None" as its value.
        changes[name] = None if value.strip() == "None" else bounded_yaml.loads(value, source)
    return checked_changes(changes, "--change")


def checked_changes(changes, source="changes"):
    """Converts values of changeable options to their types.

    Args:
        changes: dict from an option to its value, or None.
        source: str. Where they come from, for error messages.
    Raises:
        ValueError: naming the option, if it may not be changed or its value is invalid.
    """
    known = {field.name: field for field in options_lib.option_fields(TrainingConfig)}
    if refused := sorted(set(changes or {}) - set(CHANGEABLE)):
        raise ValueError(
            f"{source}: `{shortened(refused[0], 100)}` may not change in a run. What may: "
            f"{', '.join(CHANGEABLE)}."
        )
    return {
        name: options_lib.checked(known[name], value, name, source)
        for name, value in (changes or {}).items()
    }


def read(output_dir):
    """The changes of a run, in order: list of `Change`.

    Raises:
        ValueError: naming the file, if it is damaged.
    """
    path = os.path.join(output_dir, HISTORY_FILE)
    if not tf.io.gfile.exists(path):
        return []
    entries = bounded_json.read_object(path, _ADVICE).get("changes")
    if not isinstance(entries, list):
        raise ValueError(f"{path}: `changes` must be a list. {_ADVICE}")
    return [_change(entry, path) for entry in entries]


def _change(entry, path):
    names = [field.name for field in dataclasses.fields(Change)]
    if not isinstance(entry, dict) or sorted(entry) != sorted(names):
        raise ValueError(f"{path}: a change must have {', '.join(names)}. {_ADVICE}")
    for name in ("step", "num_train_steps"):
        if type(entry[name]) is not int or entry[name] < 0:
            raise ValueError(f"{path}: `{name}` must be a number of steps. {_ADVICE}")
    for name in ("old", "new"):
        if not isinstance(entry["option"], str):
            raise ValueError(f"{path}: `option` must be a name. {_ADVICE}")
        entry[name] = checked_changes({entry["option"]: entry[name]}, path)[entry["option"]]
    return Change(**entry)


def record(output_dir, changes):
    """Adds changes (list of `Change`) to a run's history."""
    if changes:
        entries = [dataclasses.asdict(change) for change in [*read(output_dir), *changes]]
        text = json.dumps({"changes": entries}, indent=2) + "\n"
        atomic_files.write_text(os.path.join(output_dir, HISTORY_FILE), [text])


def in_force(changes):
    """The changes in force: dict from an option to its last change.

    Args:
        changes: list of `Change`.
    """
    return {change.option: change for change in changes}


def former_values(changes):
    """dict from a changed option to the list of its previous values. Args: as in `in_force`."""
    found = {}
    for change in changes:
        found.setdefault(change.option, []).append(change.old)
    return found


def num_train_steps(output_dir, default):
    """The last step of a run, which a change may have moved; `default` without changes."""
    changes = read(output_dir)
    return changes[-1].num_train_steps if changes else default
