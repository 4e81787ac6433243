"""Large eager calls run as graph functions: for few shapes, and with the same results."""

import weakref

import numpy as np
import pytest
import tensorflow as tf

from etcmodel.layers import dense
from etcmodel.ops import activations, blockwise, compilation, masks, normalization
from etcmodel.ops.key_sets import KeySet
from tests import memory
from tests.ops import test_gradient_ways as ways


@pytest.fixture
def all_are_large(monkeypatch):
    monkeypatch.setattr(compilation, "_LEAST_EAGER_ELEMENTS", 1)
    monkeypatch.setattr(blockwise, "_LEAST_EAGER_PAIRS", 1)


def logged(decorator, log):
    """A decorated function of tensors that logs each time Python runs it."""

    @decorator
    def double(x):
        log.append(tf.executing_eagerly())
        return 2 * x

    return double


def elementwise(log):
    return logged(compilation.compiled_elementwise, log)


def traced(log):
    return logged(compilation.traced_once(is_large=lambda x: x.shape[0] > 2), log)


@pytest.mark.parametrize("make", [elementwise, traced])
def test_each_large_shape_is_traced_once(all_are_large, make):
    log = []
    double = make(log)
    for _ in range(3):
        for length in (3, 4):
            np.testing.assert_array_equal(double(tf.ones([length])), [2.0] * length)
    assert log == [False, False]


@pytest.mark.parametrize("make", [elementwise, traced])
def test_small_shapes_are_not_traced(make):
    log = []
    double = make(log)
    for _ in range(2):
        np.testing.assert_array_equal(double(tf.ones([2])), [2.0, 2.0])
    assert log == [True, True]


@pytest.mark.parametrize("make", [elementwise, traced])
def test_shapes_beyond_the_most_are_not_traced_and_the_others_stay(
    all_are_large, monkeypatch, make
):
    monkeypatch.setattr(compilation, "_MOST_EAGER_SHAPES", 1)
    log = []
    double = make(log)
    for length in (3, 4, 3, 4):
        np.testing.assert_array_equal(double(tf.ones([length])), [2.0] * length)
    assert log == [False, True, True]


@pytest.mark.parametrize("make", [elementwise, traced])
def test_functions_that_shall_run_eagerly_do(all_are_large, make):
    log = []
    double = make(log)
    tf.config.run_functions_eagerly(True)
    try:
        double(tf.ones([3]))
    finally:
        tf.config.run_functions_eagerly(False)
    with tf.distribute.OneDeviceStrategy("/cpu:0").scope():
        double(tf.ones([3]))
    assert log == [True, True]


def test_a_traced_function_has_the_gradients_of_tensors_and_variables_eagerly():
    @compilation.traced_once(is_large=lambda *_: True)
    def product(x, y):
        return x * y

    x, y = tf.Variable([2.0, 3.0]), tf.constant([5.0, 7.0])
    for _ in range(2):
        with tf.GradientTape() as tape:
            tape.watch(y)
            result = product(x, y)
        np.testing.assert_array_equal(tape.gradient(result, x), y)
        x.assign_add(y)
    np.testing.assert_array_equal(product(x, y), x * y)


@pytest.mark.slow
def test_attention_with_every_mask_and_label_and_dropout_has_the_same_results(request):
    case = ways.fixed_case(has_relations=True)
    expected = ways.run(*case)
    request.getfixturevalue("all_are_large")
    for values, wanted in zip(ways.run(*case), expected, strict=True):
        for x, y in zip(tf.nest.flatten(values), tf.nest.flatten(wanted), strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
def test_normalization_and_feed_forward_have_the_same_results(dtype, request):
    rng = np.random.default_rng(0)
    layer = dense.DenseLayers([12, 4], activations.gelu, dtype=dtype)
    kept = tf.constant(rng.normal(size=[2, 3, 4]).astype(np.float32))
    x = tf.cast(kept, layer.compute_dtype)
    layer.build(x.shape)
    tables = [tf.constant(rng.normal(size=4).astype(np.float32)) for _ in range(2)]

    def run(training):
        with tf.GradientTape() as tape:
            tape.watch([x, *tables])
            normal = normalization.layer_norm(x, *tables, 1e-6)
            result = layer(normal, training=training)
            loss = tf.reduce_sum(tf.cast(result, tf.float32) ** 2)
        return [result, *tape.gradient(loss, [x, *tables, *layer.trainable_variables])]

    expected = [run(training) for training in (False, True)]
    request.getfixturevalue("all_are_large")
    tolerance = 1e-5 if dtype == "float32" else 2e-2
    for training, wanted in zip((False, True), expected, strict=True):
        for actual, values in zip(run(training), wanted, strict=True):
            scale = float(tf.reduce_max(tf.abs(values)))
            error = tf.cast(actual, tf.float32) - tf.cast(values, tf.float32)
            assert float(tf.reduce_max(tf.abs(error))) <= tolerance * scale


class AllowedKeys:
    """A mask that is no dataclass: it is equal to itself alone, whatever keys it allows."""

    def __init__(self, keys):
        self.keys = keys

    def prepare(self, view):
        return masks.KeyMask(self.keys).prepare(view)


def attend_under(mask):
    x = tf.constant(np.random.default_rng(0).normal(size=[1, 5, 2, 4]).astype(np.float32))
    return blockwise.attend(x, [KeySet(x, x, masks=(mask,))])


def test_a_mask_that_has_changed_since_the_last_call_is_not_taken_for_the_same(all_are_large):
    mask = AllowedKeys(tf.constant([[1, 1, 0, 0, 0]]))
    attend_under(mask)
    mask.keys = tf.constant([[0, 0, 1, 1, 1]])
    np.testing.assert_allclose(
        attend_under(mask), attend_under(masks.KeyMask(mask.keys)), rtol=1e-5, atol=1e-6
    )


def test_objects_that_are_equal_to_themselves_alone_are_not_kept(all_are_large):
    mask = AllowedKeys(tf.constant([[1, 1, 0, 0, 0]]))
    attend_under(mask)
    is_there = weakref.ref(mask)
    del mask
    memory.collect_garbage()
    assert is_there() is None


def test_what_was_traced_before_memory_was_freed_has_gradients(all_are_large):
    x = tf.constant(np.random.default_rng(0).normal(size=[1, 7, 2, 4]).astype(np.float32))
    before = blockwise.attend(x, [KeySet(x, x)])
    memory.free()
    with tf.GradientTape() as tape:
        tape.watch(x)
        after = blockwise.attend(x, [KeySet(x, x)])
    np.testing.assert_allclose(after, before, rtol=1e-5, atol=1e-6)
    assert float(tf.reduce_max(tf.abs(tape.gradient(after, x)))) > 0


def test_what_may_have_other_than_first_gradients_is_not_traced():
    log, x = [], tf.constant([1.0, 2.0, 3.0])
    square = logged(compilation.traced_once(is_large=lambda x: True), log)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        result = square(x)
    np.testing.assert_array_equal(tape.gradient(result, x), [2.0] * 3)
    with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as accumulator:
        result = square(x)
    np.testing.assert_array_equal(accumulator.jvp(result), [2.0] * 3)
    with tf.GradientTape() as tape:
        tape.watch(x)
        square(x)
    assert log == [True, True, False]
