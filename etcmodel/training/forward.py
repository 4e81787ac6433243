"""Calls a model with the features of a data set that it uses."""

import tensorflow as tf

__all__ = ["call_model", "model_features"]


def model_features(model, features):
    """The features that a model uses, as far as is known.

    Args:
        model: tf_keras.Model. A functional model uses its named inputs (and would warn about
            others, such as labels). Other models get all features except strings, which XLA does
            not support.
        features: dict of tensors [batch, ...].
    Returns:
        Dict of tensors [batch, ...].
    """
    inputs = getattr(model, "input", None)
    if isinstance(inputs, dict):
        return {name: features[name] for name in inputs}
    return {name: x for name, x in features.items() if x.dtype != tf.string}


def call_model(model, features, *, training):
    """Calls the model with the features that it uses.

    Args:
        model, features: as in `model_features`.
        training: bool. Whether dropout is active.
    Returns:
        Dict of tensors [batch, ...]; a single output gets the name "logits".
    """
    outputs = model(model_features(model, features), training=training)
    return outputs if isinstance(outputs, dict) else {"logits": outputs}
