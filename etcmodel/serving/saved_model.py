"""Running an exported model."""

import os

import numpy as np
import tensorflow as tf

__all__ = ["SavedModelRunner"]


class SavedModelRunner:
    """Loads an export and gives its outputs, example by example.

    Args:
        directory: of an export (`export_saved_model`), or a directory of exports named by numbers,
            of which the highest is taken.
    Raises:
        ValueError: if there is no export.
    """

    def __init__(self, directory):
        self.directory = _newest_version(directory)
        self._model = tf.saved_model.load(self.directory)
        self._signature = self._model.signatures["dense_features"]
        _, inputs = self._signature.structured_input_signature
        self._feature_names = sorted(inputs)

    def asset(self, name):
        """Path of the file that was kept with the model under that name, or None."""
        path = os.path.join(self.directory, "assets", name)
        return path if tf.io.gfile.exists(path) else None

    def __call__(self, examples, batch_size=8):
        """Iterates over the outputs.

        Args:
            examples: iterable of dicts with the model's features, each a list of ints; all
                examples have the same lengths. Other entries are passed on.
            batch_size: int.
        Yields:
            Dicts of NumPy arrays, one per example: its entries and the model's outputs.
        """
        for batch in _batches(examples, batch_size):
            features = {
                name: tf.constant(np.array([example[name] for example in batch], np.int32))
                for name in self._feature_names
            }
            outputs = {name: value.numpy() for name, value in self._signature(**features).items()}
            for row, example in enumerate(batch):
                yield {**example, **{name: value[row] for name, value in outputs.items()}}


def _batches(items, size):
    batch = []
    for item in items:
        batch.append(item)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


def _newest_version(directory):
    if tf.io.gfile.exists(os.path.join(directory, "saved_model.pb")):
        return directory
    names = tf.io.gfile.listdir(directory) if tf.io.gfile.isdir(directory) else []
    versions = [name.rstrip("/") for name in names if name.rstrip("/").isdigit()]
    if not versions:
        raise ValueError(f"No exported model in {directory!r}.")
    return os.path.join(directory, max(versions, key=int))
