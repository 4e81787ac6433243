"""Padding on the left changes no vector and no class of a text, in no system."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from etcmodel.models import features as features_lib
from etcmodel.models import heads, modeling, pooling, sequence_classifiers
from etcmodel.models.gmat import GmatForMultipleChoice, GmatForSequenceClassification
from etcmodel.models.longformer import (
    LongformerForMultipleChoice,
    LongformerForSequenceClassification,
    LongformerModel,
)
from tests.models import head_cases
from tests.models.gmat import small as gmats
from tests.models.longformer import small as longformers
from tests.models.random_weights import randomize

PADDING = 3


def left_padded(x, padding=0, width=PADDING):
    return np.pad(x, [[0, 0]] * (x.ndim - 1) + [[width, 0]], constant_values=padding)


def randomized(made):
    """The model with weights that tell tokens apart."""
    randomize(made)
    return made


def etc_config(has_positions):
    return head_cases.config(max_absolute_position_embeddings=20 * has_positions)


@functools.cache
def etc_with(has_positions):
    return randomized(heads.EtcForSequenceClassification(etc_config(has_positions)))


def etc_ids(batch=2, length=7):
    return np.random.default_rng(0).integers(6, 30, [batch, length])


def gmat_ids(batch):
    return gmats.ids(batch, 7) % 25 + 3


def vectors(model, features):
    """Of each pooling, of one run of the encoder: dict of str to float32 [batch, hidden_size]."""
    inputs = features_lib.completed(features, model.config)
    outputs = model.encoder(**inputs.arguments)
    return {kind: pooling.pool(*outputs, inputs, kind).numpy() for kind in pooling.POOLINGS}


@pytest.mark.parametrize("has_positions", [False, True])
def test_vectors_of_an_etc(has_positions):
    model, ids = etc_with(has_positions), etc_ids()
    wanted, found = vectors(model, ids), vectors(model, left_padded(ids))
    assert not found["sentence"][:, 2:].any()  # Global tokens beyond those of the text.
    found["sentence"] = found["sentence"][:, :2]
    for kind in pooling.POOLINGS:
        np.testing.assert_allclose(found[kind], wanted[kind], atol=1e-5, err_msg=kind)


def test_vectors_of_an_etc_whose_global_input_is_padded_on_the_left_too():
    ids, links = etc_ids(), np.array([[0, 0, 0, 1, 1, 1, 1]] * 2)
    alone = {"token_ids": ids, "links": links, "global_token_ids": np.array([[1, 2]] * 2)}
    padded = {
        "token_ids": left_padded(ids),
        "links": left_padded(np.where(links >= 0, links + 2, -1), -1),
        "global_token_ids": left_padded(alone["global_token_ids"], width=2),
    }
    wanted, found = (vectors(etc_with(True), x) for x in (alone, padded))
    for kind in pooling.OF_TEXTS:
        np.testing.assert_allclose(found[kind], wanted[kind], atol=1e-5, err_msg=kind)


@pytest.mark.quick_cases(4)
@pytest.mark.parametrize("kind", pooling.OF_TEXTS)
@pytest.mark.parametrize("head", ["classes", "answers", "choices"])
def test_heads_of_an_etc(head, kind):
    make = {
        "classes": heads.EtcForSequenceClassification,
        "answers": heads.EtcForQuestionAnswering,
        "choices": heads.EtcForMultipleChoice,
    }[head]
    model = randomized(make(etc_config(False), pooling=kind))
    ids = etc_ids(4)
    ids = ids.reshape([2, 2, -1]) if head == "choices" else ids
    wanted, found = (model({"token_ids": x}) for x in (ids, left_padded(ids)))
    if head == "answers":
        np.testing.assert_allclose(found["start"][:, PADDING:], wanted["start"], atol=1e-5)
        wanted, found = wanted["type"], found["type"]
    np.testing.assert_allclose(found, wanted, atol=1e-5)


def text(ids, pad=1):
    """(arguments of a text, those of the same one with padding on the left)."""
    mask = np.ones_like(ids)
    return (
        {"input_ids": ids, "attention_mask": mask},
        {"input_ids": left_padded(ids, pad), "attention_mask": left_padded(mask)},
    )


def check_head(model, alone, padded):
    wanted = model(alone)
    np.testing.assert_allclose(model(padded), wanted, atol=1e-5)
    differs = {**padded, "input_ids": padded["input_ids"].copy()}
    differs["input_ids"][..., PADDING] -= 1  # The first token does matter.
    assert np.abs(model(differs) - wanted).max() > 1e-3


@functools.cache
def longformer():
    return randomized(LongformerForSequenceClassification(longformers.config()))


def test_classes_of_a_longformer():
    check_head(longformer(), *text(longformers.ids(7, 2)))


def test_choices_of_a_longformer():
    model = randomized(LongformerForMultipleChoice(longformers.config()))
    ids = longformers.ids(7, 4)
    ids[:, 2] = model.config.sep_token_id
    check_head(model, *text(ids.reshape([2, 2, 7])))


def test_the_first_token_is_global_in_rows_of_different_padding():
    model = longformer()
    ids = longformers.ids(7, 2)
    (alone, padded) = text(ids)
    mixed = {
        name: np.concatenate([padded[name][:1], np.pad(x[1:], [[0, 0], [0, PADDING]])])
        for name, x in alone.items()
    }
    np.testing.assert_allclose(model(mixed), model(alone), atol=1e-5)
    states = model({**mixed, "global_attention_mask": None}, output_attentions=True)
    assert states["global_attentions"][0].shape[-1] == 1  # One global token a row.


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["gmat", "longformer"])
def test_in_a_graph_that_knows_no_length(kind):
    model = {
        "longformer": lambda: LongformerForSequenceClassification(
            longformers.config(num_hidden_layers=1, attention_window=4)
        ),
        "gmat": lambda: GmatForSequenceClassification(gmats.config(num_hidden_layers=1)),
    }[kind]()
    alone, padded = text(longformers.ids(7, 2) % 25 + 3, model.config.pad_token_id)
    spec = {name: tf.TensorSpec([None, None], tf.int32) for name in padded}
    traced = tf.function(model, input_signature=[spec], autograph=False)
    given = {name: tf.constant(x, tf.int32) for name, x in padded.items()}
    np.testing.assert_allclose(traced(given), model(alone), atol=1e-5)


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("changes", [{}, {"num_memory_tokens": 0}, gmats.COMPRESSED])
def test_classes_of_a_gmat(changes):
    model = randomized(GmatForSequenceClassification(gmats.config(**changes)))
    check_head(model, *text(gmat_ids(2), 0))


def test_choices_of_a_gmat():
    model = randomized(GmatForMultipleChoice(gmats.config()))
    check_head(model, *text(gmat_ids(4).reshape([2, 2, 7]), 0))


def test_hidden_states_of_a_gmats_head_need_padding_at_the_end():
    model = GmatForSequenceClassification(gmats.config())
    alone, padded = text(gmat_ids(2), 0)
    assert "hidden_states" in model(alone, output_hidden_states=True)
    with pytest.raises(ValueError, match="Hidden states and attentions .* padding at the end"):
        model(padded, output_hidden_states=True)


CONFIGS = {
    "etc": lambda: head_cases.config(segment_vocab_size=4),
    "longformer": longformers.config,
    "gmat": gmats.config,
}


@pytest.mark.parametrize("kind", CONFIGS)
def test_classifiers_of_one_batch_for_all_systems(kind):
    config = CONFIGS[kind]()
    model = sequence_classifiers.make_sequence_classifier(
        config, num_labels=3, problem_type="single_label_classification", pooling="first"
    )
    randomized(model)
    ids = etc_ids()
    ones = np.ones_like(ids)
    own = {"token_ids": ids, "segment_ids": 0 * ones, "example_ids": ones, "links": 0 * ones}
    of_global = {name: np.ones([2, 1], int) for name in ("global_token_ids", "global_example_ids")}
    of_global["global_segment_ids"] = np.zeros([2, 1], int)
    fills = {"token_ids": 0, "segment_ids": 0, "example_ids": 0, "links": -1}
    padded = {name: left_padded(x, fills[name]) for name, x in own.items()}
    wanted, found = (
        model({name: tf.constant(y, tf.int32) for name, y in {**x, **of_global}.items()})
        for x in (own, padded)
    )
    np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_a_row_of_padding_alone_is_as_ever():
    model = randomized(LongformerModel(longformers.config(), add_pooling_layer=True))
    ids = np.full([1, 4], model.config.pad_token_id)
    hidden, pooled = model(ids, attention_mask=np.zeros_like(ids))
    np.testing.assert_allclose(pooled, model.pooler(hidden[:, 0]), atol=1e-6)
    vectors = modeling.EtcModel(etc_config(False)).embed(np.zeros([1, 4], int), pooling="first")
    assert np.isfinite(vectors).all()
