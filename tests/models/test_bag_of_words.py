"""A model that is told nothing of the pairs of tokens, and the warning of that."""

import numpy as np
import pytest
import tensorflow as tf
from absl import logging

from tests.models.modernbert import small as modernbert
from tests.models.test_input_checks import (
    LINKS,
    LONG_LEN,
    POSITIONED,
    TOKENS,
    make_model,
    make_structure,
    ones,
)


@pytest.fixture(scope="module")
def model():
    return make_model()


@pytest.fixture
def warnings(monkeypatch):
    """What is logged as a warning."""
    logged = []
    monkeypatch.setattr(logging, "warning", lambda text, *args: logged.append(text % args))
    return logged


def test_a_bag_of_words_is_warned_of_once_and_told_what_to_pass(warnings):
    model = make_model()
    for _ in range(3):
        model(**TOKENS)
    by_default = tf.function(lambda *ids: model(*ids))
    by_default(*TOKENS.values())
    assert len(warnings) == 1
    for word in ("etc_document_bert", "bag of words", "`structure=`", "input_utils", "masks and"):
        assert word in warnings[0]


@pytest.mark.parametrize(
    "distance, given",
    [
        (2, {"structure": make_structure()}),
        (0, {"structure": make_structure(distance=0)}),
        (2, {"l2l_att_mask": ones(2, 6, 5)}),
        (2, {"l2l_relative_att_ids": ones(2, 6, 5), "l2g_relative_att_ids": ones(2, 6, 3)}),
    ],
)
def test_who_says_anything_of_the_pairs_is_not_warned(warnings, distance, given):
    make_model(relative_pos_max_distance=distance)(**TOKENS, **given)
    assert not warnings


def test_hard_masks_without_a_structure_are_warned_of_once(warnings):
    ids = modernbert.ids(LONG_LEN), modernbert.ids(3)
    model = modernbert.etc_model(use_hard_l2g_mask=True)
    model(**model.structure(ids[0]))
    modernbert.etc_model()(*ids)
    assert not warnings
    for _ in range(2):
        outputs = model(*ids)
    np.testing.assert_array_equal(outputs[0], modernbert.etc_model()(*ids)[0])
    (warning,) = warnings
    assert warning.startswith("etc_modernbert is called without structure")
    assert "`use_hard_l2g_mask` of" in warning and "`structure=`" in warning


def test_absolute_positions_are_more_than_a_bag_of_words(warnings):
    make_model(**POSITIONED)(**TOKENS)
    assert not warnings


def test_a_bag_of_words_does_not_know_the_order_of_its_words():
    """What the warning says, and the reason for it: only who is within reach counts."""
    model = make_model(local_radius=LONG_LEN)
    order = np.random.default_rng(0).permutation(LONG_LEN)
    shuffled = {**TOKENS, "token_ids": TOKENS["token_ids"][:, order]}
    outputs, moved = model(**TOKENS), model(**shuffled)
    np.testing.assert_allclose(moved[0], outputs[0].numpy()[:, order], atol=1e-5)
    np.testing.assert_allclose(moved[1], outputs[1], atol=1e-5)
    structure = make_structure(np.full_like(LINKS, -1))
    ordered = [model(**x, structure=structure)[0].numpy() for x in (TOKENS, shuffled)]
    assert not np.allclose(ordered[1], ordered[0][:, order], atol=1e-3)
