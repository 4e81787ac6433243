"""Custom gradients that live as long as the graph they belong to."""

import functools
import weakref

import tensorflow as tf
from tensorflow.python.framework import ops


def custom_gradient(function):
    """Like `tf.custom_gradient`, for functions of tensors, without its memory leak.

    TensorFlow keeps the gradient of each traced call forever, and through it the graph and
    everything that the graph references: a process that builds models one after another would never
    free their memory.

    Args:
        function: function of tensors that returns (result, gradient function): see
            `tf.custom_gradient`.
    Returns:
        function of the same tensors that returns the result.
    """
    differentiable = tf.custom_gradient(function)

    @functools.wraps(function)
    def call(*tensors):
        return free_with_graph(differentiable(*tensors))

    return call


@tf.autograph.experimental.do_not_convert  # It cannot be converted, and would log a warning.
def free_with_graph(result):
    """Frees the gradient of a `tf.custom_gradient` result together with its graph.

    The registry then references the gradient only weakly; the graph, which owns it, removes the
    entry with itself.

    Args:
        result: the result of a function made by `tf.custom_gradient`: tensors in any structure.
    Returns:
        `result`.
    """
    first = tf.nest.flatten(result)[0]
    if not tf.is_symbolic_tensor(first):
        return result
    name, graph = first.op.get_attr("_gradient_op_type").decode(), first.graph
    entry = ops.gradient_registry._registry[name]
    # A graph is collected with what it references, even if that references the graph.
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
