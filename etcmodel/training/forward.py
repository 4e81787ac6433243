"""Calling a model with the features of a data set, of which some are not for the model."""

__all__ = ["call_model"]


def call_model(model, features, *, training):
    """The model's outputs for the features it wants.

    Args:
        model: tf_keras.Model. A functional one gets the features it names as inputs (it would warn
            of others, such as labels); any other gets them all.
        features: dict of tensors [batch, ...].
        training: bool. Whether dropout is active.
    Returns:
        Dict of tensors [batch, ...].
    """
    inputs = getattr(model, "input", None)
    if isinstance(inputs, dict):
        features = {name: features[name] for name in inputs}
    return model(features, training=training)
