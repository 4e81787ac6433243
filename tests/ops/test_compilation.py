"""What graphs are made of the ops: traced once for all layers."""

import dataclasses
import weakref

import numpy as np
import pytest
import tensorflow as tf

from etcmodel.ops import attention, compilation
from etcmodel.ops.structure import GlobalLocalStructure
from tests import memory


@dataclasses.dataclass(frozen=True)
class Scaled:
    tensor: object
    factor: float = 2.0


def scaled(log=None):
    @compilation.traced_once
    def run(x, options, *more):
        if log is not None:
            log.append(options)
        for option in options:
            x = option.factor * x * option.tensor
        return x

    return run


def numbers(*shape, seed=0):
    return tf.constant(np.random.default_rng(seed).normal(size=shape).astype(np.float32))


def test_a_graph_traces_calls_that_differ_in_tensors_alone_once():
    log = []
    run = scaled(log)

    @tf.function
    def thrice(x, y):
        return [
            run(x, [Scaled(y)]),
            run(y, [Scaled(x)]),
            run(x, [Scaled(x)]),  # One tensor in two places.
            run(y, [Scaled(y)]),
        ]

    results = thrice(tf.constant(3.0), tf.constant(5.0))
    assert [float(x) for x in results] == [30.0, 30.0, 18.0, 50.0]
    assert len(log) == 2


@pytest.mark.parametrize(
    "other",
    [
        lambda x: (x, [Scaled(x, factor=3.0)]),
        lambda x: (x, [Scaled(x, factor=2)]),
        lambda x: (x, [Scaled(x, factor=x)]),
        lambda x: (x, (Scaled(x),)),
        lambda x: (x, [Scaled(x), Scaled(x)]),
        lambda x: (tf.stack([x, x]), [Scaled(x)]),
        lambda x: (tf.cast(x, tf.float64), [Scaled(tf.cast(x, tf.float64))]),
    ],
    ids=["value", "kind of number", "tensor", "kind of sequence", "length", "shape", "type"],
)
def test_calls_that_differ_otherwise_are_traced_on_their_own(other):
    log = []
    run = scaled(log)

    @tf.function
    def both(x):
        return run(x, [Scaled(x)]), run(*other(x))

    x = tf.constant(2.0)
    first, second = both(x)
    assert float(first) == 8.0
    np.testing.assert_array_equal(second, scaled()(*other(x)))
    assert len(log) == 2


def test_a_number_is_not_taken_for_the_number_of_a_tensor():
    run = scaled()

    @tf.function
    def both(x):
        return run(x, [Scaled(x, factor=0)]), run(x, [Scaled(x, factor=x)])

    assert [float(x) for x in both(tf.constant(2.0))] == [0.0, 8.0]


def test_values_that_are_not_hashable_are_passed_on():
    log = []
    run = scaled(log)

    @tf.function
    def twice(x):
        return run(x, [Scaled(x)], {}) + run(x, [Scaled(x)], np.zeros(2))

    assert float(twice(tf.constant(2.0))) == 16.0
    assert len(log) == 2


def test_gradients_reach_tensors_and_variables_wherever_they_are():
    run, variable = scaled(), tf.Variable(5.0)

    @tf.function
    def gradients(x, y):
        with tf.GradientTape() as tape:
            tape.watch([x, y])
            result = run(x, [Scaled(variable)]) + run(y, [Scaled(variable, 3.0), Scaled(x, 1.0)])
        return tape.gradient(result, [x, y, variable])

    x, y, v = 2.0, 7.0, 5.0
    actual = gradients(tf.constant(x), tf.constant(y))
    expected = [2 * v + 3 * y * v, 3 * v * x, 2 * x + 3 * y * x]
    np.testing.assert_allclose(actual, expected, rtol=1e-6)


def test_a_graph_takes_what_it_traced_along_when_it_goes():
    run, graphs = scaled(), []

    def traced():
        function = tf.function(lambda x: run(x, [Scaled(x)]) + run(x, [Scaled(x)]))
        concrete = function.get_concrete_function(tf.TensorSpec([]))
        graphs.append(weakref.ref(concrete.graph))

    traced()
    memory.collect_garbage()
    assert graphs[0]() is None


def stack(num_layers, trains=True):
    """A graph of so many global-local attentions, each with its own tensors; a function."""
    ids = tf.constant([[0] * 20 + [1] * 20])
    structure = GlobalLocalStructure(
        ids, ids, tf.constant([[0, 0, 1]]), links=(tf.zeros_like(ids),), max_distance=4
    )

    def loss(x, tables):
        keys = numbers(1, 3, 2, 4)
        for table in tables:
            labels = attention.RelativeLabels(table, table[..., 0])
            x = attention.long_attend(
                x, (x, x), (keys, keys), structure, local_radius=3, labels=labels
            )
        return tf.reduce_sum(x**2)

    def run(x, tables):
        if not trains:
            return loss(x, tables)
        with tf.GradientTape() as tape:
            tape.watch([x, *tables])
            value = loss(x, tables)
        return tape.gradient(value, [x, *tables])

    inputs = numbers(1, 40, 2, 4), [numbers(12, 2, 4, seed=i) for i in range(num_layers)]
    return run, inputs


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("trains", [False, True])
def test_more_layers_of_attention_add_calls_not_operations(trains):
    def functions(num_layers):
        run, inputs = stack(num_layers, trains)
        graph = (
            tf.function(run, autograph=False).get_concrete_function(*inputs).graph.as_graph_def()
        )
        return sum(len(x.node_def) for x in graph.library.function), len(graph.node)

    (library_of_2, nodes_of_2), (library_of_4, nodes_of_4) = functions(2), functions(4)
    assert library_of_2 == library_of_4
    assert nodes_of_4 - nodes_of_2 < 60


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("jit_compile", [False, True])
def test_layers_traced_once_have_the_gradients_of_eager_layers(jit_compile):
    run, inputs = stack(2)
    graph = tf.function(run, jit_compile=jit_compile, autograph=False)
    actual = tf.nest.flatten(graph(*inputs))
    for x, expected in zip(actual, tf.nest.flatten(run(*inputs)), strict=True):
        np.testing.assert_allclose(x, expected, rtol=1e-4, atol=1e-5)
