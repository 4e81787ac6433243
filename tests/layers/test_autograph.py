"""AutoGraph: it converts the calls of users' layers, and leaves those that can do without."""

import inspect

import pytest
import tensorflow as tf

from etcmodel.autograph import without_autograph
from etcmodel.layers import base
from etcmodel.models import modeling


class AbsoluteSum(base.Layer):
    """Has an `if` on a tensor, which fails in a graph unless AutoGraph converts it."""

    def call(self, inputs):
        total = tf.reduce_sum(inputs)
        if total < 0:
            total = -total
        return total


class Unconverted(AbsoluteSum):
    @without_autograph
    def call(self, inputs):
        return super().call(inputs)


class Halved(base.Layer):
    @without_autograph
    def call(self, inputs):
        return inputs / 2


class AbsoluteHalf(Halved):
    """Has another call than the layer that needs no AutoGraph, with an `if` on a tensor."""

    def call(self, inputs):
        half = super().call(tf.reduce_sum(inputs))
        if half < 0:
            half = -half
        return half


@pytest.mark.parametrize("wrap", [lambda layer: layer, lambda layer: lambda x: layer(x)])
def test_the_call_of_a_users_layer_is_converted(wrap):
    function = tf.function(wrap(AbsoluteSum()))
    assert [float(function(tf.constant([x, -1.0]))) for x in (-2.0, 5.0)] == [3.0, 4.0]


def test_so_is_another_call_of_a_subclass():
    function = tf.function(AbsoluteHalf())
    assert [float(function(tf.constant([x, -1.0]))) for x in (-2.0, 5.0)] == [1.5, 2.0]


def test_a_call_without_autograph_is_not_converted_nor_what_it_calls():
    with pytest.raises(tf.errors.OperatorNotAllowedInGraphError):
        tf.function(Unconverted())(tf.constant([1.0]))


def test_keras_finds_the_arguments_of_a_call_without_autograph():
    names = inspect.getfullargspec(modeling.EtcModel.call).args
    assert names[:3] == ["self", "token_ids", "global_token_ids"]
    assert names[-3:] == ["training", "att_implementation", "structure"]
