"""Writing a model as a SavedModel that answers without this package."""

import os
import shutil

import tensorflow as tf

__all__ = ["export_saved_model"]


def export_saved_model(model, directory, *, features, assets):
    """Writes a SavedModel with two signatures, which both return all of the model's outputs.

    `serving_default` takes `examples`, serialized `tf.train.Example`s, string [batch]; examples
    shorter than the longest of the batch are padded. `dense_features` takes the features
    themselves, int32 [batch, length] each, of any lengths.

    Args:
        model: built tf_keras.Model, called with a dict of features and `training=False`.
        directory: where to write; must not exist. It appears only when it is complete.
        features: dict of the name of each feature to its padding value.
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
    module = _ServingModule(model, features)
    module.assets = [tf.saved_model.Asset(path) for path in _named(assets, f"{temporary}.assets")]
    tf.saved_model.save(module, temporary, signatures=module.signatures())
    shutil.rmtree(f"{temporary}.assets", ignore_errors=True)
    tf.io.gfile.rename(temporary, directory)
    return directory


def _named(assets, directory):
    """Copies of the files under the names they shall have."""
    os.makedirs(directory, exist_ok=True)
    paths = []
    for name, path in assets.items():
        paths.append(os.path.join(directory, name))
        tf.io.gfile.copy(path, paths[-1], overwrite=True)
    return paths


class _ServingModule(tf.Module):
    """The signatures, and the variables that they read.

    The Keras model itself is not an attribute: saving would then trace each of its layers.
    """

    def __init__(self, model, features):
        super().__init__()
        self._call = lambda dense: model(dense, training=False)
        self._padding = dict(features)
        self.model_variables = list(model.variables)

    def signatures(self):
        """Signature name to concrete function."""
        serialized = tf.TensorSpec([None], tf.string, name="examples")
        dense = {name: tf.TensorSpec([None, None], tf.int32, name) for name in self._padding}
        self.serve_examples = tf.function(self._serve_examples, input_signature=[serialized])
        self.serve_features = tf.function(lambda **features: self._call(features))
        return {
            "serving_default": self.serve_examples.get_concrete_function(),
            "dense_features": self.serve_features.get_concrete_function(**dense),
        }

    def _serve_examples(self, examples):
        spec = {
            name: tf.io.FixedLenSequenceFeature(
                [], tf.int64, allow_missing=True, default_value=padding
            )
            for name, padding in self._padding.items()
        }
        parsed = tf.io.parse_example(examples, spec)
        return self._call({name: tf.cast(value, tf.int32) for name, value in parsed.items()})
