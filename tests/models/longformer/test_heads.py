"""Longformer's heads and their losses; what holds for others, too, is in `test_text_heads`."""

import numpy as np
import pytest
import tensorflow as tf

from etcmodel.models import longformer
from etcmodel.models.heads import losses
from tests.models import text_heads
from tests.models.longformer import small
from tests.models.random_weights import randomize


def ids(length=7, batch=2):
    return text_heads.with_separators(small.ids(length, batch))


CASES = text_heads.cases("Longformer", ids())


def model_of(case):
    kind, settings, *_ = case
    model = kind(small.config(num_hidden_layers=1, attention_window=4), **settings)
    randomize(model)
    return model


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("classes", [[1, 0, 0, 0, 0, 0, 0]] * 2),
        ("answers", [[1, 1, 0, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0, 0]]),
        ("tokens", [[0] * 7] * 2),
        ("masked_lm", [[0] * 7] * 2),
    ],
)
def test_what_is_global_by_default(name, wanted):
    model = model_of(CASES[name])
    found = model({"input_ids": ids()})
    given = model({"input_ids": ids(), "global_attention_mask": np.array(wanted)})
    for one, other in zip(tf.nest.flatten(found), tf.nest.flatten(given), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_language_model_has_the_exact_gelu_before_its_logits_whatever_the_encoder_has():
    config = small.config(hidden_act="relu", layer_norm_eps=0.1)
    model = longformer.LongformerForMaskedLM(config)
    randomize(model)
    weights = {x.name.rpartition("mlm/")[2]: x.numpy() for x in model.language_model.weights}
    hidden = model.encoder(ids())[0].numpy() @ weights["transform/dense/kernel:0"]
    hidden = tf.nn.gelu(hidden + weights["transform/dense/bias:0"]).numpy()
    centered = hidden - hidden.mean(axis=-1, keepdims=True)
    hidden = centered / np.sqrt(np.square(centered).mean(axis=-1, keepdims=True) + 0.1)
    hidden = hidden * weights["transform/LayerNorm/gamma:0"]
    hidden += weights["transform/LayerNorm/beta:0"]
    wanted = hidden @ model.encoder.get_token_embedding_table().numpy().T
    np.testing.assert_allclose(
        model(ids()), wanted + weights["output_bias/bias:0"], rtol=1e-4, atol=1e-5
    )


def test_the_second_parts_of_choices_are_global():
    model, features = model_of(CASES["choices"]), CASES["choices"][2]
    first, second = [0, 0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 1, 1, 1]
    mask = np.array([[first, second], [second, first]])
    found = model({"input_ids": features, "global_attention_mask": mask})
    np.testing.assert_array_equal(model(features), found)


def test_a_text_without_a_separator_is_refused():
    with pytest.raises(ValueError, match="Each text must have a separator"):
        model_of(CASES["answers"])(small.ids(5))


def test_embeddings_alone_do_not_tell_what_is_global():
    with pytest.raises(ValueError, match="Give `global_attention_mask`"):
        model_of(CASES["answers"])({"inputs_embeds": np.zeros([1, 4, 8], np.float32)})


def test_a_problem_of_another_type_is_refused():
    with pytest.raises(ValueError, match="`problem_type` must be one of"):
        longformer.LongformerForSequenceClassification(small.config(), problem_type="ranking")


def test_losses_are_means_over_all_tokens_with_a_label():
    logits = np.random.default_rng(0).normal(size=[2, 3, 4]).astype(np.float32)
    labels = np.array([[1, -100, -100], [0, 3, 2]])
    log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    known = [log_probs[0, 0, 1], *log_probs[1, [0, 1, 2], [0, 3, 2]]]
    np.testing.assert_allclose(
        losses.MeanCrossentropy()(labels, logits), -np.mean(known), rtol=1e-6
    )
    assert losses.MeanCrossentropy()(np.full([2, 3], -100), logits) == 0


@pytest.mark.parametrize("weights", [[2.0, 0.0], [[1.0, 5.0, 5.0], [0.0, 0.5, 0.0]]])
def test_weights_multiply_what_an_example_or_a_token_adds_to_the_mean(weights):
    logits = np.random.default_rng(0).normal(size=[2, 3, 4]).astype(np.float32)
    labels = np.array([[1, -100, -100], [0, 3, 2]])
    log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    of_token = np.broadcast_to(np.reshape(weights, [2, -1]), [2, 3])
    known = [(0, 0, 1), (1, 0, 0), (1, 1, 3), (1, 2, 2)]
    expected = -np.mean([of_token[i, j] * log_probs[i, j, label] for i, j, label in known])
    found = losses.MeanCrossentropy()(labels, logits, sample_weight=np.array(weights))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_positions_beyond_the_text_do_not_count():
    logits = np.random.default_rng(0).normal(size=[2, 3]).astype(np.float32)
    log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    loss = losses.PositionCrossentropy()
    np.testing.assert_allclose(loss(np.array([2, 3]), logits), -log_probs[0, 2], rtol=1e-6)
    clipped = -np.mean([log_probs[0, 0], log_probs[1, 1]])
    np.testing.assert_allclose(loss(np.array([-5, 1]), logits), clipped, rtol=1e-6)


def test_arguments_are_given_by_name_as_in_hugging_face():
    model = longformer.LongformerForMaskedLM(small.config())
    given = {
        "attention_mask": np.array([[1] * 6 + [0]] * 2),
        "global_attention_mask": np.array([[1] + [0] * 6] * 2),
    }
    named = model(ids(), **given)
    np.testing.assert_array_equal(model(input_ids=ids(), **given), named)
    np.testing.assert_array_equal(model(**{"input_ids": ids(), **given, "labels": ids()}), named)
    states = model(input_ids=ids(), **given, token_type_ids=None, output_hidden_states=True)
    np.testing.assert_allclose(states["logits"], named, atol=1e-5)
    assert model.config is model.encoder.config
    np.testing.assert_array_equal(named, model({"input_ids": ids(), **given}))
    assert np.abs(named - model(ids())).max() > 1e-4


@pytest.mark.parametrize("name", ["tokens", "masked_lm"])
def test_a_graph_of_one_without_global_tokens_warns_of_nothing(name, caplog):
    model = model_of(CASES[name])
    tf.function(lambda ids: model(ids))(tf.constant(ids()))  # With AutoGraph.
    assert not [x.getMessage() for x in caplog.records if x.levelname == "WARNING"]
