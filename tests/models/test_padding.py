"""Padding is left out of what an encoder gets, and put back."""

import numpy as np
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from etcmodel.models import padding


def places(lengths, whole):
    return tf.sequence_mask(lengths, whole)


@settings(max_examples=40, deadline=None)
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


def test_an_input_without_places_stays_one():
    mask = tf.zeros([2, 0], tf.bool)
    outputs = padding.encode_without_padding(
        lambda kept: (kept["x"], kept["x"]), {"x": tf.zeros([2, 0, 3])}, mask, mask, (("x",), ())
    )
    assert [tuple(output.shape) for output in outputs] == [(2, 0, 3)] * 2


def test_what_xla_compiles_encodes_the_whole_batch():
    lengths = []

    @tf.function(jit_compile=True)
    def compiled(x):
        def encode(kept):
            lengths.append(kept["x"].shape[1])
            return kept["x"][:, :, tf.newaxis], kept["x"][:, :, tf.newaxis]

        mask = tf.zeros_like(x, tf.bool)
        return padding.encode_without_padding(encode, {"x": x}, mask, mask, (("x",), ()))

    compiled(tf.ones([2, 5]))
    assert set(lengths) == {5}
