"""Batches without examples work; texts without tokens are refused where nothing can be made of."""

import numpy as np
import pytest
import tensorflow as tf

from tests.models import head_cases
from tests.models.longformer import small
from tests.models.longformer_char_lm import char_models


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("name", head_cases.CASES)
def test_a_head_of_no_examples_gives_no_rows(name):
    features, _ = head_cases.data(name, count=2)
    model = head_cases.make(name)
    found, none = (model({x: value[:count] for x, value in features.items()}) for count in (2, 0))
    for one, other in zip(tf.nest.flatten(found), tf.nest.flatten(none), strict=True):
        assert other.shape == [0, *one.shape[1:]]


@pytest.mark.parametrize(
    ("model", "given"),
    [
        (small.model, {"input_ids": np.zeros([2, 0], np.int32)}),
        (small.model, {"inputs_embeds": np.zeros([2, 0, 8], np.float32)}),
        (char_models.model, {"input_ids": np.zeros([2, 0], np.int32)}),
    ],
)
def test_a_text_of_no_tokens_is_refused(model, given):
    (name,) = given
    message = f"^`{name}` must have at least one token. Received length: 0$"
    with pytest.raises(ValueError, match=message):
        model()(**given)


def test_a_graph_refuses_a_text_of_no_tokens():
    model = char_models.model(num_hidden_layers=1, attention_window=2, attention_dilation=1)
    graph = tf.function(model, input_signature=[tf.TensorSpec([None, None], tf.int32)])
    with pytest.raises(tf.errors.InvalidArgumentError, match="`input_ids` must have at least one"):
        graph(tf.zeros([2, 0], tf.int32))
