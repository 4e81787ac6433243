"""The attention ops against their NumPy twin, and against each other."""

import dataclasses
import functools

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from etcmodel.ops import attention
from tests.ops import numpy_attention

LOCAL_IMPLEMENTATIONS = tuple(
    functools.partial(attention.local_attend, implementation=name)
    for name in ("sparse", "full", "auto")
)
VOCAB_SIZE = 5
FEW_EXAMPLES = settings(max_examples=25)


@dataclasses.dataclass
class LocalInputs:
    """Random arguments of local attention, for the ops and for the twin."""

    queries: np.ndarray
    keys: np.ndarray
    values: np.ndarray
    local_radius: int
    att_mask: np.ndarray | None
    att_ids: np.ndarray | None
    side: numpy_attention.Side | None
    labels: numpy_attention.Labels | None

    def twin(self):
        return numpy_attention.local_attend(**vars(self))

    def run(self, implementation, **changes):
        """What the op gives; `changes` replace arguments (by watched tensors, say)."""
        arguments = {**vars(self), **changes}
        side, labels = arguments.pop("side"), arguments.pop("labels")
        return implementation(
            **arguments,
            side=None if side is None else attention.SideKeys(**vars(side)),
            labels=None if labels is None else attention.RelativeLabels(**vars(labels)),
        )


def random_floats(rng, *shape):
    return rng.normal(size=shape).astype(np.float32)


@st.composite
def local_inputs(draw):
    long_len, local_radius = draw(st.integers(1, 20)), draw(st.integers(1, 8))
    side_len = draw(st.integers(0, 4))
    has_mask, has_ids, has_side = draw(st.tuples(st.booleans(), st.booleans(), st.booleans()))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    batch, num_heads, size = 2, 2, 3
    window = [batch, long_len, 2 * local_radius + 1]
    att_mask = rng.integers(0, 2, window)
    att_mask[:, :, local_radius] = 1  # Each row keeps at least one key: itself.
    side = numpy_attention.Side(
        random_floats(rng, batch, side_len, num_heads, size),
        random_floats(rng, batch, side_len, num_heads, size + 1),
        rng.integers(0, 2, [batch, long_len, side_len]) if has_mask else None,
        rng.integers(0, VOCAB_SIZE, [batch, long_len, side_len]) if has_ids else None,
    )
    return LocalInputs(
        queries=random_floats(rng, batch, long_len, num_heads, size),
        keys=random_floats(rng, batch, long_len, num_heads, size),
        values=random_floats(rng, batch, long_len, num_heads, size + 1),
        local_radius=local_radius,
        att_mask=att_mask if has_mask else None,
        att_ids=rng.integers(0, VOCAB_SIZE, window) if has_ids else None,
        side=side if has_side else None,
        labels=random_labels(rng, num_heads, size) if has_ids else None,
    )


def random_labels(rng, num_heads, size):
    return numpy_attention.Labels(
        random_floats(rng, VOCAB_SIZE, num_heads, size), random_floats(rng, VOCAB_SIZE, num_heads)
    )


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("implementation", LOCAL_IMPLEMENTATIONS)
def test_local_attention_equals_the_twin(implementation):
    @FEW_EXAMPLES
    @given(local_inputs())
    def check(inputs):
        np.testing.assert_allclose(inputs.run(implementation), inputs.twin(), atol=1e-5)

    check()


@settings(FEW_EXAMPLES, max_examples=10)
@given(local_inputs())
def test_sparse_and_full_have_the_same_gradients(inputs):
    gradients = []
    for implementation in LOCAL_IMPLEMENTATIONS:
        watched = {name: tf.constant(getattr(inputs, name)) for name in ("queries", "keys")}
        watched["values"] = tf.constant(inputs.values)
        side, labels = watch_fields(inputs.side), watch_fields(inputs.labels)
        sources = [*watched.values(), *float_fields(side), *float_fields(labels)]
        with tf.GradientTape() as tape:
            tape.watch(sources)
            output = inputs.run(implementation, **watched, side=side, labels=labels)
            target = tf.reduce_sum(tf.sin(output))
        gradients.append(tape.gradient(target, sources, unconnected_gradients="zero"))
    for sparse, full, _ in zip(*gradients, strict=True):
        np.testing.assert_allclose(*map(tf.convert_to_tensor, (sparse, full)), atol=1e-5)


