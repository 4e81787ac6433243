"""Saves checkpoints so that a full disk or a killed process leaves no incomplete one."""

import contextlib
import os

import tensorflow as tf

__all__ = ["save"]


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
