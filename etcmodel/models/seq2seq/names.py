"""Variables by their names in Hugging Face's files."""

import re
from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["Naming", "Weight", "kernel"]


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
