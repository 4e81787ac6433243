"""The base of the public layers: Keras 2 (`tf_keras`), and plain about it.

`tf.keras` is Keras 3 in current TensorFlow. It neither tracks the weights of Keras 2 layers nor
understands their tensors, so that a mixture trains nothing or fails far from its cause.
"""

import sys

import tensorflow as tf
import tf_keras

from etcmodel.ops import argument_checks

__all__ = ["Layer", "check_part", "keras_3", "refuse_keras_3"]

_ADVICE = (
    "etcmodel's layers are Keras 2 layers: use `tf_keras` instead of `tf.keras` around and inside "
    "of them, or set TF_USE_LEGACY_KERAS=1 before TensorFlow is imported."
)


class Layer(tf_keras.layers.Layer):
    """A layer that refuses to be called on tensors of Keras 3, or inside its layers."""

    def __call__(self, *args, **kwargs):
        _check_caller(self, args, kwargs)
        return tf_keras.layers.Layer.__call__(self, *args, **kwargs)

    def build_from_config(self, config):
        with tf.name_scope(self.name):  # Variables keep their full names in a loaded model.
            super().build_from_config(config)


def check_part(name, part):
    """Raises ValueError if `part`, the argument `name` of a layer, is no Keras 2 layer."""
    refuse_keras_3(name, part)
    if not isinstance(part, tf_keras.layers.Layer):
        raise ValueError(f"`{name}` must be a tf_keras layer. Received: {part!r}")


def refuse_keras_3(name, part):
    """Raises ValueError if `part`, the argument `name` of a layer, is a Keras 3 layer."""
    keras = keras_3()
    if keras is not None and isinstance(part, keras.layers.Layer):
        raise ValueError(f"`{name}` is the Keras 3 layer {_describe(part)}. {_ADVICE}")


@tf.autograph.experimental.do_not_convert
def _check_caller(layer, args, kwargs):
    keras = keras_3()
    if keras is None:
        return
    if any(isinstance(x, keras.KerasTensor) for x in tf.nest.flatten((args, kwargs))):
        argument_checks.fail(f"Layer {_describe(layer)} got an input of Keras 3. {_ADVICE}")
    # What Keras 3 itself asks to tell whether it is inside a call.
    global_state = sys.modules.get("keras.src.backend.common.global_state")
    context = global_state and global_state.get_global_attribute("current_call_ctx")
    if context:
        outer = _describe(context.entry_layer)
        argument_checks.fail(
            f"Layer {_describe(layer)} is inside the Keras 3 layer {outer}. {_ADVICE}"
        )


def keras_3():
    """The package of Keras 3, or None if it is not in use."""
    keras = sys.modules.get("keras")
    if keras is None or int(getattr(keras, "__version__", "0").split(".")[0]) < 3:
        return None
    return keras


def _describe(layer):
    return f"{layer.name!r} ({type(layer).__name__})"
