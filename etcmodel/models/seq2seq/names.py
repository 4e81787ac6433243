"""Names of variables in Hugging Face's files."""

import types
from collections.abc import Callable, Mapping
from typing import NamedTuple

__all__ = ["Naming", "Weight", "kernel"]


class Weight(NamedTuple):
    """A variable, and how its values are stored.

    Attributes:
        variable: `tf.Variable`.
        is_transposed: bool. Whether the file has its transpose, as for dense layers.
    """

    variable: object
    is_transposed: bool = False


class Naming(NamedTuple):
    """A system's conventions for names in files, besides those of a model's weights.

    Attributes:
        copies: dict of the names of duplicates in older files to the name of the original. A file
            in which they differ is refused, unless the model has weights for both.
        aliases: dict of name to tuple of str: other names that files use for a weight.
        obsolete: tuple of str. Entries that no model uses.
        prefix: str. The prefix of names in files of models with a head, and in no others.
        optional: tuple of str. Weights that a file may lack; they keep their initial values.
        config_for: function of a folder's config and the `checkpoints.sources.Source` of its
            weights that returns the config of the model with these weights.
    """

    copies: Mapping[str, str] = types.MappingProxyType({})
    aliases: Mapping[str, tuple] = types.MappingProxyType({})
    obsolete: tuple = ()
    prefix: str = ""
    optional: tuple = ()
    config_for: Callable = lambda config, source: config


def kernel(layer):
    """The `Weight` of a dense layer's kernel."""
    return Weight(layer.kernel, is_transposed=True)
