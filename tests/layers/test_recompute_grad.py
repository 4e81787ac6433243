"""Recomputed functions, the context they run in, and dropouts that depend on it."""

import collections
import threading

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from etcmodel import layers
from etcmodel.layers import recompute_grad as recompute
from etcmodel.layers import recomputing_dropout
from etcmodel.layers.stateless_dropout import stateless_dropout

X = np.random.default_rng(0).normal(size=[4, 8]).astype(np.float32)
ONES = np.ones([40, 30], np.float32)
each_mode = pytest.mark.parametrize(
    "jit_compile", [None, False, True], ids=["eager", "graph", "xla"]
)


def in_mode(function, jit_compile):
    return function if jit_compile is None else tf.function(function, jit_compile=jit_compile)


def gradients_of(function, variables):
    """The value, and the gradients of the input and of variables."""
    x = tf.constant(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        value = function(x)
        target = tf.reduce_sum(tf.sin(value))
    gradients = tape.gradient(target, [x, *variables])
    return [value, *map(tf.convert_to_tensor, gradients)]


def assert_all_close(actual, expected):
    for one, other in zip(actual, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


@each_mode
def test_value_and_gradients_are_those_of_the_function(jit_compile):
    kernels = [
        tf.Variable(np.random.default_rng(i).normal(size=[8, 8]) / 3, dtype=tf.float32)
        for i in range(3)
    ]

    def layer(kernel):
        return lambda x: tf.tanh(tf.matmul(x, kernel))

    def chain(wrap):
        def run(x):
            for kernel in kernels:
                x = wrap(layer(kernel))(x)
            return x

        return wrap(run)  # A recomputed function of recomputed ones.

    actual = in_mode(lambda: gradients_of(chain(recompute.recompute_grad), kernels), jit_compile)
    assert_all_close(actual(), gradients_of(chain(lambda f: f), kernels))


def test_a_function_of_several_tensors_keywords_and_a_tuple():
    def f(x, y, power=1):
        return x * y, x**power

    x, y = tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0])
    with tf.GradientTape() as tape:
        tape.watch([x, y])
        product, raised = recompute.recompute_grad(f)(x, y, power=3)
        target = tf.reduce_sum(product + raised)
    np.testing.assert_array_equal(product, [3.0, 8.0])
    x_gradient, y_gradient = tape.gradient(target, [x, y])
    np.testing.assert_allclose(x_gradient, [3.0 + 3.0, 4.0 + 12.0])
    np.testing.assert_allclose(y_gradient, [1.0, 2.0])


def test_the_context_tells_first_computation_from_second_and_keeps_the_seed():
    seen = []

    def record(x):
        context = recompute.get_recompute_context()
        seen.append((context.is_recomputing, int(context.seed), len(context.children)))
        return tf.square(x)

    def outer(x):
        y = recompute.recompute_grad(record)(x)
        return record(y)

    assert recompute.get_recompute_context() is None
    gradients_of(recompute.recompute_grad(outer, seed=tf.constant(7)), [])
    assert recompute.get_recompute_context() is None
    inner_seed = seen[0][1]
    forward, again = seen[:2], seen[2:4]
    assert forward == [(False, inner_seed, 0), (False, 7, 1)]
    assert again == [(True, inner_seed, 0), (True, 7, 1)]
    # The inner function is computed once more, for its own gradient.
    assert seen[4:] == [(True, inner_seed, 0)]


def test_each_call_has_a_seed_of_its_own_unless_one_is_given():
    seeds = []

    def record(x):
        seeds.append(int(recompute.get_recompute_context().seed))
        return x

    for seed in (None, None, 5, 5):
        recompute.recompute_grad(record, seed)(tf.constant(X))
    assert seeds[0] != seeds[1] and seeds[2:] == [5, 5]


def test_contexts_are_the_thread_s_own():
    found = []
    with recompute.RecomputeContext(False, tf.constant(1), collections.deque()) as context:
        thread = threading.Thread(target=lambda: found.append(recompute.get_recompute_context()))
        thread.start()
        thread.join()
        assert recompute.get_recompute_context() is context
    assert found == [None]


