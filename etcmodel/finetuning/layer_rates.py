"""Layer-wise learning rate decay, and freezing of an encoder's lowest layers."""

import re

from etcmodel.checkpoints import names as names_lib
from etcmodel.models import systems

__all__ = ["depths", "learning_rate_shares", "trained"]

_LAYER = re.compile(r"(?:^|/)(\w+)/\w+_layer_(\d+)/")


def depths(model):
    """The depth of each of the encoder's variables.

    Args:
        model: built model that contains an `Encoder` whose system `has_layer_rates`, such as ETC,
            Longformer and GMAT. Other systems have a decoder, whose layers have no place in the
            encoder's order.
    Returns:
        dict from id to int: 0 for embeddings, i + 1 for layer i, from 0. A pooler, which is above
        the layers like a head, is left out.
    Raises:
        ValueError: if the encoder is of another type.
    """
    encoder = names_lib.encoder_of(model)
    kind = encoder.config.model_type
    system = systems.find(kind)
    if system is None or not system.has_layer_rates:
        known = ", ".join(x.model_type for x in systems.having("has_layer_rates"))
        raise ValueError(
            f"--layer_decay and --num_frozen_layers are for encoders of type {known}. The model is "
            f"of type {kind!r}."
        )
    first, num_before = {}, 0  # A compressing GMAT restarts the numbers in each stack.
    for stack in getattr(encoder, "stacks", ()):
        first[stack.name] = num_before
        num_before += stack.num_hidden_layers
    found = {}
    for name, variable in names_lib.encoder_variables(model).items():
        layer = _LAYER.search(name)
        if layer:
            found[id(variable)] = first.get(layer[1], 0) + int(layer[2]) + 1
        elif "emb" in name:  # Such as token_emb_lookup, embedding_norm.
            found[id(variable)] = 0
    return found


def trained(model, variables, num_frozen_layers):
    """The variables to train: all but the frozen layers and, if there are any, the embeddings.

    Args:
        model: as of `depths`.
        variables: list of its variables.
        num_frozen_layers: int.
    Raises:
        ValueError: if the encoder has fewer layers.
    """
    if not num_frozen_layers:
        return variables
    depth_of = depths(model)
    highest = max(depth_of.values())
    if num_frozen_layers > highest:
        raise ValueError(
            f"--num_frozen_layers={num_frozen_layers}: the model has {highest} layers. Give at "
            "most as many."
        )
    return [x for x in variables if depth_of.get(id(x), highest + 1) > num_frozen_layers]


def learning_rate_shares(model, layer_decay):
    """The factors for the learning rates of the encoder's variables.

    Source: Howard and Ruder 2018 (arXiv:1801.06146), section 3.2, "discriminative fine-tuning".

    Args:
        model: as of `depths`.
        layer_decay: float. The factor of a layer ÷ that of the layer above it.
    Returns:
        list of (variable, float), without variables above the layers.
    """
    if layer_decay == 1.0:
        return []
    depth_of = depths(model)
    top = max(depth_of.values()) + 1
    variables = [x for x in model.trainable_variables if id(x) in depth_of]
    return [(x, layer_decay ** (top - depth_of[id(x)])) for x in variables]
