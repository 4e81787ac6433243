"""float16 attention over so many keys, or such values, that float16 itself could not add them up.

The judge is attention in float64, of the same float16 numbers.
"""

import numpy as np
import pytest
import tensorflow as tf

from etcmodel.ops import attention
from etcmodel.ops import dropout as dropout_ops
from etcmodel.ops.structure import GlobalLocalStructure
from tests.ops import numpy_attention, plain_attention

TOLERANCE = 2e-3
NUM_KEYS = 70_000
NUM_HEADS, SIZE = 2, 8
# As an optimizer scales the loss, so that gradients are not too small for float16.
LOSS_SCALE = 1024.0


def random_halves(rng, *shape, scale=1.0):
    return (scale * rng.normal(size=shape)).astype(np.float16)


def numpy_attend(queries, keys, values, cotangents):
    """Output and the gradients of all three arguments, in float64."""
    queries, keys, values, cotangents = (
        x.astype(np.float64) for x in (queries, keys, values, cotangents)
    )
    scale = 1 / np.sqrt(queries.shape[-1])
    logits = scale * np.einsum("bqhs,bkhs->bhqk", queries, keys)
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    probs = weights / weights.sum(axis=-1, keepdims=True)
    output = np.einsum("bhqk,bkhs->bqhs", probs, values)
    prob_gradients = np.einsum("bqhs,bkhs->bhqk", cotangents, values)
    inner = (probs * prob_gradients).sum(axis=-1, keepdims=True)
    logit_gradients = probs * (prob_gradients - inner)
    return (
        output,
        scale * np.einsum("bhqk,bkhs->bqhs", logit_gradients, keys),
        scale * np.einsum("bhqk,bqhs->bkhs", logit_gradients, queries),
        np.einsum("bhqk,bqhs->bkhs", probs, cotangents),
    )


def output_and_gradients(function, cotangents, *sources):
    sources = [tf.constant(x) for x in sources]
    with tf.GradientTape() as tape:
        tape.watch(sources)
        output = function(*sources)
    return [output, *tape.gradient(output, sources, output_gradients=tf.constant(cotangents))]


def assert_close(actual, expected):
    """Within a share of the largest expected number."""
    for x, y in zip(actual, expected, strict=True):
        x, y = (np.asarray(tf.cast(z, tf.float64)) for z in (x, y))
        np.testing.assert_allclose(x, y, rtol=0, atol=TOLERANCE * np.abs(y).max())


VALUES = {
    "all ones": lambda rng, *shape: np.ones(shape, np.float16),
    "all twenty": lambda rng, *shape: np.full(shape, 20, np.float16),
    "large": lambda rng, *shape: (3e4 + random_halves(rng, *shape)).astype(np.float16),
    "random": random_halves,
}


@pytest.mark.parametrize("values", VALUES)
@pytest.mark.parametrize("num_keys", [4096, NUM_KEYS])
def test_many_keys_give_what_float64_gives(num_keys, values):
    rng = np.random.default_rng(0)
    queries = random_halves(rng, 1, 3, NUM_HEADS, SIZE)
    keys = random_halves(rng, 1, num_keys, NUM_HEADS, SIZE)
    values = VALUES[values](rng, 1, num_keys, NUM_HEADS, SIZE)
    output = attention.attend(*map(tf.constant, (queries, keys, values)))
    assert output.dtype == tf.float16
    expected = numpy_attend(queries, keys, values, np.zeros_like(queries))[0]
    assert_close([output], [expected])


@pytest.mark.parametrize("compiler", [None, tf.function], ids=["eagerly", "in a graph"])
def test_gradients_of_many_keys_are_those_of_float64(compiler):
    rng = np.random.default_rng(0)
    queries, cotangents = (random_halves(rng, 1, 3, NUM_HEADS, SIZE) for _ in range(2))
    keys, values = (random_halves(rng, 1, NUM_KEYS, NUM_HEADS, SIZE) for _ in range(2))
    function = compiler(attention.attend) if compiler else attention.attend
    arguments = queries, keys, values
    actual = output_and_gradients(function, LOSS_SCALE * cotangents, *arguments)
    assert {x.dtype for x in actual} == {tf.dtypes.float16}
    assert_close(actual, numpy_attend(*arguments, LOSS_SCALE * cotangents))


def test_equal_keys_give_all_of_them_the_same_share_of_the_gradient():
    """1 / 70000 is a number that float16 rounds by more than a thousandth."""
    rng = np.random.default_rng(0)
    queries, cotangents = (random_halves(rng, 1, 1, NUM_HEADS, SIZE) for _ in range(2))
    keys, values = (np.ones([1, NUM_KEYS, NUM_HEADS, SIZE], np.float16) for _ in range(2))
    _, _, _, gradient = output_and_gradients(
        attention.attend, LOSS_SCALE * cotangents, queries, keys, values
    )
    share = LOSS_SCALE * cotangents.astype(float) / NUM_KEYS
    assert_close([gradient], [np.broadcast_to(share, gradient.shape)])


