"""Inputs of encoders and decoders that cannot be are refused in a line, at the door."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from tests.models.led import models as led
from tests.models.longt5 import models as longt5
from tests.models.pegasus_x import models as pegasus_x

SYSTEMS = {"led": led, "longt5": longt5, "pegasus_x": pegasus_x}
SIZE = 16  # Of embeddings, in all of them.


@functools.cache
def model_of(system):
    return SYSTEMS[system].model()


def call(system, **changes):
    ids = {"input_ids": longt5.ids(2, 9), "labels": longt5.ids(2, 4, seed=1)}
    given = {name: x for name, x in {**ids, **changes}.items() if x is not None}
    return model_of(system)({name: tf.constant(x) for name, x in given.items()})


def ones(*shape):
    return np.ones(shape, np.int32)


@pytest.mark.quick_cases(16)
@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize(
    "changes, message",
    [
        ({"attention_mask": ones(2, 8)}, r"`attention_mask` .* here \[2, 9\]. .*: \[2, 8\]"),
        ({"attention_mask": ones(1, 9)}, r"`attention_mask` .* here \[2, 9\]. .*: \[1, 9\]"),
        ({"attention_mask": 3 * ones(2, 9)}, r"`attention_mask` must be at least 0 and below"),
        ({"input_ids": ones(2, 0)}, "`input_ids` must have at least one token. Received length: 0"),
        ({"input_ids": ones(9)}, r"`input_ids` must have shape \[batch, length\]"),
        ({"input_ids": 30 * ones(2, 9)}, "`input_ids` .* below 30, which is `vocab_size`"),
        ({"input_ids": -ones(2, 9)}, "`input_ids` must be at least 0 .* from -1 to -1"),
        (
            {"input_ids": None, "inputs_embeds": np.ones([2, 9, 5], np.float32)},
            r"`inputs_embeds` .* here \[batch, length, 16\]. Received shape: \[2, 9, 5\]",
        ),
        ({"labels": ones(3, 4)}, r"`decoder_input_ids` .* here \[2, length\]. .*: \[3, 4\]"),
        ({"labels": ones(4)}, r"`labels` must have shape \[batch, length\]"),
        ({"labels": ones(2, 4) * [0, 1, 2, 30]}, "`labels` .* below 30, .* or -100 for none"),
        ({"labels": [[30, 1]] * 2}, "`decoder_input_ids` .* below 30, which is `vocab_size`"),
        ({"decoder_input_ids": ones(2, 3)}, r"`labels` .* here \[2, 3\]. .*: \[2, 4\]"),
        (
            {"decoder_attention_mask": ones(2, 3)},
            r"`decoder_attention_mask` .* here \[2, 4\]. Received shape: \[2, 3\]",
        ),
        ({"decoder_attention_mask": 2 * ones(2, 4)}, "`decoder_attention_mask` .* below 2"),
        (
            {"encoder_output": np.ones([2, 9, SIZE], np.float32), "attention_mask": ones(2, 8)},
            r"`encoder_mask` .* here \[2, 9\]. Received shape: \[2, 8\]",
        ),
    ],
)
def test_what_does_not_fit_is_named(system, changes, message):
    with pytest.raises(ValueError, match=message) as error:
        call(system, **changes)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("system", ["longt5", "pegasus_x"])
def test_a_mask_knows_no_global_tokens(system):
    message = r"`attention_mask` must .* below 2 \(0: padding, 1: a token\). .* 2 to 2"
    with pytest.raises(ValueError, match=message):
        call(system, attention_mask=2 * ones(2, 9))


@pytest.mark.parametrize("system", SYSTEMS)
def test_labels_may_be_a_list(system):
    rows, ids = [[3, 4, -100], [5, 6, 7]], tf.constant(longt5.ids(2, 9))
    losses = [model_of(system)(ids, labels=x)["loss"] for x in (rows, np.array(rows))]
    assert np.isfinite(losses[0])
    np.testing.assert_array_equal(*losses)
    with pytest.raises(ValueError, match="`labels` must have shape .* no tensor can be made of"):
        model_of(system)(ids, labels=[[3], [4, 5]])


@pytest.mark.slow
def test_a_graph_raises_when_it_runs():
    specs = [tf.TensorSpec([None, None], tf.int32)] * 3
    model = longt5.model(num_layers=1, encoder_attention_type="local")

    @tf.function(input_signature=specs, autograph=False)
    def loss(ids, mask, labels):
        return model(ids, mask, labels=labels)["loss"]

    right = (longt5.ids(2, 9), ones(2, 9), longt5.ids(2, 4))
    np.testing.assert_allclose(
        loss(*map(tf.constant, right)), model(*right[:2], labels=right[2])["loss"], rtol=1e-6
    )
    for place, wrong, message in (
        (1, ones(2, 8), r"`attention_mask` must have shape .* \[2 8\]"),
        (1, 2 * ones(2, 9), r"`attention_mask` must be at least 0 and below 2"),
        (0, ones(2, 0), "`input_ids` must have at least one token|`attention_mask`"),
        (2, ones(3, 4), r"`decoder_input_ids` must have shape .* \[3 4\]"),
        (2, ones(2, 4) * 40, "`decoder_input_ids` must be .* below 30|`labels` must be"),
    ):
        given = [*right[:place], wrong, *right[place + 1 :]]
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            loss(*map(tf.constant, given))
