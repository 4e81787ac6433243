"""What holds for `LongformerModel` whatever its weights; their values are in tests/reference."""

import functools
import json

import hypothesis
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import strategies as st

from etcmodel.models import encoders
from etcmodel.models.longformer import LongformerModel
from tests.models.longformer import small

MODEL = functools.cache(small.model)
SAME = {"atol": 2e-5, "rtol": 1e-5}
lengths = st.integers(1, 12)


@st.composite
def examples(draw):
    """One text: (ids, attention mask, global mask), each int [1, length]."""
    length = draw(lengths)
    bits = st.lists(st.integers(0, 1), min_size=length, max_size=length)
    attention_mask, global_mask = (np.array([draw(bits)]) for _ in range(2))
    return small.ids(length, seed=draw(st.integers(0, 99))), attention_mask, global_mask


def hidden_of(ids, attention_mask, global_mask, model=None):
    model = model or MODEL()
    output, _ = model(
        ids, attention_mask=attention_mask, global_attention_mask=global_mask, training=False
    )
    return output.numpy()


def padded(x, before, after, value):
    return np.pad(x, [[0, 0], [before, after]], constant_values=value)


@pytest.mark.slow
@hypothesis.settings(max_examples=15)
@hypothesis.given(examples(), st.integers(0, 5), st.integers(0, 15))
def test_padding_changes_nothing(example, before, after):
    ids, attention_mask, global_mask = example
    pad = MODEL().config.pad_token_id
    longer = hidden_of(
        padded(ids, before, after, pad),
        padded(attention_mask, before, after, 0),
        padded(global_mask, before, after, 1),  # Padding is not global, whatever the mask says.
    )
    end = longer.shape[1] - after
    np.testing.assert_allclose(longer[:, before:end], hidden_of(*example), **SAME)


@pytest.mark.slow
@hypothesis.settings(max_examples=15)
@hypothesis.given(examples(), st.data())
def test_neighbors_in_the_batch_change_nothing(example, data):
    length = example[0].shape[1]
    bits = st.lists(st.integers(0, 1), min_size=length, max_size=length)
    neighbor = (small.ids(length, seed=100), *(np.array([data.draw(bits)]) for _ in range(2)))
    together = hidden_of(*(np.concatenate(pair) for pair in zip(example, neighbor, strict=True)))
    np.testing.assert_allclose(together[:1], hidden_of(*example), **SAME)


@hypothesis.settings(max_examples=10)
@hypothesis.given(lengths, st.data())
def test_no_later_token_matters_to_an_autoregressive_model(length, data):
    model = MODEL(autoregressive=True, attention_dilation=(1, (2, 3)))
    ids = small.ids(length)
    first_changed = data.draw(st.integers(0, length - 1))
    others = np.where(np.arange(length) < first_changed, ids, small.ids(length, seed=1))
    one, other = (hidden_of(x, None, None, model)[:, :first_changed] for x in (ids, others))
    np.testing.assert_array_equal(one, other)


def test_what_is_masked_matters_to_nobody():
    ids = small.ids(9)
    mask = np.array([[1, 1, 0, 1, 1, 1, 0, 1, 1]])
    others = np.where(mask, ids, small.ids(9, seed=1))
    global_mask = np.eye(9, dtype=int)[:1]
    one, other = (hidden_of(x, mask, global_mask)[:, mask[0] == 1] for x in (ids, others))
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    "value", [[0, 4], tf.ragged.constant([[4, 0], [0, 4]])], ids=["all", "each"]
)
def test_positions_say_what_is_global(value):
    ids, mask = small.ids(9, batch=2), np.zeros([2, 9], int)
    mask[:, [0, 4]] = 1
    np.testing.assert_array_equal(hidden_of(ids, None, value), hidden_of(ids, None, mask))
    np.testing.assert_array_equal(hidden_of(ids, 1 + mask, None), hidden_of(ids, None, mask))


def test_a_dict_is_a_call_with_its_entries():
    batch = {"input_ids": small.ids(5), "attention_mask": np.array([[1, 1, 1, 1, 0]])}
    np.testing.assert_array_equal(MODEL()(batch)[0], MODEL()(**batch)[0])


