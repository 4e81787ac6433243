"""Calling a model to look inside: how it is called, its encoder, its stack of layers."""

import tensorflow as tf

from etcmodel.checkpoints import names
from etcmodel.layers import sublayers
from etcmodel.layers.stack import TransformerStack
from etcmodel.models import encoders, padding, systems
from etcmodel.models.seq2seq.decoder import DecoderLayers
from etcmodel.models.seq2seq.inputs import OptionalInput

__all__ = [
    "call_decoder",
    "call_encoder",
    "call_model",
    "check_eager",
    "decoder_layers_of",
    "encoder_of",
    "sizes_of",
    "stack_of",
    "token_lookup_of",
]

_TOLD = ("output_attentions", "output_hidden_states")


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
    with padding.kept():  # Else places that are padding could not be looked at by their numbers.
        return model(inputs, **options)


def call_encoder(model, inputs):
    """As `call_model`; of an encoder-decoder with inputs of its encoder alone, by this alone.

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
            # The variables have the names that they get in the whole model.
            sublayers.build_sublayer(model, tf.TensorShape([None, None]))
            model = encoder
    return call_model(model, given)


def call_decoder(model, inputs):
    """As `call_model`, of a model that holds a decoder."""
    return call_model(model, _given(model, inputs))


def _given(model, inputs):
    """Inputs of an encoder-decoder by name, without those that are None; all others as they are.

    What it could tell of its layers is not asked for: it would look into them in its own way.
    """
    if not (isinstance(model, OptionalInput) and hasattr(inputs, "items")):
        return inputs
    return {name: x for name, x in inputs.items() if not (x is None or name in _TOLD)}


def encoder_of(model):
    """The `Encoder` that a model is or holds; raises ValueError if there is none."""
    found = names.encoder_of(model)
    system = systems.find(found.config.model_type)
    inside = system and system.inner_encoder
    return next((x for x in found._flatten_layers() if inside and isinstance(x, inside)), found)


def decoder_layers_of(model):
    """The `DecoderLayers` that a model holds; raises ValueError if there are none."""
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
    if len(found) > 1:  # A GMAT that compresses.
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
