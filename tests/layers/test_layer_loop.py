"""Stacks of layers as one loop: the same values and gradients as layer by layer."""

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from etcmodel.layers import stack as substitution
from etcmodel.ops import interception
from etcmodel.ops.dropout import new_seed, seed_scope
from tests.layers import looped
from tests.layers.looped import CASE, INPUTS, UNSHARED, compare, count_loops

pytestmark = pytest.mark.slow


@pytest.mark.slow_cases(1)
@pytest.mark.parametrize(
    "num_layers, period, options",
    [
        (2, 0, {**UNSHARED, "use_pre_activation_order": True}),
        (2, 1, {}),
        (4, 2, {}),
    ],
)
def test_a_loop_has_the_values_gradients_and_dropout_of_its_layers(num_layers, period, options):
    layers = looped.make(num_hidden_layers=num_layers, grad_checkpointing_period=period, **options)
    assert compare(layers) == 1


@pytest.mark.exhaustive
def test_a_loop_in_mixed_precision():
    layers = looped.make(num_hidden_layers=2, dtype="mixed_bfloat16")
    assert compare(layers, rtol=0.05, atol=0.05) == 1


def test_graphs_have_loops_under_xla_alone():
    layers = looped.make(num_hidden_layers=2)
    for mode, jit_compile, loops in ((None, None, 0), (None, True, 1), ("never", True, 0)):
        assert count_loops(looped.graph(layers, mode, jit_compile)) == loops


@pytest.mark.exhaustive
def test_what_xla_compiles_with_an_unknown_size_has_no_loop():
    layers = looped.make(num_hidden_layers=2)
    assert count_loops(looped.graph(layers, None, jit_compile=True, batch_size=None)) == 0
    assert count_loops(looped.graph(layers, "always", batch_size=None)) == 1


def test_more_layers_add_no_attention_to_the_graph():
    def kinds(num_layers):
        graph = looped.graph(looped.make(num_hidden_layers=num_layers), "always")
        functions = graph.as_graph_def().library.function
        return sorted(node.op for x in functions for node in x.node_def)

    assert kinds(2) == kinds(3)


@pytest.mark.exhaustive
def test_seeds_after_a_loop_are_those_after_its_layers():
    layers = looped.make(num_hidden_layers=3)

    @tf.function
    def next_seed(mode):
        with substitution.loop_scope(mode), seed_scope(tf.constant([3, 4])):
            CASE.call(layers, INPUTS, training=True)
            return new_seed()

    np.testing.assert_array_equal(next_seed("always"), next_seed("never"))


def test_layers_have_their_variables_again():
    layers = looped.make(num_hidden_layers=2)
    names = [variable.name for variable in layers.variables]
    looped.graph(layers, "always")
    kernel = layers.fused_att_layers[0].inner_layer.long_query_projection.linear.kernel
    assert isinstance(kernel, tf.Variable)
    assert [variable.name for variable in layers.variables] == names


def test_layers_have_their_variables_again_after_an_error():
    dense = tf_keras.layers.Dense(2)
    dense.build([None, 3])
    kernel, weights = dense.kernel, substitution.weights_of([dense])
    assert weights.variables == dense.weights
    with (
        pytest.raises(ZeroDivisionError),
        substitution.substituted(weights, [tf.ones([3, 2]), tf.ones([2])]),
    ):
        np.testing.assert_array_equal(dense(tf.ones([1, 3])), [[4.0, 4.0]])
        _ = 1 / 0
    assert dense.kernel is kernel


def other_dropout(layers):
    layers.fused_att_layers[1].dropout_layers[0].rate = 0.5


def activity_regularizer(layers):
    layers.fused_att_layers[0].activity_regularizer = tf_keras.regularizers.L2(0.1)


def unknown_config(layers):
    class Unknown(type(layers.fused_att_layers[1])):
        def get_config(self):
            raise NotImplementedError

    layers.fused_att_layers[1].__class__ = Unknown


@pytest.mark.slow_cases(1)
@pytest.mark.parametrize("change", [other_dropout, activity_regularizer, unknown_config])
def test_layers_that_are_not_alike_are_no_loop(change):
    layers = looped.make(num_hidden_layers=2)
    assert count_loops(looped.graph(layers, "always")) == 1
    change(layers)
    assert count_loops(looped.graph(layers, "always")) == 0


@pytest.mark.exhaustive
def test_a_period_that_leaves_a_rest_makes_no_loop():
    layers = looped.make(num_hidden_layers=3, grad_checkpointing_period=2)
    assert count_loops(looped.graph(layers, "always")) == 0


@pytest.mark.exhaustive
def test_layers_that_are_looked_at_are_called_each_by_itself():
    layers = looped.make(num_hidden_layers=3)
    calls = []

    def see(target, call, *args, **kwargs):
        calls.append(target)
        return call(*args, **kwargs)

    with interception.intercept(*layers.fused_att_layers, by=see):
        looped.graph(layers, "always")
    assert calls == layers.fused_att_layers


def test_a_mode_that_does_not_exist_is_refused():
    message = "`mode` must be one of .*'never'.* Received: 'off'"
    with pytest.raises(ValueError, match=message), substitution.loop_scope("off"):
        pass
