"""The directory of a run: what it was started with, and its checkpoints."""

import json
import os

import tensorflow as tf

from etcmodel import atomic_files, checkpoints
from etcmodel.training import best as best_lib
from etcmodel.training import strategy as strategy_lib

__all__ = [
    "UNKNOWN",
    "CheckpointWriter",
    "OtherRunError",
    "best_checkpoint",
    "claim_directory",
    "read_run_config",
    "restore_weights",
]

_CONFIG_FILE = "run_config.json"
_NOTES = "notes"  # Its entry that may differ.


class _Unknown:
    def __repr__(self):
        return "(unknown)"


# What an entry that an older version did not write means, where that cannot be told.
UNKNOWN = _Unknown()


class OtherRunError(ValueError):
    """The output directory belongs to a run with other options."""


def claim_directory(output_dir, run_config, *, defaults=None, notes=None, write=True):
    """Marks `output_dir` as that of the run described by `run_config`.

    Args:
        output_dir: str. Made if it does not exist.
        run_config: dict that JSON can hold, nested dicts allowed. What decides the run's result.
        defaults: dict of the same structure. What entries mean that one of two runs lacks, since
            another version wrote it; `UNKNOWN` (which an empty list then means, too): they are not
            compared.
        notes: dict that JSON can hold. What else to keep; it is not compared.
        write: bool. False: only compare, as workers other than the chief do.
    Raises:
        OtherRunError: if the directory holds a run with other options; the message names them.
    """
    old = read_run_config(output_dir)
    if old is not None:
        old.pop(_NOTES, None)
        _check_same(output_dir, _flat(old), _flat(run_config), _flat(defaults or {}))
    elif write:
        new = {**run_config, _NOTES: notes or {}}
        text = json.dumps(new, indent=2, sort_keys=True) + "\n"
        atomic_files.write_text(os.path.join(output_dir, _CONFIG_FILE), [text])


def read_run_config(output_dir):
    """The dict given to `claim_directory` and its "notes"; None if there is no run.

    Raises:
        ValueError: if the file is damaged.
    """
    path = os.path.join(output_dir, _CONFIG_FILE)
    if not tf.io.gfile.exists(path):
        return None
    with tf.io.gfile.GFile(path) as file:
        text = file.read()
    try:
        run_config = json.loads(text)
    except ValueError as error:
        raise ValueError(f"{path}: malformed JSON: {error}. Restore the file.") from error
    if not isinstance(run_config, dict):
        raise ValueError(f"{path}: must be a JSON object. Restore the file.")
    return run_config


def best_checkpoint(output_dir):
    """Path of the best checkpoint by the task's metric, else of the latest one.

    Raises:
        ValueError: if there is neither.
    """
    directories = (os.path.join(output_dir, best_lib.BEST), output_dir)
    for directory in directories:
        if path := tf.train.latest_checkpoint(directory):
            return path
    raise ValueError(f"`output_dir` must hold a checkpoint. Received: {output_dir!r}")


def restore_weights(model, path):
    """Gives a model the weights of a checkpoint, which may hold more than them.

    Args:
        model: built tf_keras.Model; call it in the scope of the model's strategy.
        path: str. Path prefix.
    Raises:
        ValueError: naming the checkpoint, if it is not there, is damaged or lacks a weight.
    """
    try:
        status = tf.train.Checkpoint(model=model).restore(path).expect_partial()
    # TensorFlow tells of a file that ends too early by an IndexError.
    except (tf.errors.OpError, IndexError, ValueError) as error:
        raise ValueError(f"{path}: cannot be read: {_first_line(error)}") from error
    checkpoints.check_restored(status, model, path)


def _first_line(error):
    return str(error).strip().split("\n")[0]


class CheckpointWriter:
    """Saves and restores a run; a checkpoint counts only once it is complete on disk.

    Workers other than the chief take part in saving, as their variables may have to be read
    together, but write to a directory of their own that is then removed.

    Args:
        output_dir: str. Directory of the run.
        strategy: tf.distribute.Strategy.
        model: tf_keras.Model.
        optimizer: its optimizer.
        global_step: int64 variable. Steps done.
        keep: int. Number of latest checkpoints to keep.
    """

    def __init__(self, *, output_dir, strategy, model, optimizer, global_step, keep):
        self._output_dir, self._global_step = output_dir, global_step
        self._strategy = strategy
        self._scratch_directory = None
        if not strategy_lib.is_chief(strategy):
            worker = strategy.cluster_resolver.task_id
            self._scratch_directory = os.path.join(output_dir, f"worker_{worker}.tmp")
        self._checkpoint = tf.train.Checkpoint(
            model=model, optimizer=optimizer, global_step=global_step
        )
        self._model = model
        self._directory = self._scratch_directory or output_dir
        self._latest = tf.train.CheckpointManager(
            self._checkpoint, self._directory, keep, checkpoint_name="ckpt"
        )

    def restore(self):
        """Continues from the last complete checkpoint; returns whether there was one."""
        # Not from the manager's list: that of other workers is their own.
        path = tf.train.latest_checkpoint(self._output_dir)
        if path is None:
            return False
        with self._strategy.scope():
            # The optimizer's moments come into being, with these values, at the first step.
            status = self._checkpoint.restore(path)
        checkpoints.check_restored(status, self._checkpoint.model, path)
        return True

    def save(self):
        """Saves everything under the number of the step."""
        self._latest.save(checkpoint_number=self._step)
        self._clean_up()

    def save_best(self):
        """Replaces the best checkpoint (weights alone) by the present weights."""
        best_lib.save_best(self._directory, self._model, self._step)
        self._clean_up()

    @property
    def _step(self):
        return int(self._global_step.numpy())

    def _clean_up(self):
        if self._scratch_directory:
            tf.io.gfile.rmtree(self._scratch_directory)


def _flat(tree, prefix=""):
    """{"a": {"b": (1, 2)}} -> {"a.b": [1, 2]}, as JSON holds it"""
    flat = {}
    for key, value in tree.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = list(value) if isinstance(value, tuple) else value
    return flat


def _check_same(output_dir, old, new, defaults):
    differences = []
    for name in sorted(old.keys() | new.keys()):
        default = defaults.get(name, "(not set)")
        there, now = (_meaning(run, name, default) for run in (old, new))
        if there != now and UNKNOWN not in (there, now):
            differences.append(f"{name}: {there!r} there, {now!r} now")
    if differences:
        raise OtherRunError(
            f"{output_dir} belongs to a run with other options. Choose another output_dir, or the "
            "same options to continue that run. They differ in " + "; ".join(differences)
        )


def _meaning(run, name, default):
    value = run.get(name, default)
    return default if default is UNKNOWN and value == [] else value
