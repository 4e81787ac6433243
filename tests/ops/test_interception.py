"""Calls that code outside can see and change."""

import threading

import numpy as np
import pytest
import tensorflow as tf

from etcmodel.layers import ProjectAttentionHeads
from etcmodel.ops import blockwise
from etcmodel.ops.interception import intercept, interceptable
from etcmodel.ops.key_sets import KeySet


@interceptable
def double(x):
    """Twice."""
    return 2 * x


def add_one(target, call, *args, **kwargs):
    return call(*args, **kwargs) + 1


def test_calls_inside_go_through_the_interceptor_and_calls_outside_do_not():
    with intercept(double, by=add_one):
        assert double(3) == double(x=3) == 7
    assert double(3) == 6
    assert (double.__name__, double.__doc__) == ("double", "Twice.")


def test_the_inner_of_two_wins_and_the_outer_comes_back():
    with intercept(double, by=add_one):
        with intercept(double, by=lambda target, call, x: call(x) + 10):
            assert double(3) == 16
        assert double(3) == 7


def test_calls_of_the_target_by_its_interceptor_are_plain():
    with intercept(double, by=lambda target, call, x: target(call(x))):
        assert double(3) == 12
        assert double(3) == 12


def test_after_an_error_all_is_as_before():
    def fail(*unused):
        raise RuntimeError

    with intercept(double, by=add_one):
        with pytest.raises(RuntimeError), intercept(double, by=fail):
            double(3)
        assert double(3) == 7


def test_other_threads_see_nothing_of_it():
    results = []
    with intercept(double, by=add_one):
        thread = threading.Thread(target=lambda: results.append(double(3)))
        thread.start()
        thread.join()
    assert results == [6]


def test_layers_and_the_attention_core_can_be_intercepted():
    layer, other = ProjectAttentionHeads(1, 2), ProjectAttentionHeads(1, 2)
    x = tf.ones([1, 2])
    before, of_other = layer(x), other(x)
    with intercept(layer, blockwise.attend, by=add_one):
        np.testing.assert_allclose(layer(x), before + 1)
        np.testing.assert_array_equal(other(x), of_other)
        zeros = tf.zeros([1, 3, 1, 2])
        np.testing.assert_array_equal(blockwise.attend(zeros, [KeySet(zeros, zeros)]), zeros + 1)


def test_a_graph_has_no_operation_more_where_something_else_is_intercepted():
    layer = ProjectAttentionHeads(1, 2)
    layer(tf.ones([1, 2]))

    def operations():
        graph = tf.function(lambda x: layer(x)).get_concrete_function(tf.ones([1, 2])).graph
        return [operation.type for operation in graph.get_operations()]

    plain = operations()
    with intercept(double, by=add_one):
        assert operations() == plain
