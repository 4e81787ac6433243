"""Gradients of our own live as long as their graph, and no longer."""

import weakref

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.framework import ops

from etcmodel.layers import recompute_grad, stack
from etcmodel.ops import activations, blockwise, normalization
from etcmodel.ops.dense import dense_of_activation, dense_of_gated
from etcmodel.ops.gradients import custom_gradient, free_with_graph
from etcmodel.ops.key_sets import KeySet
from tests import memory

X = np.random.default_rng(0).normal(size=[1, 4, 2, 8]).astype(np.float32)


@custom_gradient
def scaled(x):
    """Its gradient is told apart from TensorFlow's own by a factor."""
    return 2 * x, lambda gradient: 3 * gradient


def loop(x):
    def body(number, total):
        taken, _ = stack._take(x, number)
        return [number + 1, total + taken * taken]

    return tf.while_loop(lambda n, _: n < 1, body, [0, tf.zeros_like(x[0])], maximum_iterations=1)[
        1
    ]


def recomputed(x):
    inner = recompute_grad.recompute_grad(lambda y: activations.gelu(y) * y)
    return recompute_grad.recompute_grad(lambda y: inner(tf.sin(y)))(x)


FUNCTIONS = {
    "attend": lambda x: blockwise.attend(x, [KeySet(tf.sin(x), x)]),
    "dense": lambda x: dense_of_activation(
        activations.gelu, x[0, :, 0], tf.transpose(x[0, :, 1]), x[0, 0, 0, :4]
    ),
    "gated dense": lambda x: dense_of_gated(activations.gelu, x[0, :, 0], x[0, :, 1]),
    "gelu": activations.gelu,
    "gelu_exact": activations.gelu_exact,
    "in a branch": lambda x: tf.cond(x[0, 0, 0, 0] > 9, lambda: x, lambda: scaled(x)),
    "layer_norm": lambda x: normalization.layer_norm(x, x[0, 0, 0], x[0, 0, 1], 1e-6),
    "loop": loop,
    "recomputed": recomputed,
    "rms_norm": lambda x: normalization.rms_norm(x, x[0, 0, 0], 1e-6),
    "scaled": scaled,
    "swish": activations.swish,
}


def by_tape(function, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        target = tf.reduce_sum(tf.sin(function(x)))
    return tape.gradient(target, x)


def by_graph(function, x):
    return tf.gradients(tf.reduce_sum(tf.sin(function(x))), x)[0]


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("gradient", [by_tape, by_graph], ids=["tape", "graph"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_graph_is_freed_with_its_gradients(name, gradient):
    graphs, expected = [], by_tape(FUNCTIONS[name], tf.constant(X))
    memory.collect_garbage()
    before = set(ops.gradient_registry.list())

    @tf.function(autograph=False)
    def run(x):
        graphs.append(weakref.ref(x.graph))
        return gradient(FUNCTIONS[name], x)

    found = run(tf.constant(X))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    del run
    for _ in range(
        2
    ):  # The graphs of the operations that are traced once go after that around them.
        memory.collect_garbage()
    assert [graph() for graph in graphs] == [None]
    assert set(ops.gradient_registry.list()) <= before


def test_gradients_of_a_called_function_after_a_collection():
    """The inner graph is the callee's: its gradient is looked up when the caller is traced."""
    inner = tf.function(scaled, autograph=False).get_concrete_function(tf.TensorSpec([2]))
    memory.collect_garbage()
    outer = tf.function(lambda x: by_tape(inner, x), autograph=False)
    x = tf.constant([0.5, 1.0])
    np.testing.assert_allclose(outer(x), 3 * np.cos(2 * x))


def test_of_tensorflows_own_functions():
    graph = tf.Graph()
    with graph.as_default():
        x = tf.constant([0.5])
        y = free_with_graph(tf.nn.silu(x))
        name = y.op.get_attr("_gradient_op_type").decode()
        assert tf.gradients(y, x)[0] is not None
        assert name in ops.gradient_registry.list()
    del graph, x, y
    memory.collect_garbage()
    assert name not in ops.gradient_registry.list()
