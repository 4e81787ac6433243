"""Saves and restores a run's state."""

import contextlib
import os

import tensorflow as tf
from absl import logging

from etcmodel import checkpoints
from etcmodel.training import best as best_lib
from etcmodel.training import run_directory, saving
from etcmodel.training import strategy as strategy_lib

__all__ = ["CheckpointWriter"]


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
            saving.save(self._latest, self._step)
        self._clean_up()

    def save_best(self):
        """Replaces the best checkpoint (weights only) by the current weights."""
        with self.averaged():
            best_lib.save_best(self._directory, self._model, self._step)
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
