"""Variables by their names in Hugging Face's files."""

import types
from collections.abc import Callable, Mapping
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
        copies: what older files hold once more: by name, the name of that of which it is a copy. A
            file in which they differ is refused, unless the model has weights for both.
        aliases: names by which files have a weight that lacks its own: by name, a tuple of str.
        obsolete: tuple of str. Entries that no model uses.
        prefix: str. What names begin with in files of models with a head, and in no others.
        optional: tuple of str. Weights that a file may lack: they keep their initial values.
        config_for: function of a folder's config and the `checkpoints.sources.Source` of its
            weights to the config of the model that has them.
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
