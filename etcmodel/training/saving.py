"""Writes checkpoints during training, and keeps the best one."""

import contextlib
import json
import math
import os

import tensorflow as tf
from absl import logging

from etcmodel import atomic_files, bounded_json, checkpoints
from etcmodel.training import run_directory
from etcmodel.training import strategy as strategy_lib


def save(manager, step):
    """Saves a checkpoint named by the step; removes it if it cannot be written completely.

    Args:
        manager: `tf.train.CheckpointManager` of a directory that no other process writes to.
        step: int.
    Raises:
        tf.errors.OpError: naming the file that could not be written. Older checkpoints stay.
    """
    _remove_unfinished(manager.directory)
    try:
        manager.save(checkpoint_number=step)
    except BaseException:
        with contextlib.suppress(tf.errors.OpError):  # The first error is the more informative one.
            _remove_unfinished(manager.directory)
        raise


def _remove_unfinished(directory):
    """Removes the temporary files of a checkpoint and of the list of checkpoints."""
    for folder in tf.io.gfile.glob(os.path.join(directory, "ckpt-*_temp")):
        tf.io.gfile.rmtree(folder)
    for file in tf.io.gfile.glob(os.path.join(directory, "checkpoint.tmp*")):
        tf.io.gfile.remove(file)


# The best checkpoint of a run, which several evaluating processes may replace.


_METRIC_FILE = "best_metric.json"
_MAX_METRIC_BYTES = 1000
_ADVICE = "Restore the file; without it, the next evaluation is the best."


def save_best(output_dir, model, step):
    """Replaces the best checkpoint (weights only) by the current weights.

    Args:
        output_dir: str. Directory of the run.
        model: tf_keras.Model.
        step: int. The step of the weights.
    """
    # A new manager each time, since another process may have replaced the checkpoint.
    manager = tf.train.CheckpointManager(
        tf.train.Checkpoint(model=model),
        os.path.join(output_dir, run_directory.BEST),
        max_to_keep=1,
        checkpoint_name="ckpt",
    )
    save(manager, step)


def read_best(output_dir):
    """The metric of a run's best checkpoint: float, or None if there is none yet.

    Args:
        output_dir: str. Directory of the run.
    Raises:
        ValueError: naming the file, if it is damaged.
    """
    path = os.path.join(output_dir, run_directory.BEST, _METRIC_FILE)
    if not tf.io.gfile.exists(path):
        return None
    with tf.io.gfile.GFile(path, "rb") as file:
        text = file.read(_MAX_METRIC_BYTES) or b"null"  # Older versions left the file empty.
    try:
        best = bounded_json.loads(text)
    except ValueError as error:
        raise ValueError(f"{path} is not valid JSON: {error}. {_ADVICE}") from error
    if not (best is None or type(best) in (int, float)):
        raise ValueError(f"{path} must hold a number. {_ADVICE}")
    return None if best is not None and math.isnan(best) else best  # Older versions kept NaN.


def worth(value, higher_is_better):
    """The value of a metric as a float for which higher is better; NaN is the worst."""
    if math.isnan(value):
        return -math.inf
    return value if higher_is_better else -value


class BestCheckpoint:
    """Decides whether weights are the best so far, and saves them if so.

    Args:
        output_dir: str. Directory of the run.
        metric: str. Name of the metric that decides.
        higher_is_better: bool.
        save: function without arguments that saves the current weights as the best.
        is_chief: bool. Whether this process writes the file with the best metric.
        is_shared: bool. Whether other processes may replace the best checkpoint meanwhile. Workers
            that save together are not shared: each decides from the best metric at the start.
    """

    def __init__(
        self, output_dir, metric, *, higher_is_better, save, is_chief=True, is_shared=True
    ):
        self._output_dir, self._directory = output_dir, os.path.join(output_dir, run_directory.BEST)
        self._metric, self._higher_is_better = metric, higher_is_better
        self._save, self._is_chief, self._is_shared = save, is_chief, is_shared
        self._best = read_best(self._output_dir)

    def update(self, metrics):
        """Saves the weights if they are the best so far.

        Args:
            metrics: dict of floats. Metrics of the current weights; NaN is never the best.
        Returns:
            Whether they are the best: bool.
        Raises:
            ValueError: if they do not have the metric that decides.
        """
        if self._metric not in metrics:
            raise ValueError(
                f"The evaluation has no metric {self._metric!r}, which chooses the best "
                f"checkpoint. It has: {', '.join(metrics)}"
            )
        value = metrics[self._metric]
        if math.isnan(value):
            return False
        with self._alone() if self._is_shared else contextlib.nullcontext():
            if self._is_shared:
                self._best = read_best(self._output_dir)
            if self._best is not None and self._worth(value) <= self._worth(self._best):
                return False
            self._save()
            self._best = value
            if self._is_chief:
                path = os.path.join(self._directory, _METRIC_FILE)
                atomic_files.write_text(path, [json.dumps(value)])
        return True

    def _worth(self, value):
        return worth(value, self._higher_is_better)

    def _alone(self):
        tf.io.gfile.makedirs(self._directory)
        return atomic_files.alone_in(self._directory)


