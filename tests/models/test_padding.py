"""Padding is left out of what an encoder gets, and put back."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from etcmodel.models import padding


def places(lengths, whole):
    return tf.sequence_mask(lengths, whole)


@settings(max_examples=40)
@given(data=st.data())
def test_no_more_is_encoded_than_a_little_above_the_longest_row(data):
    long_len, global_len = data.draw(st.integers(1, 50)), data.draw(st.integers(0, 20))
    rows = data.draw(st.integers(1, 3))
    long, globals_ = (
        data.draw(st.lists(st.integers(0, x), min_size=rows, max_size=rows))
        for x in (long_len, global_len)
    )
    values = tf.random.stateless_normal([rows, long_len], [0, 1])
    features = {"x": values, "g": values[:, :1] * tf.ones([1, global_len]), "label": values[:, 0]}
    seen = []

    def encode(kept):
        assert kept["label"] is features["label"]
        seen.extend(kept[name].shape[1] for name in ("x", "g"))
        return kept["x"][:, :, tf.newaxis], kept["g"][:, :, tf.newaxis]

    masks = places(long, long_len), places(globals_, global_len)
    outputs = padding.encode_without_padding(encode, features, *masks, (("x",), ("g", "absent")))
    for output, name, mask, kept, lengths in zip(
        outputs, ("x", "g"), masks, seen, (long, globals_), strict=True
    ):
        whole = mask.shape[1]
        step = max(-(-whole // 32), 1)
        assert max(lengths) <= kept <= min(whole, max(max(lengths), 1) + step - 1)
        assert output.shape[1] == whole
        np.testing.assert_array_equal(output[:, :kept, 0], features[name][:, :kept])
        assert not np.any(output[:, kept:])


@pytest.mark.parametrize("lengths", [(3, 5), (0, 0), (64, 1)])
def test_what_was_cut_can_be_restored(lengths):
    mask = places(lengths, 64)
    values = tf.random.stateless_normal([2, 64, 3], [0, 1])
    features = {"x": values, "label": values[:, 0]}
    kept = padding.cut(features, mask, ("x", "absent"))
    length = max(2 * -(-max(lengths) // 2), 2)  # In steps of two.
    assert kept.keys() == features.keys() and kept["label"] is features["label"]
    np.testing.assert_array_equal(kept["x"], values[:, :length])
    whole = padding.restored(kept["x"], mask, fill=-7).numpy()
    np.testing.assert_array_equal(whole[:, :length], values[:, :length])
    assert whole.shape == values.shape and np.all(whole[:, length:] == -7)


def test_texts_of_one_input_are_cut_by_their_mask():
    mask = np.array([[1, 1, 0, 0], [1, 1, 1, 0]])
    features = {"input_ids": 5 * mask + 1, "attention_mask": mask, "labels": mask}
    kept = padding.cut_text(features)
    np.testing.assert_array_equal(kept["input_ids"], features["input_ids"][:, :3])
    np.testing.assert_array_equal(kept["attention_mask"], mask[:, :3])
    np.testing.assert_array_equal(kept["labels"], mask)


def test_an_input_without_places_stays_one():
    mask = tf.zeros([2, 0], tf.bool)
    outputs = padding.encode_without_padding(
        lambda kept: (kept["x"], kept["x"]), {"x": tf.zeros([2, 0, 3])}, mask, mask, (("x",), ())
    )
    assert [tuple(output.shape) for output in outputs] == [(2, 0, 3)] * 2


def encoded_lengths(x):
    """How much of x, of which all is padding, is encoded: by both functions that leave it out."""
    lengths, mask = [], tf.zeros_like(x, tf.bool)

    def encode(kept):
        lengths.append(kept["x"].shape[1])
        return kept["x"][:, :, tf.newaxis], kept["x"][:, :, tf.newaxis]

    outputs = padding.encode_without_padding(encode, {"x": x}, mask, mask, (("x",), ()))
    kept = padding.cut({"x": x}, mask, ("x",))["x"]
    for output in (*outputs, padding.restored(kept, mask)):
        assert output.shape[:2] == x.shape
    return [*lengths, kept.shape[1]]


def test_what_xla_compiles_encodes_the_whole_batch():
    lengths = []

    @tf.function(jit_compile=True)
    def compiled(x):
        lengths.extend(encoded_lengths(x))
        return x

    compiled(tf.ones([2, 5]))
    assert set(lengths) == {5}


def test_whole_batches_are_encoded_on_request():
    x = tf.ones([2, 5])
    with padding.kept():
        with padding.kept():
            pass
        assert encoded_lengths(x) == [5, 5]
    with pytest.raises(KeyError), padding.kept():
        raise KeyError
    assert encoded_lengths(x) == [1, 1]
