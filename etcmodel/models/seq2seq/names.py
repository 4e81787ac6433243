"""Variables by their names in Hugging Face's files."""

import re
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

__all__ = ["Naming", "Weight", "check_tables", "kernel"]


class Weight(NamedTuple):
    """A variable and how its values are written.

    Attributes:
        variable: `tf.Variable`.
        is_transposed: bool. Whether the file has its transpose, as of dense layers.
    """

    variable: object
    is_transposed: bool = False


class Naming(NamedTuple):
    """What is known of the names in files, besides those that a model's weights have.

    Attributes:
        aliases: names by which files have a weight that lacks its own: by name, a tuple of str.
        ignored: pattern of entries that no model uses, or that repeat others.
        prefix: str. What names begin with in files of models with a head, and in no others.
        optional: tuple of str. Weights that a file may lack: they keep their initial values.
    """

    aliases: Mapping[str, tuple]
    ignored: re.Pattern
    prefix: str = ""
    optional: tuple = ()


def kernel(layer):
    """The `Weight` of a dense layer's kernel."""
    return Weight(layer.kernel, is_transposed=True)


def check_tables(source, names, prefix):
    """Checks that a file has one table of token embeddings, under whichever names.

    Args:
        source: `checkpoints.sources.Source`.
        names: the names that it may have, in files of models with a head.
        prefix: str. `Naming.prefix`.
    Raises:
        ValueError: if there are several, which differ.
    """
    names = [*names, *(name.removeprefix(prefix) for name in names)]
    found = [name for name in dict.fromkeys(names) if name in source.shapes]
    for name in found[1:]:
        if not np.array_equal(source.read(found[0]), source.read(name)):
            raise ValueError(
                f"{source.path!r}: {name} is not {found[0]}, but a model of this type has one "
                "table of token embeddings for encoder, decoder and logits."
            )
