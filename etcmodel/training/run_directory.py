"""The directory of a run: its options, their changes, and its checkpoints."""

import contextlib
import dataclasses
import json
import os

import tensorflow as tf

from etcmodel import atomic_files, bounded_json, bounded_yaml, checkpoints, format_versions
from etcmodel import options as options_lib
from etcmodel.checkpoints import released
from etcmodel.path_checks import check_no_pattern
from etcmodel.shown_values import shortened
from etcmodel.training.config import CHANGEABLE, TrainingConfig

# The history of changes to a run's options during training: `history.json` in its directory.


HISTORY_FILE = "history.json"
_ADVICE = "Restore the file."


@dataclasses.dataclass(frozen=True, kw_only=True)
class Change:
    """A change of an option.

    Attributes:
        step: int. Steps done before the change.
        option: str. A field of `TrainingConfig`.
        old, new: its values.
        num_train_steps: int. The run's last planned step with the new value.
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


def read_changes(output_dir):
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


def record_changes(output_dir, changes):
    """Adds changes (list of `Change`) to a run's history."""
    if changes:
        entries = [dataclasses.asdict(change) for change in [*read_changes(output_dir), *changes]]
        text = json.dumps({"changes": entries}, indent=2) + "\n"
        atomic_files.write_text(os.path.join(output_dir, HISTORY_FILE), [text])


def changes_in_force(changes):
    """The changes in force: dict from an option to its last change.

    Args:
        changes: list of `Change`.
    """
    return {change.option: change for change in changes}


def former_values_of(changes):
    """dict from a changed option to its previous values, a list. Args: as in `changes_in_force`."""
    found = {}
    for change in changes:
        found.setdefault(change.option, []).append(change.old)
    return found


def last_step(output_dir, default):
    """The last step of a run, which a change may have moved; `default` without changes."""
    changes = read_changes(output_dir)
    if not changes:
        return default
    options = (read_run_config(output_dir) or {}).get("training", {})
    stop = TrainingConfig(stop_at_step=options.get("stop_at_step"))
    return stop.last_step(changes[-1].num_train_steps)


# The options of a run, and its checkpoints.


BEST = "best"  # The folder of the best checkpoint, within that of the run.
RUN_CONFIG_FILE = "run_config.json"
_LOCK_FILE = "training.lock"
_NOTES = "notes"  # The entry that is not compared.
# For entries whose names differ from their flags.
_FLAGS = {
    "attention_tiling.rows": "attention_tile_rows",
    "attention_tiling.logits": "attention_logits",
}


class _Unknown:
    def __repr__(self):
        return "(unknown)"


# For an entry that an older version did not write and whose value is not known.
UNKNOWN = _Unknown()


class OtherRunError(ValueError):
    """Raised if the output directory belongs to a run with other options.

    >>> from etcmodel import training
    >>> data = {"token_ids": [[2, 7], [2, 8]]}, [0, 1]
    >>> task = training.HeadTask(lambda: etcmodel.from_pretrained("my_model"), data, data)
    >>> config = training.TrainingConfig(output_dir="my_run", train_batch_size=2, learning_rate=0.5)
    >>> training.train(task, config)
    Traceback (most recent call last):
        ...
    etcmodel.training.run_directory.OtherRunError: my_run belongs to a run with other options.
    Choose another output_dir, or the same options to continue that run, with
    --change=learning_rate=… for what is to change. They differ in training.learning_rate: 5e-05
    there, 0.5 now; training.num_train_epochs: 1 there, 3.0 now
    """


@contextlib.contextmanager
def alone_training(output_dir):
    """A context in which other processes cannot train in the directory.

    On file systems without locks, such as remote ones, it has no effect.

    Raises:
        ValueError: if another process trains there.
    """
    try:
        with atomic_files.held(os.path.join(output_dir, _LOCK_FILE)):
            yield
    except BlockingIOError as error:
        if os.path.basename(error.filename or "") != _LOCK_FILE:
            raise
        raise ValueError(
            f"{output_dir}: {error.strerror} is training there. Wait for its end, or choose "
            "another output_dir."
        ) from error


def claim_directory(output_dir, run_config, *, defaults=None, notes=None, write=True):
    """Marks `output_dir` as the directory of the run described by `run_config`.

    Args:
        output_dir: str. Created if it does not exist.
        run_config: JSON-serializable dict, possibly nested. The options that determine the result.
        defaults: dict of the same structure. Values for entries that one of the two runs lacks
            because another version wrote it. If the value is `UNKNOWN`, such an entry, or an empty
            list, is not compared.
        notes: JSON-serializable dict. Further entries to store, which are not compared.
        write: bool. False: only compare, for workers other than the chief.
    Raises:
        OtherRunError: if the directory holds a run with other options; the message names them.
    """
    old = read_run_config(output_dir)
    if old is not None:
        old.pop(_NOTES, None)
        _check_same(output_dir, _flat(old), _flat(run_config), _flat(defaults or {}))
    elif write:
        version = {format_versions.ENTRY: format_versions.RUN}
        new = {**version, **run_config, _NOTES: notes or {}}
        text = json.dumps(new, indent=2, sort_keys=True) + "\n"
        atomic_files.write_text(os.path.join(output_dir, RUN_CONFIG_FILE), [text])


