"""The best checkpoint of a run, which several processes that evaluate may replace."""

import contextlib
import json
import os

import tensorflow as tf

from etcmodel import atomic_files

__all__ = ["BEST", "BestCheckpoint", "save_best"]

BEST = "best"  # Its folder within the run's.
_METRIC_FILE = "best_metric.json"


def save_best(output_dir, model, step):
    """Replaces the best checkpoint (weights alone) by the present weights.

    Args:
        output_dir: str. Directory of the run.
        model: tf_keras.Model.
        step: int. Of the weights.
    """
    # A new manager each time: it knows of what another process has put there.
    manager = tf.train.CheckpointManager(
        tf.train.Checkpoint(model=model),
        os.path.join(output_dir, BEST),
        max_to_keep=1,
        checkpoint_name="ckpt",
    )
    manager.save(checkpoint_number=step)


class BestCheckpoint:
    """Decides whether weights are the best so far, and has them saved if so.

    Args:
        output_dir: str. Directory of the run.
        metric: str. Name of the metric that decides.
        higher_is_better: bool.
        save: function without arguments that saves the present weights as the best.
        is_chief: bool. Whether this process writes the metric's file.
        is_shared: bool. Whether other processes may replace the best meanwhile. Workers that must
            save together decide each by themselves, from what there was at the start.
    """

    def __init__(
        self, output_dir, metric, *, higher_is_better, save, is_chief=True, is_shared=True
    ):
        self._directory = os.path.join(output_dir, BEST)
        self._metric, self._sign = metric, 1 if higher_is_better else -1
        self._save, self._is_chief, self._is_shared = save, is_chief, is_shared
        self._best = self._read()

    def update(self, metrics):
        """Saves the weights if these are their metrics (dict of floats) and the best so far."""
        value = metrics[self._metric]
        with self._alone() if self._is_shared else contextlib.nullcontext():
            if self._is_shared:
                self._best = self._read()
            if self._best is not None and self._sign * value <= self._sign * self._best:
                return
            self._save()
            self._best = value
            if self._is_chief:
                self._write(value)

    def _read(self):
        path = os.path.join(self._directory, _METRIC_FILE)
        if not tf.io.gfile.exists(path):
            return None
        with tf.io.gfile.GFile(path) as file:
            return json.loads(file.read() or "null")

    def _alone(self):
        tf.io.gfile.makedirs(self._directory)
        return atomic_files.alone_in(self._directory)

    def _write(self, value):
        atomic_files.write_text(os.path.join(self._directory, _METRIC_FILE), [json.dumps(value)])
