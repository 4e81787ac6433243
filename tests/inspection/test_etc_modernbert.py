"""Looking inside an `EtcModernBertModel`: what its twin computes pair by pair, and its masks.

And inside a ModernBERT, which tells its attention and states itself.
"""

import functools

import numpy as np
import pytest

import etcmodel
from etcmodel import attention_picture, inspection
from etcmodel.models import side_inputs
from tests.models.modernbert import small
from tests.models.modernbert.twins import EXAMPLES, GLOBAL_EXAMPLES, LONG, Twin, inputs_of
from tests.models.random_weights import randomize

MODEL = functools.cache(small.etc_model)
REAL = np.concatenate([EXAMPLES, GLOBAL_EXAMPLES], axis=1) > 0


def dense(part):
    """[queries, heads, keys] of all queries and heads, the long keys first."""
    return np.array(
        [
            [np.concatenate([*part.dense(query, head).values()]) for head in np.unique(part.head)]
            for query in np.unique(part.query)
        ]
    )


@pytest.mark.parametrize("row", [0, 1])
@pytest.mark.parametrize("use_hard_g2l_mask", [False, True])
@pytest.mark.quick_cases(1)
def test_its_attention_is_that_of_each_pair_computed_by_itself(use_hard_g2l_mask, row):
    options = {"use_hard_g2l_mask": use_hard_g2l_mask}
    model, inputs = MODEL(), inputs_of(**options)
    twin = Twin(model, row, **options)
    twin(**inputs)
    told = inspection.attention(model, inputs, example=row)
    assert [(x.layer, x.query_side) for x in told] == [
        (layer, side) for layer in range(4) for side in inspection.SIDES
    ]
    for part in told:
        rows = slice(0, LONG) if part.query_side == "long" else slice(LONG, None)
        real = REAL[row, rows]
        wanted = twin.probs[part.layer][rows][real]
        np.testing.assert_allclose(dense(part)[real], wanted, atol=1e-5)
        assert np.ptp(wanted) > 0.2


@pytest.mark.parametrize("use_hard_g2l_mask", [False, True])
@pytest.mark.quick_cases(1)
def test_who_attends_to_whom_is_what_the_structure_and_the_windows_allow(use_hard_g2l_mask):
    inputs = inputs_of(use_hard_g2l_mask=use_hard_g2l_mask)
    model = MODEL()
    for part in inspection.attention(model, inputs):
        is_full = model.config.layer_kinds[part.layer] == "full_attention"
        radius = LONG - 1 if is_full else model.config.radius
        dense_masks = side_inputs.side_inputs_of(inputs["structure"], radius)
        allowed = {
            "long": [
                attention_picture.from_windows(dense_masks.l2l_att_mask[0].numpy(), radius) == 1,
                dense_masks.l2g_att_mask[0].numpy() == 1,
            ],
            "global": [
                dense_masks.g2l_att_mask[0].numpy() == 1,
                dense_masks.g2g_att_mask[0].numpy() == 1,
            ],
        }
        wanted = np.concatenate(allowed[part.query_side], axis=1)
        for head in range(2):
            np.testing.assert_array_equal(dense(part)[:, head] > 0, wanted)
            np.testing.assert_allclose(dense(part)[:, head].sum(-1), 1, atol=1e-5)


def test_its_states_are_those_of_the_twin_on_both_sides():
    model, inputs = MODEL(), inputs_of()
    states = inspection.hidden_states(model, inputs)
    twin = Twin(model, 0)
    twin(**inputs)
    assert len(states) == len(twin.states) == 5
    for sides, wanted in zip(states, twin.states, strict=True):
        found = np.concatenate([side[0] for side in sides])
        np.testing.assert_allclose(found, wanted, atol=2e-5, rtol=1e-5)


def test_a_text_without_global_tokens_and_a_head_are_looked_into_too():
    ids, none = small.ids(LONG, 2), np.zeros([2, 0], int)
    parts = inspection.attention(MODEL(), {"token_ids": ids, "global_token_ids": none})
    assert [(x.query_side, x.num_keys) for x in parts] == [("long", (LONG, 0))] * 4
    head = etcmodel.EtcForSequenceClassification(MODEL(), labels=["a", "b"])
    batch = {"token_ids": ids}
    of_encoder = inspection.attention(MODEL(), MODEL().structure(ids))
    for one, other in zip(inspection.attention(head, batch), of_encoder, strict=True):
        np.testing.assert_array_equal(dense(one), dense(other))


@pytest.mark.slow
def test_a_page_shows_it_beside_the_parts_of_tokens_in_a_score(tmp_path):
    model, inputs = MODEL(), MODEL().structure(small.ids(LONG))
    told = inspection.attention(model, inputs, heads=[inspection.MEAN])
    found = inspection.integrated_gradients(
        model, inputs, lambda outputs: outputs[1][:, 0, 0], baseline_id=1
    )
    long_parts, global_parts = (x[0] for x in found.tokens)
    assert long_parts.shape == (LONG,) and global_parts.shape == (1,)
    words = [f"word{number}" for number in range(LONG)]
    inspection.write_page(
        tmp_path / "page.html", told, words, ["whole"], attributions=(long_parts, global_parts)
    )
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "word8" in page and "whole" in page


TEXTS = {"input_ids": small.ids(7, 2), "attention_mask": np.array([[1] * 7, [1] * 5 + [0] * 2])}


@pytest.fixture(scope="module")
def plain():
    """A ModernBERT that classifies."""
    made = etcmodel.ModernBertForSequenceClassification(small.config(skip_padding=True))
    randomize(made)
    return made


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("has_head", [False, True])
def test_without_global_tokens_its_attention_is_that_of_the_call(plain, has_head):
    _, extras = plain.encoder(**TEXTS, output_attentions=True)
    looked_at = plain if has_head else plain.encoder
    for part in inspection.attention(looked_at, TEXTS, example=1):
        wanted = extras["attentions"][part.layer][1].numpy()
        found = np.zeros_like(wanted)
        found[part.head, part.query, part.key] = part.probability
        np.testing.assert_allclose(found, wanted, atol=1e-6)


def test_without_global_tokens_its_states_are_those_of_the_call(plain):
    _, extras = plain.encoder(**TEXTS, output_hidden_states=True)
    is_token = TEXTS["attention_mask"] > 0
    states = inspection.hidden_states(plain, TEXTS)
    for (found,), other in zip(states, extras["hidden_states"], strict=True):
        np.testing.assert_allclose(found[is_token], other[is_token], atol=1e-4)
