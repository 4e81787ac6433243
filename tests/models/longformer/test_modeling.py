"""`LongformerModel`'s global tokens and pooler; others' properties are in `test_every_encoder`."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from etcmodel.models.longformer import LongformerModel
from tests.models.longformer import small

MODEL = functools.cache(small.model)


def hidden_of(ids, attention_mask, global_mask, model=None):
    model = model or MODEL()
    output, _ = model(
        ids, attention_mask=attention_mask, global_attention_mask=global_mask, training=False
    )
    return output.numpy()


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize(
    "value", [[0, 4], tf.ragged.constant([[4, 0], [0, 4]])], ids=["all", "each"]
)
def test_positions_say_what_is_global(value):
    ids, mask = small.ids(9, batch=2), np.zeros([2, 9], int)
    mask[:, [0, 4]] = 1
    np.testing.assert_array_equal(hidden_of(ids, None, value), hidden_of(ids, None, mask))
    np.testing.assert_array_equal(hidden_of(ids, 1 + mask, None), hidden_of(ids, None, mask))


def test_without_a_pooler_nothing_is_pooled():
    model = LongformerModel(small.config(), add_pooling_layer=False)
    hidden, pooled = model(small.ids(4))
    assert hidden.shape == [1, 4, 8]
    assert pooled is None
    assert not any("pooler" in weight.name for weight in model.weights)


WRONG = {
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


@pytest.mark.slow
def test_compiled_by_xla_more_global_tokens_than_expected_are_local():
    """It cannot raise there."""
    model, ids, mask = MODEL(max_global_tokens=3), small.ids(7, 2), np.ones([2, 7], int)
    many = np.array([[1, 0, 1, 0, 1, 0, 1], [0] * 7])
    compiled = tf.function(lambda *args: model(*args)[0], jit_compile=True, autograph=False)
    first_three = np.where(np.arange(7) < 6, many, 0)
    found = compiled(*map(tf.constant, (ids, mask, many)))
    np.testing.assert_allclose(found, hidden_of(ids, mask, first_three), atol=1e-5)
