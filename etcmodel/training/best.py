"""The best checkpoint of a run, which several evaluating processes may replace."""

import contextlib
import json
import math
import os

import tensorflow as tf

from etcmodel import atomic_files, bounded_json
from etcmodel.training import saving

__all__ = ["BEST", "BestCheckpoint", "read_best", "save_best", "worth"]

BEST = "best"  # The folder of the best checkpoint, within that of the run.
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
        os.path.join(output_dir, BEST),
        max_to_keep=1,
        checkpoint_name="ckpt",
    )
    saving.save(manager, step)


def read_best(output_dir):
    """The metric of a run's best checkpoint: float, or None if there is none yet.

    Args:
        output_dir: str. Directory of the run.
    Raises:
        ValueError: naming the file, if it is damaged.
    """
    path = os.path.join(output_dir, BEST, _METRIC_FILE)
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
        self._output_dir, self._directory = output_dir, os.path.join(output_dir, BEST)
        self._metric, self._higher_is_better = metric, higher_is_better
        self._save, self._is_chief, self._is_shared = save, is_chief, is_shared
        self._best = read_best(self._output_dir)

    def update(self, metrics):
        """Saves the weights if they are the best so far.

        Args:
            metrics: dict of floats. Metrics of the current weights; NaN is never the best.
        Returns:
            Whether they are the best: bool.
        """
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
                self._write(value)
        return True

    def _worth(self, value):
        return worth(value, self._higher_is_better)

    def _alone(self):
        tf.io.gfile.makedirs(self._directory)
        return atomic_files.alone_in(self._directory)

    def _write(self, value):
        atomic_files.write_text(os.path.join(self._directory, _METRIC_FILE), [json.dumps(value)])