@each_mode
def test_a_dropout_draws_its_mask_again(jit_compile):
    """y = mask * x, so that the gradient of its sum is the mask, and y that of squares / 2x.

    XLA's seeds cannot be set: of so many elements the share that is kept is 20 deviations from its
    bounds.
    """
    dropouts = [layers.RecomputingDropout(0.5, force_recomputation=True) for _ in range(2)]
    seen = []

    def f(x):
        for dropout in dropouts:
            x = dropout(x, training=True)
        return x

    def run():
        x = tf.ones([200, 150])
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = recompute.recompute_grad(f)(x)
        return y, tape.gradient(y, x)

    run = in_mode(run, jit_compile)
    for _ in range(2):
        y, gradient = run()
        np.testing.assert_array_equal(y, gradient)
        assert set(np.unique(y)) == {0.0, 4.0}
        assert 0.2 < np.mean(y.numpy() > 0) < 0.3  # Two independent masks.
        seen.append(y.numpy())
    assert not np.array_equal(*seen)  # Another call, another mask.


def test_attention_inside_drops_the_same_probabilities_again():
    attention = layers.RelativeAttention(8, 2, att_dropout_prob=0.5)
    x = tf.constant(X[np.newaxis])
    attention(x)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = recompute.recompute_grad(lambda x: attention(x, training=True), seed=3)(x)
    actual = tape.gradient(y, [x, attention.output_projection.kernel])
    context = recompute.RecomputeContext(False, tf.constant(3), collections.deque())
    with context, tf.GradientTape() as tape:
        tape.watch(x)
        y = attention(x, training=True)
    expected = tape.gradient(y, [x, attention.output_projection.kernel])
    assert_all_close(actual, expected)


def test_in_equal_contexts_a_dropout_does_the_same():
    layer = layers.RecomputingDropout(0.5)
    context = recompute.RecomputeContext(False, tf.constant(2), collections.deque())
    with context:
        first = layer(ONES, training=True)
    with context._replace(is_recomputing=True):
        second = layer(ONES, training=True)
    with context._replace(seed=tf.constant(3)):
        other = layer(ONES, training=True)
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, other)


def test_forced_recomputation_is_refused_outside_of_it_when_something_is_dropped():
    layer = layers.RecomputingDropout(0.5, force_recomputation=True, name="mine")
    np.testing.assert_array_equal(layer(ONES), ONES)
    with pytest.raises(ValueError, match="'mine'.*a RecomputeContext is required.*recompute_grad"):
        layer(ONES, training=True)


def test_the_noise_shape_shares_a_mask_along_axes():
    layer = layers.RecomputingDropout(0.5, noise_shape=[None, 1], seed=3)

    @tf.function(input_signature=[tf.TensorSpec([None, None])])
    def run(x):
        return layer(x, training=True)

    y = run(ONES).numpy()
    assert {tuple(row) for row in y} == {(0.0,) * 30, (2.0,) * 30}
    twin = layers.RecomputingDropout.from_config(layer.get_config())
    assert twin.get_config() == layer.get_config()
    assert layer.compute_output_shape([4, 5]) == [4, 5]


def test_training_may_be_a_tensor():
    layer = layers.RecomputingDropout(0.5)

    @tf.function
    def run(is_training):
        return layer(ONES, training=is_training)

    np.testing.assert_array_equal(run(tf.constant(False)), ONES)
    assert (run(tf.constant(True)).numpy() == 0).any()


def test_layers_with_seeds_of_their_own_differ_and_repeat():
    def drop(seed):
        tf.random.set_seed(1)
        return layers.RecomputingDropout(0.5, seed=seed)(ONES, training=True).numpy()

    np.testing.assert_array_equal(drop(1), drop(1))
    assert not np.array_equal(drop(1), drop(2))


