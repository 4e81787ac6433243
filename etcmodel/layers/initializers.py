"""Initializers of weights."""

import tf_keras

from etcmodel.layers import base


def as_initializer(given):
    """Returns a Keras 2 initializer from an initializer, its name or its config; None stays None.

    An initializer of Keras 3 is replaced by its Keras 2 counterpart: it returns the same values at
    each call, so all weights of the same shape would be equal.

    Raises:
        ValueError: if there is no such initializer.
    """
    keras = base.keras_3()
    if keras is not None and isinstance(given, keras.initializers.Initializer):
        given = {"class_name": type(given).__name__, "config": given.get_config()}
    return tf_keras.initializers.get(given)


def fresh(initializer):
    """Copies an initializer, so that each weight gets different random values.

    A shared, unseeded Keras initializer returns the same values at each call.

    Args:
        initializer: initializer object, its name, or None.
    """
    if isinstance(initializer, tf_keras.initializers.Initializer):
        return type(initializer).from_config(initializer.get_config())
    return tf_keras.initializers.get(initializer)


def default_initializer(initializer_range=0.02):
    """Returns the default initializer of weights: truncated normal."""
    return tf_keras.initializers.TruncatedNormal(stddev=initializer_range)


def fresh_or_default(initializer):
    """Like `fresh`, but None gives the default initializer."""
    return fresh(initializer) or default_initializer()
