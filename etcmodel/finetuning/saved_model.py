"""SavedModels whose features have any shape and type: writing and running them."""

import itertools
import os
import tempfile

import numpy as np
import tensorflow as tf

from etcmodel import serving

__all__ = ["FeatureRunner", "save"]


def save(model, directory, *, features, padding, assets):
    """Writes a SavedModel with two signatures, which both return all of the model's outputs.

    `serving_default` takes `examples`, serialized `tf.train.Example`s, string [batch]; examples
    shorter than the longest of the batch are padded. `dense_features` takes the features
    themselves, [batch, length, ...] each, of any lengths.

    Args:
        model: built tf_keras.Model, called with a dict of features and `training=False`.
        directory: where to write; must not exist. It appears only when it is complete.
        features: dict of name to `tf.io.FixedLenFeature` of the model's features, int64 (the model
            gets int32) or float32, without the batch axis. The length of their first axis is left
            open.
        padding: dict of name to padding value; 0 for others.
        assets: dict of file name to path: files to keep with the model, in `assets/`.
    Returns:
        `directory`.
    Raises:
        ValueError: if `directory` exists, or an asset is missing.
    """
    if tf.io.gfile.exists(directory):
        raise ValueError(f"There is already something at {directory!r}; export elsewhere.")
    missing = [path for path in assets.values() if not tf.io.gfile.exists(path)]
    if missing:
        raise ValueError(f"No such file to keep with the model: {', '.join(missing)}")
    temporary = f"{directory.rstrip('/')}.tmp"
    if tf.io.gfile.exists(temporary):
        tf.io.gfile.rmtree(temporary)
    with tempfile.TemporaryDirectory() as folder:
        module = _ServingModule(model, features, padding)
        module.assets = [tf.saved_model.Asset(path) for path in _named(assets, folder)]
        # Served models are not trained further: the gradients of the attention need no tracing.
        options = tf.saved_model.SaveOptions(experimental_custom_gradients=False)
        tf.saved_model.save(module, temporary, module.signatures(), options)
    tf.io.gfile.rename(temporary, directory)
    return directory


def _named(assets, folder):
    """Copies of the files under the names they shall have."""
    paths = []
    for name, path in assets.items():
        paths.append(os.path.join(folder, name))
        tf.io.gfile.copy(path, paths[-1])
    return paths


class _ServingModule(tf.Module):
    """The signatures, and the variables that they read.

    The Keras model itself is not an attribute: saving would then trace each of its layers.
    """

    def __init__(self, model, features, padding):
        super().__init__()
        self._call = lambda dense: model(dense, training=False)
        self._sequences = {
            name: tf.io.FixedLenSequenceFeature(
                feature.shape[1:],
                feature.dtype,
                allow_missing=True,
                default_value=padding.get(name, 0),
            )
            for name, feature in features.items()
        }
        self.model_variables = list(model.variables)

    def signatures(self):
        """Signature name to concrete function."""
        serialized = tf.TensorSpec([None], tf.string, name="examples")
        dense = {
            name: tf.TensorSpec([None, None, *sequence.shape], _model_dtype(sequence.dtype), name)
            for name, sequence in self._sequences.items()
        }
        self.serve_examples = tf.function(self._serve_examples, input_signature=[serialized])
        self.serve_features = tf.function(lambda **features: self._call(features))
        return {
            "serving_default": self.serve_examples.get_concrete_function(),
            "dense_features": self.serve_features.get_concrete_function(**dense),
        }

    def _serve_examples(self, examples):
        parsed = tf.io.parse_example(examples, self._sequences)
        return self._call(
            {name: tf.cast(value, _model_dtype(value.dtype)) for name, value in parsed.items()}
        )


def _model_dtype(record_dtype):
    return tf.int32 if record_dtype == tf.int64 else record_dtype


class FeatureRunner(serving.SavedModelRunner):
    """Loads an export and gives its outputs, record by record.

    Args:
        directory: of an export (`save`), or a directory of exports named by numbers, of which the
            highest is taken.
    Raises:
        ValueError: if there is no export.
    """

    def __init__(self, directory):
        super().__init__(directory)
        _, self._specs = self._signature.structured_input_signature

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
