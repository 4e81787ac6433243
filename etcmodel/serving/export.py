"""Writing a model as a SavedModel that answers without this package."""

import os
import tempfile

import tensorflow as tf

from etcmodel import atomic_files
from etcmodel.ops import compilation

__all__ = ["export_saved_model"]


def export_saved_model(model, directory, *, features, assets, padding=None):
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
        assets: dict of file name to path: files to keep with the model, in `assets/`.
        padding: dict of name to padding value; 0 for others.
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
    # A served model is not trained further: tracing the gradients of its attention would take long.
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=False)
    with (
        tempfile.TemporaryDirectory() as folder,
        atomic_files.new_folder(directory) as unfinished,
        compilation.fusion_scope("never"),  # A server may have no XLA.
    ):
        module = _ServingModule(model, features, padding or {})
        module.assets = [tf.saved_model.Asset(path) for path in _named(assets, folder)]
        tf.saved_model.save(module, unfinished, module.signatures(), options)
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
        # Functions that are attributes of what is saved would be traced anew.
        serve_examples = tf.function(self._serve_examples)
        serve_features = tf.function(lambda **features: self._call(features))
        return {
            "serving_default": serve_examples.get_concrete_function(serialized),
            "dense_features": serve_features.get_concrete_function(**dense),
        }

    def _serve_examples(self, examples):
        parsed = tf.io.parse_example(examples, self._sequences)
        return self._call(
            {name: tf.cast(value, _model_dtype(value.dtype)) for name, value in parsed.items()}
        )


def _model_dtype(record_dtype):
    return tf.int32 if record_dtype == tf.int64 else record_dtype
