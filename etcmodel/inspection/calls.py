"""Calling a model to look inside: how it is called, its encoder, its stack of layers."""

import tensorflow as tf

from etcmodel.checkpoints import names
from etcmodel.layers.stack import TransformerStack
from etcmodel.models import encoders

__all__ = ["call_model", "check_eager", "encoder_of", "stack_of", "token_lookup_of"]


def call_model(model, inputs):
    """The outputs of a model, without dropout.

    Args:
        model: `Encoder`, or a Keras model that holds one.
        inputs: dict. An encoder's arguments by name; what any other model takes as its first.
    """
    if isinstance(model, encoders.Encoder):
        if not hasattr(inputs, "keys"):
            raise ValueError(
                "`inputs` must be a dict of the encoder's arguments by name. Received: "
                f"{type(inputs).__name__}"
            )
        return model(**{**inputs, "training": False})
    # Keras knows by the signature whether a layer asks for `training`.
    options = {"training": False} if model._expects_training_arg else {}
    return model(inputs, **options)


def encoder_of(model):
    """The `Encoder` that a model is or holds; raises ValueError if there is none."""
    return names.encoder_of(model)


def stack_of(model):
    """The `TransformerStack` of the model's encoder.

    Raises:
        ValueError: if there is none.
    """
    encoder = encoder_of(model)
    for layer in encoder._flatten_layers():
        if isinstance(layer, TransformerStack):
            return layer
    raise ValueError(f"The layers of {encoder.name!r} are no `TransformerStack`.")


def token_lookup_of(model):
    """The `EmbeddingLookup` of the encoder's tokens.

    Raises:
        ValueError: if there is none.
    """
    encoder = encoder_of(model)
    table = encoder.get_token_embedding_table()
    for layer in encoder._flatten_layers():
        if getattr(layer, "embedding_table", None) is table:
            return layer
    raise ValueError(f"{encoder.name!r} looks up no token embeddings.")


def check_eager():
    """Raises ValueError inside a `tf.function`, whose tensors have no values yet."""
    if not tf.executing_eagerly():
        raise ValueError("Looking inside a model needs eager execution: not in a tf.function.")
