"""Running an exported model."""

import itertools
import os

import numpy as np
import tensorflow as tf

__all__ = ["SavedModelRunner"]


class SavedModelRunner:
    """Loads an export and gives its outputs, record by record.

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
        _, self._specs = self._signature.structured_input_signature

    def asset(self, name):
        """Path of the file that was kept with the model under that name, or None."""
        path = os.path.join(self.directory, "assets", name)
        return path if tf.io.gfile.exists(path) else None

    def __call__(self, examples, batch_size=8):
        """Iterates over the outputs, reading no more records than a batch ahead.

        Args:
            examples: iterable of dicts with the model's features, each a list or array that has
                the feature's values in row-major order; a batch's examples have the same lengths.
                Other entries are passed on as they are.
            batch_size: int.
        Yields:
            Dicts, one per record: its entries and the model's outputs, as NumPy arrays.
        """
        examples = iter(examples)
        while batch := list(itertools.islice(examples, batch_size)):
            features = {name: _stack(batch, name, spec) for name, spec in self._specs.items()}
            outputs = self._signature(
                **{name: tf.constant(value) for name, value in features.items()}
            )
            arrays = {**features, **{name: value.numpy() for name, value in outputs.items()}}
            for row, example in enumerate(batch):
                yield {**example, **{name: array[row] for name, array in arrays.items()}}


def _stack(batch, name, spec):
    """Array [batch, length, ...] of one feature of the records."""
    shape = [-1, *spec.shape[2:]]
    rows = [np.reshape(example[name], shape) for example in batch]
    return np.stack(rows).astype(spec.dtype.as_numpy_dtype)


def _newest_version(directory):
    if tf.io.gfile.exists(os.path.join(directory, "saved_model.pb")):
        return directory
    names = tf.io.gfile.listdir(directory) if tf.io.gfile.isdir(directory) else []
    versions = [name.rstrip("/") for name in names if name.rstrip("/").isdigit()]
    if not versions:
        raise ValueError(f"No exported model in {directory!r}.")
    return os.path.join(directory, max(versions, key=int))
