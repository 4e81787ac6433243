"""The patterns of docs/extending.md, built from the page's own text."""

import numpy as np
import pytest
import tensorflow as tf

from etcmodel.ops import blockwise, reach
from etcmodel.ops.key_sets import KeySet
from tests import page

BLOCKS = page.code("Add a pattern")


@pytest.fixture(scope="module")
def patterns():
    """What the page defines, by name."""
    names = {}
    exec("\n".join(BLOCKS), names)  # The library's own page.
    return names


def heads(seed, length, batch=2):
    rng = np.random.default_rng(seed)
    return [tf.constant(rng.normal(size=[batch, length, 2, 4]), tf.float32) for _ in range(3)]


def plain(queries, keys, values, sees):
    """Each query over the keys for which `sees(row, query, key)`, in NumPy."""
    queries, keys, values = (x.numpy() for x in (queries, keys, values))
    outputs = np.zeros(queries.shape)
    for row, query, head in np.ndindex(queries.shape[:3]):
        seen = [key for key in range(keys.shape[1]) if sees(row, query, key)]
        logits = np.array([queries[row, query, head] @ keys[row, key, head] / 2 for key in seen])
        weights = np.exp(logits - logits.max())
        outputs[row, query, head] = weights @ values[row, seen, head] / weights.sum()
    return outputs


def test_every_pattern_takes_at_most_30_lines():
    assert max(len(block.strip().splitlines()) for block in BLOCKS) <= 30


@pytest.mark.parametrize("length", [1, 2, 9, 150])
def test_star_transformer(patterns, length):
    tokens, relay = heads(0, length), heads(1, 1)
    outputs, relayed = patterns["star_attention"](tokens, relay)
    joined = [tf.concat([x, y], 1) for x, y in zip(tokens, relay, strict=True)]
    expected = plain(*joined, lambda _, q, k: length in (q, k) or abs(q - k) <= 1)
    np.testing.assert_allclose(outputs, expected[:, :length], atol=1e-5)
    np.testing.assert_allclose(relayed, expected[:, length:], atol=1e-5)


@pytest.mark.parametrize("size", [1, 5, 70])
@pytest.mark.parametrize("order", [[0, 1, 2], [1, 2, 0], [2, 1, 0]])
def test_block_bert(patterns, order, size):
    queries, keys, values = heads(2, 3 * size)
    real = np.random.default_rng(0).integers(0, 2, [2, 3 * size])
    real[:, ::size] = 1
    outputs = patterns["block_attention"](queries, keys, values, order, tf.constant(real, tf.int32))
    expected = plain(
        queries, keys, values, lambda row, q, k: k // size == order[q // size] and real[row, k]
    )
    np.testing.assert_allclose(outputs, expected, atol=1e-5)


def is_strided(query, key, stride):
    """Child et al. 2019, section 4.3."""
    return key <= query and (query - key < stride or (query - key) % stride == 0)


@pytest.mark.parametrize("length", [1, 20, 150])
def test_sparse_transformer(patterns, length):
    queries, keys, values = heads(3, length)
    outputs = patterns["strided_attention"](queries, keys, values, 4)
    expected = plain(queries, keys, values, lambda _, q, k: is_strided(q, k, 4))
    np.testing.assert_allclose(outputs, expected, atol=1e-5)


def test_the_gradients_of_sparse_transformer(patterns):
    tensors = heads(3, 20)
    sees = np.vectorize(is_strided)(*np.ogrid[:20, :20], 4)

    def dense(queries, keys, values):
        logits = tf.einsum("bqhs,bkhs->bhqk", queries, keys) / 2
        probs = tf.nn.softmax(tf.where(sees, logits, -np.inf))
        return tf.einsum("bhqk,bkhs->bqhs", probs, values)

    gradients = []
    for attend in (lambda *x: patterns["strided_attention"](*x, 4), dense):
        with tf.GradientTape() as tape:
            tape.watch(tensors)
            loss = tf.reduce_sum(attend(*tensors) ** 2)
        gradients.append(tape.gradient(loss, tensors))
    for gradient, expected in zip(*gradients, strict=True):
        np.testing.assert_allclose(gradient, expected, atol=1e-4)


def test_a_reach_that_only_says_what_it_sees(patterns):
    queries, keys, values = heads(3, 20)
    reach = patterns["EveryNthBefore"](3)
    (probs,) = blockwise.attention_probs(queries, [KeySet(keys, values, reach)])
    places = np.arange(20)
    back = places[:, np.newaxis] - places
    sees = (back > 0) & (back % 3 == 0)
    assert not probs.numpy()[:, :, ~sees & sees.any(1)[:, np.newaxis]].any()
    np.testing.assert_allclose(tf.reduce_sum(probs, -1), 1, atol=1e-6)


def test_biases_of_pairs_and_their_gradient(patterns):
    queries, keys, values = heads(4, 12)
    biases = tf.constant(np.random.default_rng(5).normal(size=[1, 2, 12, 12]), tf.float32)
    with tf.GradientTape() as tape:
        tape.watch(biases)
        outputs = patterns["biased_attention"](queries, keys, values, biases)
        loss = tf.reduce_sum(outputs**2)
    logits = tf.einsum("bqhs,bkhs->bhqk", queries, keys) / 2 + biases
    with tf.GradientTape() as plain_tape:
        plain_tape.watch(logits)
        probs = tf.nn.softmax(logits)
        expected = tf.einsum("bhqk,bkhs->bqhs", probs, values)
        plain_loss = tf.reduce_sum(expected**2)
    np.testing.assert_allclose(outputs, expected, atol=1e-5)
    gradient = tf.reduce_sum(plain_tape.gradient(plain_loss, logits), axis=0, keepdims=True)
    np.testing.assert_allclose(tape.gradient(loss, biases), gradient, atol=1e-5)


def test_a_view_is_asked_for_the_pieces_of_keys_before_they_are_gathered(monkeypatch):
    ranks = []
    for view in vars(reach).values():
        if isinstance(view, type) and view is not reach.View and "piece_spec" in vars(view):

            def noted(self, x, ask=view.piece_spec):
                ranks.append(x.shape.rank)
                return ask(self, x)

            monkeypatch.setattr(view, "piece_spec", noted)
    queries, keys, values = heads(5, 37)
    with tf.GradientTape() as tape:
        tape.watch(keys)
        outputs = blockwise.attend(queries, [KeySet(keys, values, reach.Window(left=2, right=1))])
    tape.gradient(outputs, keys)
    assert ranks and set(ranks) == {4}
