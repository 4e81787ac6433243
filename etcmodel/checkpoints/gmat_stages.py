"""Loads a GMAT without compression into one with it (Gupta and Berant 2020, section 2.2)."""

import re

from etcmodel.checkpoints import sources
from etcmodel.models.gmat import GmatModel

__all__ = ["for_compression"]

_LAYER = re.compile(r"gmat/layers/(attention|feed_forward)_layer_(\d+)/(.+)")
_HEAD = re.compile(r"gmat_\w+/((?!gmat/).+)")  # TensorFlow's names of what is outside the encoder.


def for_compression(source, model):
    """Renames the layers of a GMAT without compression in their order, for a model with it.

    Args:
        source: `Source`.
        model: a built model.
    Returns:
        `Source`, with the names of the model's layers; `source` itself if the model has no
        compression, or the checkpoint has it already.
    """
    found = (x for x in model._flatten_layers() if isinstance(x, GmatModel))
    encoder = next(found, None)
    if encoder is None or encoder.compressor is None:
        return source
    if not any(map(_LAYER.fullmatch, source.shapes)):
        return source
    names = {_renamed(name, encoder, source.format): name for name in source.shapes}
    return source.renamed(names)


def _renamed(name, encoder, source_format):
    if match := _LAYER.fullmatch(name):
        part, index, rest = match[1], int(match[2]), match[3]
        for layers in encoder.stacks:
            if index < layers.num_hidden_layers:
                return f"gmat/{layers.name}/{part}_layer_{index}/{rest}"
            index -= layers.num_hidden_layers
    elif source_format == sources.OBJECTS and (match := _HEAD.fullmatch(name)):
        return match[1]
    return name
