"""Transformer-XL's positions in windows, against a slow twin and the dense formula."""

import functools

import hypothesis
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import strategies as st

from etcmodel.ops import sinusoids, sliding_window
from etcmodel.ops.reach import Window
from etcmodel.ops.sinusoids import SinusoidPositions
from tests.ops import numpy_sliding_window as twin

HIDDEN, SIZE = 6, 4


def weights(num_heads, rng):
    """Projection, content bias and position bias."""
    shapes = ([HIDDEN, num_heads, SIZE], [num_heads, SIZE], [num_heads, SIZE])
    return [rng.normal(size=shape).astype(np.float32) for shape in shapes]


def arguments(batch, length, num_heads, seed=0):
    """Queries, keys and values; then the weights."""
    rng = np.random.default_rng(seed)
    shape = (3, batch, length, num_heads, SIZE)
    return [*rng.normal(size=shape).astype(np.float32), *weights(num_heads, rng)]


def attend(windows, queries, keys, values, *of_positions, **options):
    positions = SinusoidPositions(*of_positions)
    return sliding_window.attend(queries, keys, values, windows, positions=positions, **options)


def dense(windows, queries, keys, values, projection, content_bias, position_bias):
    """The formula for all pairs at once, with nothing clever, for its gradients."""
    length = queries.shape[1]
    offsets = np.arange(length) - np.arange(length)[:, np.newaxis]
    waves = np.array([[twin.waves(-x, HIDDEN) for x in row] for row in offsets], np.float32)
    places = tf.einsum("ijm,mhs->ijhs", waves, projection)
    logits = tf.einsum("bihs,bjhs->bhij", queries + content_bias, keys)
    logits += tf.einsum("bihs,ijhs->bhij", queries + position_bias, places)
    sees = np.stack(
        [
            (offsets % w.dilation == 0)
            & (offsets >= -w.left * w.dilation)
            & (offsets <= w.right * w.dilation)
            for w in windows
        ]
    )
    logits = tf.where(sees, logits / np.sqrt(SIZE), -np.inf)
    return tf.einsum("bhij,bjhs->bihs", tf.nn.softmax(logits), values)


@st.composite
def cases(draw):
    length, size = draw(st.integers(1, 12)), st.integers(0, 4)
    window = st.tuples(size, size, st.integers(1, 3))
    windows = draw(st.lists(window, min_size=1, max_size=3))
    mask = draw(st.lists(st.booleans(), min_size=2 * length, max_size=2 * length))
    return windows, np.reshape(mask, (2, length)), draw(st.integers(0, 99))


@hypothesis.settings(max_examples=25)
@hypothesis.given(cases())
def test_as_pair_by_pair(case):
    windows, token_mask, seed = case
    given_arrays = arguments(*token_mask.shape, len(windows), seed)
    queries, keys, values, *of_positions = given_arrays
    found = attend([Window(*x) for x in windows], *given_arrays, token_mask=tf.constant(token_mask))
    sees = twin.dense_mask(len(token_mask[0]), windows, token_mask, np.zeros_like(token_mask))
    logits = twin.distance_logits(queries, *of_positions, keys)
    expected, _ = twin.attend(queries, keys, values, sees, logits)
    np.testing.assert_allclose(found, expected, atol=5e-6)


# Of one tile, of several, with gaps, with different windows by head, on both sides.
PATTERNS = {
    "one tile": (20, [Window(7, 0)] * 2),
    "tiles": (150, [Window(5, 0)] * 2),
    "all before": (90, [Window(90, 0)] * 2),
    "gaps": (150, [Window(5, 0, 3)] * 2),
    "by head": (150, [Window(5, 0), Window(5, 0, 2), Window(5, 0)]),
    "both sides": (150, [Window(4, 3, 2)] * 2),
    "itself": (10, [Window(0, 0)] * 2),
}


@functools.cache
def case_of(name):
    length, windows = PATTERNS[name]
    return windows, [tf.constant(x) for x in arguments(2, length, len(windows))]


def outputs_and_gradients(function, given_arrays):
    with tf.GradientTape() as tape:
        tape.watch(given_arrays)
        outputs = function(*given_arrays)
        loss = tf.reduce_sum(tf.sin(3.0 * tf.cast(outputs, tf.float32)))
    return [outputs, *map(tf.convert_to_tensor, tape.gradient(loss, given_arrays))]


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize(
    ("name", "how"),
    [*((name, "eager") for name in PATTERNS), ("by head", "graph"), ("gaps", "xla")],
)
def test_outputs_and_gradients_of_the_dense_formula(name, how):
    windows, given_arrays = case_of(name)

    def run(*given_arrays):
        return outputs_and_gradients(functools.partial(attend, windows), list(given_arrays))

    if how != "eager":
        run = tf.function(run, jit_compile=how == "xla", autograph=False)
    expected = outputs_and_gradients(functools.partial(dense, windows), given_arrays)
    for one, other in zip(run(*given_arrays), expected, strict=True):
        scale = np.abs(other).max()
        np.testing.assert_allclose(one, other, atol=1e-5 * max(1.0, scale))


