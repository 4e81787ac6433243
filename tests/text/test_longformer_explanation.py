"""Who is said to see whom, against the probabilities of a model with the same windows."""

import types

import numpy as np
import pytest
import tensorflow as tf

from etcmodel.text.explanation import LongformerExplanation
from tests.models.longformer import small

LENGTH = 14


def explanation(config, is_global=()):
    """Of a row of tokens without text, some of which are global."""
    mask = np.zeros([1, LENGTH], np.int32)
    mask[0, list(is_global)] = 1
    encoding = types.SimpleNamespace(
        row=0,
        token_ids=np.arange(LENGTH),
        tokens=[str(place) for place in range(LENGTH)],
        texts=np.zeros(LENGTH, np.int32),
    )

    class Batch(dict):
        long_shape = (1, LENGTH)

    return LongformerExplanation(Batch(global_attention_mask=mask), encoding, config)


def seen_by(model):
    """bool [LENGTH, LENGTH]: whether any head of any layer attends, by its probabilities."""
    ids = tf.constant(small.ids(LENGTH), tf.int32)
    *_, extras = model(ids, output_attentions=True)
    seen = np.zeros([LENGTH, LENGTH], bool)
    config = model.config
    layers = zip(extras["attentions"], config.radii, config.dilations, strict=True)
    for probs, radius, dilation in layers:
        by_head = dilation if isinstance(dilation, tuple) else [dilation] * 2
        right = probs.shape[-1] - 1 - radius
        for head, step in enumerate(by_head):
            for query, offset in np.argwhere(probs[0, head].numpy() > 0):
                key = query + (offset - radius) * step
                assert 0 <= key < LENGTH and right in (0, radius)
                seen[query, key] = True
    return seen


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"autoregressive": True},
        {"attention_window": 4, "attention_dilation": 3},
        {"attention_window": 4, "attention_dilation": ((1, 4), 2)},
        {"attention_window": 4, "attention_dilation": 2, "autoregressive": True},
    ],
)
def test_who_sees_whom_is_as_the_probabilities_say(changes):
    model = small.model(**changes)
    told, seen = explanation(model), seen_by(model)
    np.testing.assert_array_equal(told.pair_labels()["l2l"] >= 0, seen)
    for query in range(LENGTH):
        for key in range(LENGTH):
            verb = "attends to" if seen[query, key] else "does not attend to"
            start = f"{query} '{query}' {verb} {key} '{key}': "
            assert told.why(query, key).startswith(start), told.why(query, key)


def test_the_reason_is_told():
    causal = explanation(small.config(autoregressive=True))
    assert causal.why(5, 7).endswith(
        "2 places later, and tokens attend only to what is before them."
    )
    dilated = explanation(small.config(attention_window=4, attention_dilation=3))
    assert dilated.why(5, 11).endswith(
        "6 places apart, within half the window, 2, with dilation 3."
    )
    assert dilated.why(5, 6).endswith("in a gap of half the window, 2, with dilation 3.")
    assert dilated.why(5, 12).endswith("beyond half the window, 2, with dilation 3.")
    by_layer = explanation(small.config())
    assert by_layer.why(5, 8).endswith("within half the window, 2 to 3, by layer.")
    with pytest.raises(ValueError, match="autoregressive model takes no global tokens"):
        explanation(small.config(autoregressive=True), is_global=[0])