@pytest.mark.parametrize("rate", [0.2, 0.5, 0.9])
def test_stateless_dropout_scales_what_it_keeps_and_repeats_by_seed(rate):
    y = stateless_dropout(ONES, rate, seed=[1, 2]).numpy()
    np.testing.assert_allclose(np.unique(y), [0, 1 / (1 - rate)], rtol=1e-6)
    assert abs(np.mean(y > 0) - (1 - rate)) < 0.06
    np.testing.assert_array_equal(stateless_dropout(ONES, rate, seed=[1, 2]), y)
    as_tensor = stateless_dropout(ONES, tf.constant(rate), seed=[1, 2])
    np.testing.assert_allclose(as_tensor, y, rtol=1e-6)
    assert not np.array_equal(stateless_dropout(ONES, rate, seed=[2, 2]), y)


def test_stateless_dropout_without_a_rate_is_the_input():
    np.testing.assert_array_equal(stateless_dropout(X, 0, seed=[1, 2]), X)


@pytest.mark.parametrize("noise_shape", [[30], [1, 30], [40, 1], [1, 1], [None, 1], (1, None)])
def test_masks_are_broadcast_to_the_noise_shape(noise_shape):
    y = stateless_dropout(ONES, 0.5, [1, 2], noise_shape).numpy()
    sizes = [1, *noise_shape][-2:]
    shared = np.take(
        np.take(y, [0], 0) if sizes[0] == 1 else y, [0] if sizes[1] == 1 else range(30), 1
    )
    np.testing.assert_array_equal(y, np.broadcast_to(shared, y.shape))


@pytest.mark.parametrize("noise_shape", [[40, 31], [40, 30, 5], [5, 40, 30], [43], [40]])
def test_a_noise_shape_that_does_not_fit_is_refused(noise_shape):
    with pytest.raises(ValueError, match=r"`noise_shape` \[.*\] cannot be broadcast .* \[40, 30\]"):
        stateless_dropout(ONES, 0.5, [1, 2], noise_shape)


@pytest.mark.parametrize("rate", [-1.0, 1.0, 1.1, [0.0, 0.5], tf.constant([0.5, 0.5])])
def test_a_rate_that_is_none_is_refused(rate):
    with pytest.raises(ValueError):
        stateless_dropout(ONES, rate, [1, 2])


def test_integers_cannot_be_dropped_out():
    with pytest.raises(ValueError, match="float"):
        stateless_dropout([1, 1, 1], 0.5, [1, 2])


@pytest.mark.parametrize("pred, expected", [(True, 1), (False, 2), (1, 1), (0, 2)])
def test_smart_cond_chooses_at_once_where_it_can(pred, expected):
    calls = []

    def choose(pred):
        return recomputing_dropout.smart_cond(
            pred, lambda: calls.append("true") or 1, lambda: calls.append("false") or 2
        )

    assert choose(pred) == expected and len(calls) == 1
    assert choose(tf.constant(bool(pred))) == expected and len(calls) == 2
    assert choose(tf.Variable(bool(pred))) == expected


def test_smart_cond_leaves_to_the_graph_what_only_it_knows():
    @tf.function(input_signature=[tf.TensorSpec([], tf.bool)])
    def run(pred):
        return recomputing_dropout.smart_cond(pred, lambda: tf.constant(1), lambda: tf.constant(2))

    assert run(True) == 1 and run(False) == 2


def test_smart_cond_refuses_what_it_cannot_use():
    with pytest.raises(TypeError, match="must be callable. Received: None"):
        recomputing_dropout.smart_cond(True, None, lambda: 1)
    for pred in ("yes", None, 2):
        with pytest.raises(TypeError, match="`pred` must be a bool, 0, 1 or a scalar tensor"):
            recomputing_dropout.smart_cond(pred, lambda: 1, lambda: 2)


def test_a_model_with_the_dropout_is_saved_with_all_arguments(tmp_path):
    inputs = tf_keras.Input([30])
    layer = layers.RecomputingDropout(0.5, noise_shape=[None, 1], seed=4)
    tf_keras.Model(inputs, layer(inputs)).save(str(tmp_path / "model.keras"))
    (_, loaded) = tf_keras.models.load_model(str(tmp_path / "model.keras")).layers
    assert loaded.get_config() == layer.get_config()
