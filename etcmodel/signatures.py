"""Signatures for `help` and `inspect.signature` of classes with arguments declared elsewhere.

Also whether two classes are one that was defined anew.
"""

import inspect


class ClassSignature:
    """The `__signature__` of a class and its subclasses; none for callable instances.

    Args:
        parameters: function of a class that returns the `inspect.Parameter`s of its constructor, or
            None for those of its `__init__`.
    """

    def __init__(self, parameters):
        self._parameters = parameters

    def __get__(self, instance, owner):
        found = self._parameters(owner) if instance is None else None
        if found is None:
            raise AttributeError("__signature__")
        return inspect.Signature(found)


def is_defined_anew(one, other):
    """Whether two classes are definitions of the same, as by running a notebook cell again."""
    is_same_name = (one.__module__, one.__qualname__) == (other.__module__, other.__qualname__)
    return is_same_name and one is not other


def settings(vocab, config_class):
    """Parameters: a vocabulary, and by keyword the fields of a dataclass; None without a class."""
    if config_class is None:
        return None
    first = inspect.Parameter(vocab, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [first, *inspect.signature(config_class).parameters.values()]