@pytest.mark.parametrize("dtype", ["mixed_float16", "mixed_bfloat16"])
def test_half_precision_is_finite_where_all_is_masked(dtype):
    model = MODEL(dtype)
    mask = np.array([[0] * 7, [1, 1, 1, 1, 0, 0, 0]])
    with tf.GradientTape() as tape:
        hidden, pooled = model(small.ids(7, 2), attention_mask=mask, global_attention_mask=[0])
        loss = tf.reduce_sum(tf.cast(hidden, tf.float32) ** 2)
    assert hidden.dtype == pooled.dtype == model.compute_dtype
    exact = hidden_of(small.ids(7, 2), mask, [0])
    np.testing.assert_allclose(tf.cast(hidden, tf.float32), exact, atol=0.1)
    for gradient in tape.gradient(loss, model.trainable_variables):
        assert gradient is None or np.isfinite(tf.convert_to_tensor(gradient)).all()


@pytest.mark.parametrize("output_hidden_states", [False, True])
def test_recomputed_activations_give_the_same_gradients(output_hidden_states):
    options = {"output_hidden_states": output_hidden_states}
    mask = np.array([[1, 1, 1, 1, 1, 0, 0]])
    gradients = []
    for period in (0, 1):
        model = MODEL(grad_checkpointing_period=period)
        with tf.GradientTape() as tape:
            hidden, pooled, *extras = model(
                small.ids(7), mask, global_attention_mask=[0, 2], **options
            )
            loss = tf.reduce_sum(hidden**2) + tf.reduce_sum(pooled)
            if extras:
                loss += tf.add_n([tf.reduce_sum(x**3) for x in extras[0]["hidden_states"]])
        found = tape.gradient(loss, model.trainable_variables)
        gradients.append([tf.convert_to_tensor(x).numpy() for x in found])
    for one, other in zip(*gradients, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_the_config_makes_the_same_model():
    config = json.loads(json.dumps(MODEL().get_config()))
    twin = LongformerModel.from_config(config)
    assert twin.config == MODEL().config
    ids = small.ids(6)
    twin(ids)
    twin.set_weights(MODEL().get_weights())
    np.testing.assert_array_equal(twin(ids)[0], MODEL()(ids)[0])
    assert isinstance(encoders.make_encoder(twin.config), LongformerModel)


def test_without_a_pooler_nothing_is_pooled():
    model = LongformerModel(small.config(), add_pooling_layer=False)
    hidden, pooled = model(small.ids(4))
    assert hidden.shape == [1, 4, 8]
    assert pooled is None
    assert not any("pooler" in weight.name for weight in model.weights)


WRONG = {
    "nothing": ({}, "Give `input_ids` or `inputs_embeds`"),
    "both": (
        {"input_ids": small.ids(3), "inputs_embeds": np.zeros([1, 3, 8])},
        "Give `input_ids` or `inputs_embeds`",
    ),
    "shape": (
        {"input_ids": small.ids(3), "attention_mask": np.ones([1, 4])},
        r"`attention_mask` must have shape \[batch, length\], here \[1, 3\]",
    ),
    "mask": (
        {"input_ids": small.ids(3), "attention_mask": np.array([[1, 3, 0]])},
        r"`attention_mask` must be at least 0 and below 3 \(0: padding, 1: local, 2: global\)",
    ),
    "global": (
        {"input_ids": small.ids(3), "global_attention_mask": np.array([[2, 1, 1]])},
        r"`global_attention_mask` must be at least 0 and below 2 \(0: local, 1: global; 2 for",
    ),
    "long": (
        {"input_ids": small.ids(39)},
        "`position_ids` .* below 40, the rows of the table of positions, which is enough for 38 "
        "tokens. Received values from 2 to 40",
    ),
}


@pytest.mark.parametrize(("arguments", "message"), WRONG.values(), ids=WRONG.keys())
def test_wrong_inputs_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        MODEL()(**arguments)


def test_a_graph_refuses_too_many_global_tokens():
    model = MODEL(max_global_tokens=1)
    words = "at most `max_global_tokens`, 1, global tokens. Received: 2"
    with pytest.raises(ValueError, match=words):
        model(small.ids(3), global_attention_mask=[0, 1])
    run = tf.function(lambda mask: model(small.ids(3), global_attention_mask=mask)[0])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"max_global_tokens.*Received:\] \[2"):
        run(tf.constant([[1, 1, 0]]))


def test_an_autoregressive_model_has_no_global_tokens():
    with pytest.raises(ValueError, match="can have no global tokens: all would see them"):
        MODEL(autoregressive=True)(small.ids(3), global_attention_mask=[0])
