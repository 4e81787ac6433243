"""The names of variables in the authors' checkpoints."""

import functools
import re

from etcmodel.models import encoders

# The one variable whose own name has a scope, which no layer has: see `heads.make_masked_lm`.
_OWN_SCOPE = re.compile(r"^((?:.*/)?mlm)/output_bias/(bias)$")


def release_names(model):
    """Maps names in the release's checkpoints to the variables of a model.

    A name is the path of layer names from the model down, with two exceptions in the release: the
    name of a task model is left out, and so is the encoder's before its
    `EncoderType.unscoped_parts`, which are ETC's absolute position tables.

    Args:
        model: a built Keras layer or model.
    Returns:
        dict of name (without ":0") to variable, in the order of creation.
    Raises:
        ValueError: if two variables have one name.

    >>> from etcmodel import checkpoints
    >>> model = etcmodel.from_pretrained("my_model")
    >>> list(checkpoints.release_names(model))[:2]
    ['etc_document_bert/token_emb_lookup/embedding_table',
    'etc_document_bert/segment_emb_lookup/embedding_table']
    """
    return _unique(_named(model))


def release_name(full_name):
    """Returns the release's name of a variable, from its name in TensorFlow.

    The two differ by the scope in which a model was built: inside a task, or without a scope for an
    encoder built alone.

    Args:
        full_name: str, without ":0".
    """
    known_types = encoders.registered_types()
    full_name = _OWN_SCOPE.sub(r"\1/\2", full_name)
    if match := _inside(known_types).fullmatch(full_name):
        return match.group(1)
    first = full_name.partition("/")[0]
    scopes = (known.scope for known in known_types if first in known.parts)
    return "/".join((*scopes, full_name))


def encoder_of(model):
    """Returns the `Encoder` that `model` is or contains.

    Raises:
        ValueError: if there is none.
    """
    encoder = _find_encoder(model)
    if encoder is None:
        raise ValueError(f"{model.name!r} holds no encoder.")
    return encoder


def encoder_variables(model):
    """Returns the encoder's part of `release_names(model)`; {} if there is none.

    Each variable occurs once: a head tied to the embeddings has another name for them.
    """
    encoder = _find_encoder(model)
    inside = set() if encoder is None else {id(variable) for variable in encoder.weights}
    found = {}
    for name, variable in _named(model):
        if id(variable) in inside:
            found.setdefault(id(variable), (name, variable))
    return _unique(found.values())


def is_in_encoder(name):
    """Whether a name in a release checkpoint belongs to the encoder, not to a task's head."""
    return bool(_inside(encoders.registered_types()).fullmatch(name))


@functools.cache
def _inside(known_types):
    """Pattern of an encoder's names; its group is the name without what is around it."""
    layers = [part for known in known_types for part in (*known.unscoped_parts, known.scope)]
    return re.compile(rf"(?:.*/)?((?:{'|'.join(map(re.escape, layers))})/.+)")


def _find_encoder(model):
    return next(filter(_is_encoder, model._flatten_layers()), None)


def _is_encoder(layer):
    return isinstance(layer, encoders.Encoder)


def _named(model):
    """Pairs of a name and a variable, in the order of creation."""
    return _pairs(model, f"{model.name}/" if _is_encoder(model) else "")


def _pairs(layer, prefix):
    for variable in layer._trainable_weights + layer._non_trainable_weights:
        yield prefix + variable.name.split(":")[0].split("/")[-1], variable
    for child in layer._flatten_layers(include_self=False, recursive=False):
        child_prefix = "" if child.name in _unscoped_parts(encoders.registered_types()) else prefix
        yield from _pairs(child, f"{child_prefix}{child.name}/")


def _unique(pairs):
    names = {}
    for name, variable in pairs:
        known = names.setdefault(name, variable)
        if known is not variable:
            raise ValueError(
                f"Two variables are called {name!r} in checkpoints: {known.name!r} and "
                f"{variable.name!r}. Layers beside each other, and weights of a layer, need "
                "different names: give them by `name`."
            )
    return names


@functools.cache
def _unscoped_parts(known_types):
    return frozenset(part for known in known_types for part in known.unscoped_parts)