def test_logits_of_large_queries_and_keys_are_not_rounded_to_float16():
    """Of logits around 1000, float16 has only every half."""
    rng = np.random.default_rng(0)
    queries = np.full([1, 1, NUM_HEADS, SIZE], 60, np.float16)
    keys = (6 + random_halves(rng, 1, 50, NUM_HEADS, SIZE, scale=0.02)).astype(np.float16)
    values = random_halves(rng, 1, 50, NUM_HEADS, SIZE)
    output = attention.attend(*map(tf.constant, (queries, keys, values)))
    assert_close([output], numpy_attend(queries, keys, values, np.zeros_like(queries))[:1])


def test_gradients_that_a_loss_scale_has_made_large_are_exact():
    """The products of output gradients and values are beyond float16; what comes out is not."""
    rng = np.random.default_rng(0)
    queries, keys, values = (random_halves(rng, 1, n, NUM_HEADS, SIZE) for n in (2, 30, 30))
    values, cotangents = 8 * values, np.full([1, 2, NUM_HEADS, SIZE], 2.0**14, np.float16)
    keys, queries = keys / 8, queries / 8
    actual = output_and_gradients(attention.attend, cotangents, queries, keys, values)
    assert_close(actual, numpy_attend(queries, keys, values, cotangents))


def test_dropout_of_many_keys_keeps_their_mean():
    """The gradient of the values tells which keys were kept, and with what weight."""
    rng, rate = np.random.default_rng(0), 0.25
    queries, cotangents = (np.ones([1, 1, NUM_HEADS, SIZE], np.float16) for _ in range(2))
    keys = np.ones([1, NUM_KEYS, NUM_HEADS, SIZE], np.float16)
    values = 20 + random_halves(rng, 1, NUM_KEYS, NUM_HEADS, SIZE)

    def dropped(queries, keys, values):
        with dropout_ops.seed_scope((5, 6)):
            return attention.attend(queries, keys, values, dropout_rate=rate)

    output, *_, gradient = output_and_gradients(
        dropped, LOSS_SCALE * cotangents, queries, keys, values
    )
    weights = gradient.numpy().astype(float) / LOSS_SCALE
    is_kept = weights != 0
    assert abs(np.mean(is_kept) - (1 - rate)) < 0.01
    np.testing.assert_allclose(weights[is_kept] * NUM_KEYS, 1 / (1 - rate), rtol=TOLERANCE)
    kept_mean = np.sum(is_kept * values.astype(float), axis=1, keepdims=True)
    assert_close([output], [kept_mean / NUM_KEYS / (1 - rate)])


def test_many_labeled_keys_give_what_float64_gives():
    """Global queries over many long tokens, some of them linked; outputs and all gradients."""
    rng = np.random.default_rng(0)
    num_global, max_distance = 2, 1
    links = rng.integers(-1, num_global, [1, NUM_KEYS])
    structure = GlobalLocalStructure(
        long_segment_ids=tf.ones([1, NUM_KEYS], tf.int32),
        long_example_ids=tf.ones([1, NUM_KEYS], tf.int32),
        global_example_ids=tf.ones([1, num_global], tf.int32),
        links=(tf.constant(links, tf.int32),),
        max_distance=max_distance,
    )
    labels = np.zeros([1, num_global, num_global + NUM_KEYS], int)
    labels[:, :, :num_global] = [[0, 1], [2, 0]]  # Itself, to the right, to the left.
    labels[:, :, num_global:] = 3 + (links[:, np.newaxis] == np.arange(num_global)[:, np.newaxis])
    everywhere = np.ones(labels.shape, bool)
    pairs = numpy_attention.Pairs(everywhere, everywhere, labels)
    lengths = (num_global, num_global, num_global, NUM_KEYS, NUM_KEYS)
    heads = [random_halves(rng, 1, length, NUM_HEADS, SIZE) for length in lengths]
    tables = [random_halves(rng, 6, NUM_HEADS, *size) for size in ([SIZE], [])]
    cotangents = LOSS_SCALE * random_halves(rng, 1, num_global, NUM_HEADS, SIZE)

    def by_structure(queries, keys, values, long_keys, long_values, *tables):
        return attention.global_attend(
            queries,
            (keys, values),
            (long_keys, long_values),
            structure,
            labels=attention.RelativeLabels(*tables),
        )

    def by_pairs(queries, keys, values, long_keys, long_values, *tables):
        joined = (tf.concat(x, axis=1) for x in ((keys, long_keys), (values, long_values)))
        return plain_attention.attend(queries, *joined, pairs, tables)

    exact = [x.astype(np.float64) for x in (cotangents, *heads, *tables)]
    assert_close(
        output_and_gradients(by_structure, cotangents, *heads, *tables),
        output_and_gradients(by_pairs, *exact),
    )
