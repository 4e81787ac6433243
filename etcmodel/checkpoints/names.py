"""The names that variables have in the authors' checkpoints."""

import re

__all__ = [
    "encoder_of",
    "encoder_variables",
    "is_in_encoder",
    "release_name",
    "release_names",
]

_ENCODER = "etc_document_bert"
_POSITION_TABLE = re.compile(r"(?:.*/)?(position_emb_lookup_(?:long|global)/.+)")
_IN_ENCODER = re.compile(rf"(?:.*/)?({_ENCODER}/.+)")
_PART_OF_ENCODER = re.compile(
    r"(?:token_emb_lookup|segment_emb_lookup|(?:long|global)_emb_layer_norm"
    r"|global_local_transformer_layers)/.+"
)


def release_names(model):
    """Maps names in the release's checkpoints to the variables of a model.

    A name is the path of layer names down from the model, with two exceptions that the release
    makes: the name of a task model itself is left out, and so is the encoder's before absolute
    position tables.

    Args:
        model: a built Keras layer or model.
    Returns:
        dict of name (without ":0") to variable, in the order of creation.
    """
    prefix = f"{model.name}/" if _is_encoder(model) else ""
    names = {}
    _collect(model, prefix, names)
    return names


def release_name(full_name):
    """The release's name of a variable, from the one that TensorFlow gave it.

    The two differ by the scope in which a model was built: around its name in a task, or without
    it for an encoder that was built alone.

    Args:
        full_name: str, without ":0".
    """
    for pattern in (_POSITION_TABLE, _IN_ENCODER):
        if match := pattern.fullmatch(full_name):
            return match.group(1)
    if _PART_OF_ENCODER.fullmatch(full_name):
        return f"{_ENCODER}/{full_name}"
    return full_name


def encoder_of(model):
    """The `EtcModel` that `model` is or holds.

    Raises:
        ValueError: if there is none.
    """
    encoder = _find_encoder(model)
    if encoder is None:
        raise ValueError(f"{model.name!r} holds no `EtcModel`.")
    return encoder


def encoder_variables(model):
    """The part of `release_names(model)` that is of the encoder; {} if there is none."""
    encoder = _find_encoder(model)
    inside = set() if encoder is None else {id(variable) for variable in encoder.weights}
    return {name: v for name, v in release_names(model).items() if id(v) in inside}


def is_in_encoder(name):
    """Whether a name in a checkpoint of the release is of the encoder, not of a task's heads."""
    return bool(_POSITION_TABLE.fullmatch(name) or _IN_ENCODER.fullmatch(name))


def _find_encoder(model):
    return next(filter(_is_encoder, model._flatten_layers()), None)


def _is_encoder(layer):
    return hasattr(layer, "get_token_embedding_table")


def _collect(layer, prefix, names):
    for variable in layer._trainable_weights + layer._non_trainable_weights:
        names.setdefault(prefix + variable.name.split(":")[0].split("/")[-1], variable)
    for child in layer._flatten_layers(include_self=False, recursive=False):
        is_position_table = child.name.startswith("position_emb_lookup_")
        child_prefix = "" if is_position_table else prefix
        _collect(child, f"{child_prefix}{child.name}/", names)
