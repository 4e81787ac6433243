"""Calls layers with tensors in place of their variables, like `torch.func.functional_call`."""

import contextlib
from typing import NamedTuple

import tensorflow as tf

__all__ = ["Weights", "substituted", "weights_of"]


class Weights(NamedTuple):
    """The variables that modules hold as attributes.

    Attributes:
        variables: list of `tf.Variable`, each once.
        places: list of (module, name of the attribute, number of the variable).
    """

    variables: list
    places: list


def weights_of(modules):
    """Returns the `Weights` of modules (layers) and their submodules, each in the same order."""
    modules = _unique(part for module in modules for part in (module, *module.submodules))
    held = [
        (module, name, value)
        for module in modules
        for name, value in vars(module).items()
        if isinstance(value, tf.Variable)
    ]
    variables = _unique(value for *_, value in held)
    numbers = {id(variable): number for number, variable in enumerate(variables)}
    return Weights(variables, [(module, name, numbers[id(x)]) for module, name, x in held])


@contextlib.contextmanager
def substituted(weights, tensors):
    """Context manager in which modules have tensors in place of their variables.

    The modules themselves change, for every thread: no other code may call them meanwhile.

    Args:
        weights: `Weights`.
        tensors: sequence of tensors, one per variable.
    """
    # Bypasses `__setattr__`, by which Keras tracks what a layer consists of.
    try:
        for module, name, number in weights.places:
            vars(module)[name] = tensors[number]
        yield
    finally:
        for module, name, number in weights.places:
            vars(module)[name] = weights.variables[number]


def _unique(values):
    """The values in order, each object once."""
    return list({id(value): value for value in values}.values())