# Saves and restores a run's state.


class CheckpointWriter:
    """Saves and restores a run; a checkpoint counts only once it is complete on disk.

    Workers other than the chief take part in saving, since variables may have to be read by all
    workers together, but write to a temporary directory.

    Args:
        output_dir: str. Directory of the run.
        strategy: tf.distribute.Strategy.
        model: tf_keras.Model.
        optimizer: its optimizer.
        global_step: int64 variable. Steps done.
        keep: int. Number of latest checkpoints to keep.
        average: `WeightAverage`, or None. Checkpoints store the averages as the model's weights,
            for everything that loads a model from them, and the weights as `trained_weights`.
    """

    def __init__(self, *, output_dir, strategy, model, optimizer, global_step, keep, average=None):
        self._output_dir, self._global_step = output_dir, global_step
        self._average = average
        # Raises an error for a damaged list, which the manager would replace.
        run_directory.checkpoint_paths(output_dir)
        self._strategy = strategy
        self._scratch_directory = None
        if not strategy_lib.is_chief(strategy):
            worker = strategy.cluster_resolver.task_id
            self._scratch_directory = os.path.join(output_dir, f"worker_{worker}.tmp")
        averaged = {} if average is None else {"trained_weights": average.averages}
        self._checkpoint = tf.train.Checkpoint(
            model=model, optimizer=optimizer, global_step=global_step, **averaged
        )
        self._model = model
        self._directory = self._scratch_directory or output_dir
        self._latest = tf.train.CheckpointManager(
            self._checkpoint, self._directory, keep, checkpoint_name="ckpt"
        )

    def restore(self):
        """Restores the last complete checkpoint; returns whether there was one.

        Raises:
            ValueError: naming the checkpoints, if there are some but none can be read.
        """
        # Not from the manager's list, since other workers' managers have separate lists.
        paths = run_directory.checkpoint_paths(self._output_dir)
        if not paths:
            return False
        path = self._last_whole(paths)
        with self._strategy.scope():
            # The optimizer creates its moments, with these values, at the first step.
            status = self._checkpoint.restore(path)
        run_directory.check_kind(path)
        checkpoints.check_restored(status, self._checkpoint.model, path)
        status.expect_partial()  # A finished run takes no step, and so creates no moments.
        if self._average is not None:
            self._average.take_back()
        return True

    def _last_whole(self, paths):
        problems = []
        for path in paths:
            problem = _problem_of(path)
            if not problem:
                return path
            problems.append(f"{path} cannot be read: {problem}")
            logging.warning("%s. Going back to the checkpoint before it.", problems[-1])
        raise ValueError(
            f"{problems[0]}. None of the older checkpoints is whole either. To begin anew, move "
            "the directory away."
        )

    def save(self):
        """Saves everything in a checkpoint named by the step."""
        with self.averaged():
            save(self._latest, self._step)
        self._clean_up()

    def save_best(self):
        """Replaces the best checkpoint (weights only) by the current weights."""
        with self.averaged():
            save_best(self._directory, self._model, self._step)
        self._clean_up()

    def averaged(self):
        """A context in which the model uses the averages of its weights, if there are any."""
        return contextlib.nullcontext() if self._average is None else self._average.in_place()

    @property
    def _step(self):
        return int(self._global_step.numpy())

    def _clean_up(self):
        if self._scratch_directory:
            tf.io.gfile.rmtree(self._scratch_directory)


def _problem_of(checkpoint):
    """The reason why a checkpoint cannot be read completely: str; '' if it can."""
    try:
        reader = tf.train.load_checkpoint(checkpoint)
        for name in reader.get_variable_to_shape_map():
            reader.get_tensor(name)
    # TensorFlow raises an IndexError for a truncated file.
    except (tf.errors.OpError, IndexError, ValueError, RuntimeError) as error:
        return run_directory.first_line(error)
    return ""