def unit_differences(function, given_arrays, num_draws=8):
    """What one unit in bfloat16's last digit of each number does to each output: mean differences.

    Sums that nearly cancel out suffer the most, so that the same share for all would be too much
    for some and too little for others.
    """
    rng, unit = np.random.default_rng(0), 2.0**-8
    exact = outputs_and_gradients(function, given_arrays)
    differences = []
    for _ in range(num_draws):
        signs = [rng.choice([-1, 1], x.shape) for x in given_arrays]
        moved = [x * (1 + unit * sign) for x, sign in zip(given_arrays, signs, strict=True)]
        outputs = outputs_and_gradients(function, moved)
        differences.append([np.mean(np.abs(x - y)) for x, y in zip(outputs, exact, strict=True)])
    return np.mean(differences, axis=0)


# Of "itself", gradients are nothing but what rounding leaves.
@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("name", [name for name in PATTERNS if name != "itself"])
def test_bfloat16_is_as_exact_as_its_digits(name):
    """A product is rounded once or, where a processor has none of bfloat16, its parts, too."""
    windows, given_arrays = case_of(name)
    queries, keys, values, *of_positions = given_arrays
    of_positions = [0.3 * x for x in of_positions]
    half = [tf.cast(x, tf.bfloat16) for x in (queries, keys, values)]
    full = [*(tf.cast(x, tf.float32) for x in half), *of_positions]
    found = outputs_and_gradients(functools.partial(attend, windows), [*half, *of_positions])
    formula = functools.partial(dense, windows)
    expected, units = outputs_and_gradients(formula, full), unit_differences(formula, full)
    assert found[0].dtype == tf.bfloat16
    for one, other, unit in zip(found, expected, units, strict=True):
        assert np.mean(np.abs(tf.cast(one, tf.float32) - other)) <= 2 * unit


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tiles", "by head"])
def test_a_length_that_is_not_known_when_tracing(name):
    windows, given_arrays = case_of(name)
    specs = [tf.TensorSpec([None, None, *x.shape[2:]]) for x in given_arrays[:3]]
    specs += [tf.TensorSpec(x.shape) for x in given_arrays[3:]]
    run = tf.function(lambda *x: attend(windows, *x), specs, autograph=False)
    np.testing.assert_allclose(run(*given_arrays), attend(windows, *given_arrays), atol=5e-6)


@pytest.mark.parametrize("name", ["one tile", "tiles", "gaps", "by head"])
def test_a_later_token_never_matters(name):
    windows, (queries, keys, values, *of_positions) = case_of(name)
    before = attend(windows, queries, keys, values, *of_positions)
    for place in (1, keys.shape[1] // 2, keys.shape[1] - 1):
        is_later = np.arange(keys.shape[1])[:, np.newaxis, np.newaxis] >= place
        changed = [tf.where(is_later, 100.0 - x, x) for x in (keys, values)]
        after = attend(windows, queries, *changed, *of_positions)
        np.testing.assert_array_equal(after[:, :place], before[:, :place])


def test_probabilities_are_those_that_weigh_the_values():
    windows, (queries, keys, values, *of_positions) = case_of("by head")
    probs = sliding_window.attention_probs(
        queries, keys, windows, positions=SinusoidPositions(*of_positions)
    ).numpy()
    length = keys.shape[1]
    expected = np.zeros(values.shape)
    for head, window in enumerate(windows):
        for step in range(-window.left, 1):
            places = np.arange(length) + step * window.dilation
            weights = probs[:, head, :, step + window.left, np.newaxis] * (places >= 0)[:, None]
            expected[:, :, head] += weights * values.numpy()[:, np.maximum(places, 0), head]
    found = attend(windows, queries, keys, values, *of_positions)
    np.testing.assert_allclose(found, expected, atol=5e-6)


def test_sinusoids_of_distances():
    found = sinusoids.distance_sinusoids([[0, 1], [-3, 8191]], 10)
    expected = [[twin.waves(x, 10) for x in row] for row in ((0, 1), (-3, 8191))]
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert sinusoids.distance_sinusoids(5, 2, tf.bfloat16).dtype == tf.bfloat16