def watch_fields(fields):
    """A copy whose float arrays are tensors."""
    if fields is None:
        return None
    floats = {
        name: tf.constant(value)
        for name, value in vars(fields).items()
        if value is not None and value.dtype == np.float32
    }
    return dataclasses.replace(fields, **floats)


def float_fields(fields):
    return [] if fields is None else [v for v in vars(fields).values() if tf.is_tensor(v)]


@FEW_EXAMPLES
@given(st.integers(1, 9), st.integers(1, 9), st.booleans(), st.booleans(), st.integers(0, 2**16))
def test_full_attention_equals_the_twin(query_len, key_len, has_mask, one_hot, seed):
    rng = np.random.default_rng(seed)
    queries = random_floats(rng, 2, query_len, 2, 3)
    keys, values = (random_floats(rng, 2, key_len, 2, size) for size in (3, 4))
    att_mask = rng.integers(0, 2, [2, query_len, key_len])
    att_mask[:, :, 0] = 1
    att_mask = att_mask if has_mask else None
    att_ids = rng.integers(0, VOCAB_SIZE, [2, query_len, key_len])
    labels = random_labels(rng, 2, 3)
    output = attention.attend(
        queries,
        keys,
        values,
        att_mask=att_mask,
        att_ids=att_ids,
        labels=attention.RelativeLabels(**vars(labels), use_one_hot_lookup=one_hot),
    )
    expected = numpy_attention.attend(queries, keys, values, att_mask, att_ids, labels)
    np.testing.assert_allclose(output, expected, atol=1e-5)


@pytest.mark.parametrize("implementation", LOCAL_IMPLEMENTATIONS)
def test_boolean_masks_mean_what_integers_mean(implementation):
    rng = np.random.default_rng(0)
    queries, keys, values = (random_floats(rng, 1, 6, 1, 2) for _ in range(3))
    side = [random_floats(rng, 1, 2, 1, 2) for _ in range(2)]
    masks = rng.integers(0, 2, [1, 6, 5]), rng.integers(0, 2, [1, 6, 2])
    masks[0][:, :, 2] = 1
    outputs = [
        implementation(
            queries,
            keys,
            values,
            local_radius=2,
            att_mask=masks[0].astype(dtype),
            side=attention.SideKeys(*side, masks[1].astype(dtype)),
        )
        for dtype in (np.bool_, np.int32)
    ]
    np.testing.assert_array_equal(*outputs)


@pytest.mark.parametrize("implementation", LOCAL_IMPLEMENTATIONS)
def test_a_row_that_may_see_nothing_averages_instead_of_giving_nan(implementation):
    ones = np.ones([1, 5, 1, 2], np.float32)
    output = implementation(ones, ones, ones, local_radius=1, att_mask=np.zeros([1, 5, 3]))
    assert np.isfinite(output).all()


@pytest.mark.parametrize("implementation", LOCAL_IMPLEMENTATIONS)
def test_dropout_of_probabilities_keeps_the_mean(implementation):
    rng = np.random.default_rng(0)
    queries, keys = (random_floats(rng, 64, 40, 1, 2) for _ in range(2))
    values = np.ones([64, 40, 1, 1], np.float32)
    output = implementation(queries, keys, values, local_radius=3, dropout_rate=0.5)
    assert np.std(output) > 0.1
    np.testing.assert_allclose(np.mean(output), 1.0, atol=0.05)


@pytest.mark.parametrize("dtype", [tf.bfloat16, tf.float16])
def test_softmax_is_float32_and_the_output_has_the_type_of_the_values(dtype):
    rng = np.random.default_rng(0)
    inputs = [random_floats(rng, 1, 7, 2, 4) for _ in range(3)]
    outputs = [
        attention.local_attend(*(tf.cast(x, to) for x in inputs), local_radius=2)
        for to in (tf.float32, dtype)
    ]
    assert outputs[1].dtype == dtype
    np.testing.assert_allclose(outputs[0], tf.cast(outputs[1], tf.float32), atol=0.05)
