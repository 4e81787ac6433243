"""Runs the residual blocks of a stack's layers one after the other."""

import contextlib
from typing import NamedTuple

import tensorflow as tf

from etcmodel.layers import recompute_grad
from etcmodel.layers.wrappers import ResidualBlock

__all__ = [
    "Step",
    "Weights",
    "run_layers",
    "run_recomputed",
    "substituted",
    "weights_of",
    "weights_of_layers",
]


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


class Step(NamedTuple):
    """One residual block of a layer.

    Attributes:
        block: `ResidualBlock`.
        streams: tuple of int. Indices of the streams that are its inputs and outputs.
        options: str or None. The key in `run`'s `options` of its inner layer's arguments.

    >>> from etcmodel import layers
    >>> from etcmodel.layers import stack
    >>> stack.Step(layers.ResidualBlock(), streams=(0, 1)).streams
    (0, 1)
    """

    block: ResidualBlock
    streams: tuple = (0,)
    options: str | None = None


def weights_of_layers(layers):
    """`Weights` of layers, which are tuples of `Step`."""
    return weights_of([step.block for steps in layers for step in steps])


def run_layers(layers, hidden, options, training, weights=None):
    """Runs the steps of layers in order.

    Args:
        layers: list of tuples of `Step`.
        hidden: sequence of float [batch, len, hidden_size], one per stream.
        options: dict of a name to the arguments of the inner layers of the steps with this name.
        training: bool.
        weights: list of tensors in place of the variables of `weights_of_layers`, or None.
    Returns:
        list of tensors, shaped as `hidden`.
    """
    if weights is not None:
        with substituted(weights_of_layers(layers), weights):
            return run_layers(layers, hidden, options, training)
    hidden = list(hidden)
    for steps in layers:
        for block, streams, name in steps:
            arguments = options[name] if name else {}
            if len(streams) == 1:
                (stream,) = streams
                hidden[stream] = block(hidden[stream], training=training, **arguments)
                continue
            outputs = block([hidden[stream] for stream in streams], training=training, **arguments)
            for stream, output in zip(streams, outputs, strict=True):
                hidden[stream] = output
    return hidden


def run_recomputed(layers, hidden, options, training, weights=None):
    """Like `run_layers`, but the backward pass recomputes the activations in between.

    Gradients flow only to the arguments of a recomputed function, so float tensors among the
    options and the weights are passed as arguments.
    """
    flat, num_streams = tf.nest.flatten((options, weights)), len(hidden)
    places = [place for place, value in enumerate(flat) if _is_float_tensor(value)]

    @tf.autograph.experimental.do_not_convert
    def run(*tensors):
        filled = list(flat)
        for place, tensor in zip(places, tensors[num_streams:], strict=True):
            filled[place] = tensor
        given, weights_given = tf.nest.pack_sequence_as((options, weights), filled)
        return run_layers(layers, tensors[:num_streams], given, training, weights_given)

    return recompute_grad.recompute_grad(run)(*hidden, *(flat[place] for place in places))


def _is_float_tensor(value):
    is_tensor = tf.is_tensor(value) and not isinstance(value, tf.Variable)
    return is_tensor and value.dtype.is_floating
