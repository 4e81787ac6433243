"""Calls a model for inspection, and finds its encoder and its stack of layers."""

import tensorflow as tf

from etcmodel.checkpoints import names
from etcmodel.layers import sublayers
from etcmodel.layers.base import OptionalInput
from etcmodel.layers.stack import TransformerStack
from etcmodel.models import encoders, padding, systems
from etcmodel.models.seq2seq.decoder import DecoderLayers

_TOLD = ("output_attentions", "output_hidden_states")


def call_model(model, inputs):
    """The outputs of a model, without dropout.

    Args:
        model: `Encoder`, or a Keras model that contains one.
        inputs: dict. For an encoder, its arguments by name; for any other model, its first
            argument.
    """
    if isinstance(model, encoders.Encoder):
        if not hasattr(inputs, "keys"):
            raise ValueError(
                "`inputs` must be a dict of the encoder's arguments by name. Received: "
                f"{type(inputs).__name__}"
            )
        with padding.kept():
            return model(**{**inputs, "training": False})
    # Keras checks the signature to see whether a layer accepts `training`.
    options = {"training": False} if model._expects_training_arg else {}
    with padding.kept():  # Otherwise, padding would be dropped and positions would shift.
        return model(inputs, **options)


def call_encoder(model, inputs):
    """Like `call_model`; calls only the encoder of an encoder-decoder without decoder inputs.

    Raises:
        ValueError: if the encoder's output is given, so that nothing calls it.
    """
    given = _given(model, inputs)
    if given is not inputs:
        if "encoder_output" in given:
            raise ValueError(
                "With `encoder_output` the encoder is not called, so that nothing can be seen of "
                "it. Give `input_ids` in its place."
            )
        encoder = encoder_of(model)
        if given.keys() <= {*encoder._call_spec.arg_names}:
            # The variables then have the same names as in the whole model.
            sublayers.build_sublayer(model, tf.TensorShape([None, None]))
            model = encoder
    return call_model(model, given)


def call_decoder(model, inputs):
    """Like `call_model`, for a model that contains a decoder."""
    return call_model(model, _given(model, inputs))


def _given(model, inputs):
    """The inputs of an encoder-decoder by name, without None values; others unchanged.

    Options such as `output_attentions` are removed, as they would interfere with the inspection.
    """
    if not (isinstance(model, OptionalInput) and hasattr(inputs, "items")):
        return inputs
    return {name: x for name, x in inputs.items() if not (x is None or name in _TOLD)}


def encoder_of(model):
    """The `Encoder` that a model is or contains; raises ValueError if there is none."""
    found = names.encoder_of(model)
    system = systems.find(found.config.model_type)
    inside = system and system.inner_encoder
    return next((x for x in found._flatten_layers() if inside and isinstance(x, inside)), found)


def of_parts(name):
    """Returns the parts that are inspected, of the systems with an attribute: dict of class to it.

    Args:
        name: str. The attribute of `systems.System`.
    """
    found = systems.having(name)
    return {x.inner_encoder or x.encoder_class: getattr(x, name) for x in found}


def decoder_layers_of(model):
    """The `DecoderLayers` that a model contains; raises ValueError if there are none."""
    for layer in model._flatten_layers():
        if isinstance(layer, DecoderLayers):
            return layer
    raise ValueError(f"{model.name!r} has no decoder that attends to an encoder.")


def sizes_of(encoder):
    """(number of layers, number of attention heads) of an encoder."""
    sizes = encoder.layers if hasattr(encoder, "finish") else encoder.config
    return sizes.num_hidden_layers, sizes.num_attention_heads


def stack_of(model):
    """The `TransformerStack` of the model's encoder.

    Raises:
        ValueError: if there is none, or several.
    """
    encoder = encoder_of(model)
    found = [x for x in encoder._flatten_layers() if isinstance(x, TransformerStack)]
    if not found:
        raise ValueError(f"The layers of {encoder.name!r} are no `TransformerStack`.")
    if len(found) > 1:  # A compressing GMAT.
        raise ValueError(
            f"{encoder.name!r} has {len(found)} stacks of layers, one after the other: call it "
            "with `output_hidden_states=True`."
        )
    return found[0]


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
