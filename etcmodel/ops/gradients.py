"""Gradients of our own, which live as long as the graph that they belong to."""

import functools
import weakref

import tensorflow as tf
from tensorflow.python.framework import ops

__all__ = ["custom_gradient", "free_with_graph"]


def custom_gradient(function):
    """Like `tf.custom_gradient`, for functions of tensors, without its leak.

    TensorFlow keeps the gradient of each traced call for ever, and through it the graph and all
    that the graph holds: a process that builds models one after another would never get their
    memory back.

    Args:
        function: function of tensors to (result, gradient function): see `tf.custom_gradient`.
    Returns:
        function of the same tensors to the result.
    """
    differentiable = tf.custom_gradient(function)

    @functools.wraps(function)
    def call(*tensors):
        return free_with_graph(differentiable(*tensors))

    return call


@tf.autograph.experimental.do_not_convert  # It cannot be, and would be told so.
def free_with_graph(result):
    """Lets the gradient of a result of `tf.custom_gradient` go when its graph goes.

    The registry then has the gradient weakly, and the graph, which has it in fact, takes the entry
    along.

    Args:
        result: what a function made by `tf.custom_gradient` returned: tensors in any structure.
    Returns:
        `result`.
    """
    first = tf.nest.flatten(result)[0]
    if not tf.is_symbolic_tensor(first):
        return result
    name, graph = first.op.get_attr("_gradient_op_type").decode(), first.graph
    entry = ops.gradient_registry._registry[name]
    # A graph is collected with what it refers to, also where that refers to the graph.
    graph.gradients_of_etcmodel = [*getattr(graph, "gradients_of_etcmodel", ()), entry["type"]]
    entry["type"] = _weak(entry["type"])
    weakref.finalize(graph, ops.gradient_registry._registry.pop, name, None).atexit = False
    return result


def _weak(gradient):
    reference = weakref.ref(gradient)

    @tf.autograph.experimental.do_not_convert  # It would try, and warn that it cannot.
    def call(*arguments):
        if (found := reference()) is None:
            raise LookupError("The graph of this gradient is gone.")
        return found(*arguments)

    return call
