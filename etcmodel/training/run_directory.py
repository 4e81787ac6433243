"""The directory of a run: what it was started with, and its checkpoints."""

import json
import os

import tensorflow as tf

from etcmodel import checkpoints
from etcmodel.training import strategy as strategy_lib

__all__ = [
    "CheckpointWriter",
    "OtherRunError",
    "best_checkpoint",
    "claim_directory",
    "read_run_config",
]

_CONFIG_FILE = "run_config.json"
_BEST = "best"


class OtherRunError(ValueError):
    """The output directory belongs to a run with other options."""


def claim_directory(output_dir, run_config, *, write=True):
    """Marks `output_dir` as that of the run described by `run_config`.

    Args:
        output_dir: str. Made if it does not exist.
        run_config: dict that JSON can hold, nested dicts allowed. What decides the run's result.
        write: bool. False: only compare, as workers other than the chief do.
    Raises:
        OtherRunError: if the directory holds a run with other options; the message names them.
    """
    new = json.loads(json.dumps(run_config))  # Tuples become lists, as they are in the file.
    old = read_run_config(output_dir)
    if old is not None:
        _check_same(output_dir, _flat(old), _flat(new))
    elif write:
        tf.io.gfile.makedirs(output_dir)
        path = os.path.join(output_dir, _CONFIG_FILE)
        temporary = f"{path}.{os.getpid()}.tmp"
        with tf.io.gfile.GFile(temporary, "w") as file:
            file.write(json.dumps(new, indent=2, sort_keys=True) + "\n")
        tf.io.gfile.rename(temporary, path, overwrite=True)


def read_run_config(output_dir):
    """The dict given to `claim_directory`, as JSON holds it; None if there is no run."""
    path = os.path.join(output_dir, _CONFIG_FILE)
    if not tf.io.gfile.exists(path):
        return None
    with tf.io.gfile.GFile(path) as file:
        return json.load(file)


def best_checkpoint(output_dir):
    """Path of the best checkpoint by the task's metric, else of the latest one.

    Raises:
        ValueError: if there is neither.
    """
    directories = (os.path.join(output_dir, _BEST), output_dir)
    for directory in directories:
        if path := tf.train.latest_checkpoint(directory):
            return path
    raise ValueError(f"`output_dir` must hold a checkpoint. Received: {output_dir!r}")


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
        self._latest = self._manager(self._checkpoint, "", keep)
        self._best = self._manager(tf.train.Checkpoint(model=model), _BEST, 1)

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
        self._save(self._latest)

    def save_best(self):
        """Replaces the best checkpoint (weights alone) by the present weights."""
        self._save(self._best)

    def _manager(self, checkpoint, directory, keep):
        path = os.path.join(self._scratch_directory or self._output_dir, directory)
        return tf.train.CheckpointManager(checkpoint, path, keep, checkpoint_name="ckpt")

    def _save(self, manager):
        manager.save(checkpoint_number=int(self._global_step.numpy()))
        if self._scratch_directory:
            tf.io.gfile.rmtree(self._scratch_directory)


def _flat(tree, prefix=""):
    """{"a": {"b": 1}} -> {"a.b": 1}"""
    flat = {}
    for key, value in tree.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat


def _check_same(output_dir, old, new):
    missing = "(not set)"
    differences = [
        f"{name}: {old.get(name, missing)!r} there, {new.get(name, missing)!r} now"
        for name in sorted(old.keys() | new.keys())
        if old.get(name, missing) != new.get(name, missing)
    ]
    if differences:
        raise OtherRunError(
            f"{output_dir} belongs to a run with other options. Choose another output_dir, or the "
            "same options to continue that run. They differ in " + "; ".join(differences)
        )
