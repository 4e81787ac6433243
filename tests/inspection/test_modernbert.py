"""Looking inside a ModernBERT: the attention that it computes, and the states of its layers."""

import numpy as np
import pytest

import etcmodel
from etcmodel import inspection
from tests.models.modernbert import small
from tests.models.random_weights import randomize

IDS = small.ids(7, 2)
MASK = np.array([[1] * 7, [1] * 5 + [0] * 2])


@pytest.fixture(scope="module")
def model():
    made = etcmodel.ModernBertForSequenceClassification(small.config(skip_padding=True))
    randomize(made)
    return made


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("has_head", [False, True])
def test_its_attention_is_that_of_the_call(model, has_head):
    inputs = {"input_ids": IDS, "attention_mask": MASK}
    _, extras = model.encoder(**inputs, output_attentions=True)
    looked_at = model if has_head else model.encoder
    for part in inspection.attention(looked_at, inputs, example=1):
        wanted = extras["attentions"][part.layer][1].numpy()
        found = np.zeros_like(wanted)
        found[part.head, part.query, part.key] = part.probability
        np.testing.assert_allclose(found, wanted, atol=1e-6)


def test_its_states_are_those_of_the_call(model):
    inputs = {"input_ids": IDS, "attention_mask": MASK}
    states = inspection.hidden_states(model, inputs)
    _, extras = model.encoder(**inputs, output_hidden_states=True)
    assert len(states) == len(extras["hidden_states"])
    for (found,), other in zip(states, extras["hidden_states"], strict=True):
        np.testing.assert_allclose(found[MASK > 0], other[MASK > 0], atol=1e-4)