def read_run_config(output_dir):
    """The dict given to `claim_directory` and its "notes"; None if there is no run.

    Options changed since then, and the note "num_train_steps", have their current values.

    Raises:
        ValueError: if the file, or that of the changes, is damaged, or a later version wrote it.

    >>> from etcmodel import training
    >>> training.read_run_config("my_run")["training"]["learning_rate"]
    5e-05
    """
    path = os.path.join(output_dir, RUN_CONFIG_FILE)
    if not tf.io.gfile.exists(path):
        return None
    run_config = bounded_json.read_object(path, "Restore the file.")
    format_versions.check(run_config, format_versions.RUN, path)
    run_config.pop(format_versions.ENTRY, None)
    for name in ("training", "task", _NOTES):
        if not isinstance(run_config.get(name, {}), dict):
            raise ValueError(f"{path}: `{name}` must be a JSON object. Restore the file.")
    _apply(read_changes(output_dir), run_config)
    return run_config


def _apply(changes, run_config):
    of_results = TrainingConfig().result_fields()
    for change in changes:
        run_config.setdefault(_NOTES, {})["num_train_steps"] = change.num_train_steps
        section = "training" if change.option in of_results else _NOTES
        run_config.setdefault(section, {})[change.option] = change.new


def checkpoint_paths(directory):
    """Paths of the checkpoints listed in a directory's `checkpoint` file, newest first.

    Raises:
        ValueError: naming that file, if it is damaged.
    """
    path = os.path.join(directory, "checkpoint")
    if not tf.io.gfile.exists(path):
        return []
    try:
        state = tf.train.get_checkpoint_state(directory)
    except (ValueError, tf.errors.OpError):
        state = None
    if state is None or not state.model_checkpoint_path:
        raise ValueError(
            f"{path}: is no list of checkpoints, as TensorFlow writes it. Restore the file; to "
            "begin anew, move the directory away."
        )
    paths = [*state.all_model_checkpoint_paths, state.model_checkpoint_path]
    return list(dict.fromkeys(reversed(paths)))


def best_checkpoint(output_dir):
    """Path of the best checkpoint by the task's metric, or else of the latest one.

    Raises:
        ValueError: if neither exists.

    >>> from etcmodel import training
    >>> training.best_checkpoint("my_run")
    'my_run/best/ckpt-1'
    """
    directories = (os.path.join(output_dir, BEST), output_dir)
    for directory in directories:
        if checkpoint_paths(directory) and (path := tf.train.latest_checkpoint(directory)):
            return path
    raise ValueError(f"`output_dir` must hold a checkpoint. Received: {output_dir!r}")


def restore_weights(model, path):
    """Loads the weights of a checkpoint, which may contain more, into a model.

    Args:
        model: built tf_keras.Model. To be called in the scope of the model's strategy.
        path: str. Path prefix; or any other that `checkpoints.initialize` takes, of a whole model.
    Raises:
        ValueError: naming the checkpoint, if it does not exist, is damaged or lacks a weight.
    """
    check_no_pattern(path, "The path of a checkpoint")
    if not _is_of_training(path):
        released.load_whole(model, path)
        return
    try:
        # Not `restore`, which expects a save counter: `write` does not write one.
        status = tf.train.Checkpoint(model=model).read(path).expect_partial()
    # TensorFlow raises an IndexError for a truncated file.
    except (tf.errors.OpError, IndexError, ValueError) as error:
        raise ValueError(f"{path}: cannot be read: {first_line(error)}") from error
    checkpoints.check_restored(status, model, path)


def check_kind(path):
    """Raises ValueError if the checkpoint was not saved by a training run."""
    if not _is_of_training(path):
        raise ValueError(
            f"{path}: holds variables by their names, not by their objects: no training of this "
            "library has saved it. To begin with its weights, or to evaluate or export them as "
            "they are, give it as --init_checkpoint, and another output_dir."
        )


def _is_of_training(path):
    """Whether a path is of a checkpoint that a training may have saved, or of a damaged one.

    One of `checkpoints.convert` may also be of objects, but has the head's weights by their names.
    """
    if not tf.io.gfile.exists(f"{path}.index"):
        return False
    try:
        names = tf.train.load_checkpoint(path).get_variable_to_shape_map()
    except (tf.errors.OpError, IndexError, ValueError):
        return True
    has_names = any(name.startswith("others/") for name in names)
    return "_CHECKPOINTABLE_OBJECT_GRAPH" in names and not has_names


def first_line(error):
    """The first sentence of a TensorFlow error: str."""
    return str(error).strip().split("\n")[0]


def _flat(tree, prefix=""):
    """Flattens nested dicts, with values as in JSON: {"a": {"b": (1, 2)}} -> {"a.b": [1, 2]}."""
    flat = {}
    for key, value in tree.items():
        is_tree, name = isinstance(value, dict), prefix + key
        flat |= _flat(value, f"{name}.") if is_tree else {name: _as_in_json(value)}
    return flat


def _as_in_json(value):
    return list(map(_as_in_json, value)) if isinstance(value, (list, tuple)) else value


def _check_same(output_dir, old, new, defaults):
    differences, changeable = [], []
    for name in sorted(old.keys() | new.keys()):
        default = defaults.get(name, "(not set)")
        there, now = (_meaning(run, name, default) for run in (old, new))
        if there != now and UNKNOWN not in (there, now):
            flag = f" (--{_FLAGS[name]})" if name in _FLAGS else ""
            differences.append(f"{name}{flag}: {there!r} there, {now!r} now")
            changeable += [x for x in CHANGEABLE if name == f"training.{x}"]
    if differences:
        raise OtherRunError(
            f"{output_dir} belongs to a run with other options. Choose another output_dir, or the "
            f"same options to continue that run{_advice(changeable)}. They differ in "
            + "; ".join(differences)
        )


def _advice(changeable):
    if not changeable:
        return f" (--change could change only {', '.join(CHANGEABLE)})"
    return f", with --change={changeable[0]}=… for what is to change"


def _meaning(run, name, default):
    value = run.get(name, default)
    return default if default is UNKNOWN and value == [] else value
