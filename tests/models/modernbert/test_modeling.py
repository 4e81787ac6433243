"""`ModernBertModel`'s layers, and texts without padding; the rest is in `test_every_encoder`."""

import dataclasses
import functools

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

import etcmodel
from etcmodel.layers.attention import rotary as rotary_layers
from etcmodel.models import padding
from etcmodel.ops import packing, rotary
from tests.models.modernbert import small
from tests.models.random_weights import randomize

MODEL = functools.cache(small.model)
SAME = {"atol": 2e-5, "rtol": 1e-5}
IN_GRAPH = pytest.param(True, marks=pytest.mark.slow)
MASKS = {
    "right": [[1] * 9, [1] * 4 + [0] * 5],
    "left": [[0] * 6 + [1] * 3, [1] * 9],
    "holes": [[0, 1, 0, 0, 0, 0, 1, 1, 0], [1, 0, 1, 1, 0, 1, 1, 0, 0]],
    "none is a token": [[0] * 9, [1] * 3 + [0] * 6],
}


def hidden_of(ids, mask=None, model=None, **options):
    return (model or MODEL())(ids, attention_mask=mask, training=False, **options).numpy()


def test_sliding_layers_see_what_is_near_and_full_ones_everything():
    model = MODEL()
    _, extras = model(small.ids(9), output_attentions=True)
    distance = np.abs(np.arange(9)[:, np.newaxis] - np.arange(9))
    for kind, probs in zip(model.config.layer_kinds, extras["attentions"], strict=True):
        sees = np.full([9, 9], True) if kind == "full_attention" else distance <= 2
        np.testing.assert_array_equal(probs[0, 1] > 0, sees)
        np.testing.assert_allclose(np.sum(probs, -1), 1, atol=1e-6)


def test_positions_count_only_by_their_distance():
    ids, positions = small.ids(9), np.arange(9)[np.newaxis]
    shifted = hidden_of(ids, position_ids=positions + 100)
    np.testing.assert_allclose(shifted, hidden_of(ids), atol=1e-4)
    assert np.abs(hidden_of(ids, position_ids=2 * positions) - shifted).max() > 1e-3


def test_turns_are_those_of_complex_numbers():
    rng, positions = np.random.default_rng(0), np.array([[0, 3, 50]])
    joint = rng.normal(size=[1, 3, 3 * 2 * 6]).astype(np.float32)
    turns = rotary.turns_at(positions, 6, 100.0)
    queries, _, values = rotary.turned_heads(joint, turns, 2)
    parts = joint.reshape(1, 3, 3, 2, 6)
    as_points = parts[..., :3] + 1j * parts[..., 3:]
    angles = positions[..., np.newaxis] * 100.0 ** (-np.arange(3) / 3)
    turned = as_points[:, :, 0] * np.exp(1j * angles)[:, :, np.newaxis]
    wanted = np.concatenate([turned.real, turned.imag], -1)
    np.testing.assert_allclose(queries, wanted, atol=1e-5)
    np.testing.assert_array_equal(values, parts[:, :, 2])


@pytest.mark.parametrize("kind", MASKS)
def test_who_sees_a_token_as_counted_one_by_one(kind):
    mask = np.array(MASKS[kind]) > 0
    for radius in (0, 1, 3, 20, None):
        found = rotary_layers.tokens_that_see(tf.constant(mask), radius).numpy()
        for row, place in np.ndindex(*mask.shape):
            near = range(9) if radius is None else range(place - radius, place + radius + 1)
            assert found[row, place] == any(mask[row, x] for x in near if 0 <= x < 9)


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize("in_graph", [False, IN_GRAPH])
@pytest.mark.slow_cases(2)
def test_without_padding_tokens_are_the_same(kind, in_graph):
    mask = np.array(MASKS[kind])
    skipping = MODEL(skip_padding=True)
    call = functools.partial(skipping, training=False)
    call = tf.function(call, autograph=False, reduce_retracing=True) if in_graph else call
    found = call(tf.constant(small.ids(9, 2)), attention_mask=tf.constant(mask)).numpy()
    np.testing.assert_allclose(found[mask > 0], hidden_of(small.ids(9, 2), mask)[mask > 0], **SAME)
    outside = ~packing.packed_rows(tf.constant(mask > 0)).is_packed.numpy()
    assert not found[outside].any()


def test_what_is_said_otherwise_is_packed_too():
    mask = np.array(MASKS["left"])
    rng = np.random.default_rng(0)
    options = {"position_ids": np.cumsum(mask, 1), "inputs_embeds": rng.normal(size=[2, 9, 8])}
    options["inputs_embeds"] = options["inputs_embeds"].astype(np.float32)
    for model in (MODEL(), MODEL(skip_padding=True)):
        output, extras = model(attention_mask=mask, output_hidden_states=True, **options)
        assert len(extras["hidden_states"]) == 5
        kept = [x.numpy()[mask > 0] for x in (output, *extras["hidden_states"])]
        wanted = kept if model is MODEL() else wanted  # noqa: F821
    for one, other in zip(kept, wanted, strict=True):
        np.testing.assert_allclose(one, other, **SAME)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("kind", MASKS)
def test_padding_that_is_computed_for_attentions_is_0_all_the_same(kind):
    ids, mask, model = small.ids(9, 2), np.array(MASKS[kind]), MODEL(skip_padding=True)
    options = {"attention_mask": mask, "output_hidden_states": True}
    output, extras = model(ids, output_attentions=True, **options)
    packed, others = model(ids, **options)
    states = zip(
        [output, *extras["hidden_states"]], [packed, *others["hidden_states"]], strict=True
    )
    for found, wanted in states:
        np.testing.assert_allclose(found, wanted, **SAME)
        np.testing.assert_array_equal(found == 0, wanted.numpy() == 0)


def test_answers_are_the_same_with_attentions():
    model = etcmodel.ModernBertForQuestionAnswering(small.config(skip_padding=True))
    randomize(model)
    features = {"input_ids": small.ids(9, 2), "attention_mask": np.array(MASKS["right"])}
    found, wanted = model(features, output_attentions=True), model(features)
    np.testing.assert_allclose(found["end"], wanted["end"], **SAME)


@pytest.mark.slow
def test_one_row_of_positions_serves_all_rows_of_any_batch():
    skipping, mask = MODEL(skip_padding=True), np.array([*MASKS["right"], [1] * 2 + [0] * 7])
    spec = tf.TensorSpec([None, None], tf.int32)
    call = tf.function(lambda *x: skipping(*x), [spec] * 3, autograph=False)
    ids, positions = small.ids(9, 3).astype(np.int32), 2 * np.arange(9, dtype=np.int32)
    for rows in (1, 3):
        given = np.tile(positions, [rows, 1])
        found = call(ids, mask.astype(np.int32), given).numpy()[mask > 0]
        wanted = hidden_of(ids, mask, position_ids=given)[mask > 0]
        np.testing.assert_allclose(found, wanted, **SAME)


@pytest.mark.parametrize("in_graph", [False, IN_GRAPH])
def test_an_empty_batch_has_no_states(in_graph):
    skipping, spec = MODEL(skip_padding=True), tf.TensorSpec([None, None], tf.int32)
    traced = tf.function(lambda *x: skipping(*x), [spec] * 2, autograph=False)
    call = traced if in_graph else skipping
    empty = np.zeros([0, 5], np.int32)
    assert call(empty, empty).shape == [0, 5, 8]


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("period", [0, 2])
def test_gradients_without_padding_are_the_same(period):
    mask, weights = np.array(MASKS["holes"]), np.arange(8.0, dtype=np.float32)
    by_model = []
    for model in (MODEL(), MODEL(skip_padding=True, grad_checkpointing_period=period)):
        with tf.GradientTape() as tape:
            hidden = model(small.ids(9, 2), attention_mask=mask)
            loss = tf.reduce_sum(tf.boolean_mask(hidden, mask > 0) * weights)
        found = tape.gradient(loss, model.trainable_variables)
        by_model.append([tf.convert_to_tensor(x).numpy() for x in found])
    for one, other in zip(*by_model, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)


def test_padding_may_be_skipped_from_now_on():
    model, mask = small.model(), np.array(MASKS["right"])
    model.config = dataclasses.replace(model.config, skip_padding=True)
    model.check_config()
    assert not hidden_of(small.ids(9, 2), mask, model)[mask == 0].any()
    with padding.kept():
        np.testing.assert_array_equal(
            hidden_of(small.ids(9, 2), mask, model),
            np.where(mask[:, :, np.newaxis], hidden_of(small.ids(9, 2), mask), 0),
        )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"input_ids": [[3, 4]], "attention_mask": np.ones([1, 1, 2, 2])}, "`attention_mask`"),
        ({"input_ids": [[3, 4]], "attention_mask": [[0.0, -10000.0]]}, "positive for tokens"),
        ({"input_ids": [[3, 4]], "position_ids": [[0, -1]]}, "`position_ids` must be"),
        ({"input_ids": np.zeros([1, 0], int)}, "at least one token"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        MODEL()(**arguments)


def test_initial_weights_have_the_spread_of_their_kind():
    config = small.config(hidden_size=64, intermediate_size=64, vocab_size=500)
    model = etcmodel.ModernBertForSequenceClassification(config, num_labels=9)
    layers, cut = model.encoder.layers, 0.8796  # The deviation of a normal cut at 2.
    output = 0.02 / np.sqrt(8)
    for weight, spread in (
        (model.encoder.tok_embeddings.embedding_table, 0.02),
        (layers.attention_layers[1].inner_layer.qkv.kernel, 0.02),
        (layers.attention_layers[1].inner_layer.output_projection.kernel, output),
        (layers.feed_forward_layers[0].inner_layer.inner.kernel, 0.02),
        (layers.feed_forward_layers[0].inner_layer.output_layer.kernel, output),
        (model.prediction_head.dense.kernel, output),
        (model.logits.kernel, 1 / 8),
    ):
        assert np.std(weight) == pytest.approx(cut * spread, rel=0.1), weight.name
        assert np.abs(weight).max() <= 2 * spread
    assert not model.logits.bias.numpy().any()


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("norm_bias", [False, True])
def test_what_is_skipped_is_0_in_all_states_and_read_by_no_pooling(norm_bias):
    model = etcmodel.ModernBertForSequenceClassification(
        small.config(skip_padding=True, norm_bias=norm_bias)
    )
    randomize(model)
    ids, mask = np.pad(small.ids(4), [[0, 0], [3, 0]]), np.array([[0] * 3 + [1] * 4])
    outputs = model(ids, attention_mask=mask, output_hidden_states=True)
    assert not any(x[:, :3].numpy().any() for x in outputs["hidden_states"])
    np.testing.assert_allclose(outputs["logits"], model(small.ids(4)), atol=1e-5)


def test_a_classifier_takes_over_the_head_of_a_language_model(tmp_path):
    language_model = etcmodel.ModernBertForMaskedLM(small.config())
    randomize(language_model)
    language_model.save_pretrained(tmp_path)
    made = etcmodel.ModernBertForTokenClassification.from_pretrained(tmp_path, num_labels=3)
    trained = language_model.language_model.prediction_head
    for one, other in zip(made.prediction_head.weights, trained.weights, strict=True):
        np.testing.assert_array_equal(one, other)
    assert not made.logits.bias.numpy().any()


@pytest.mark.slow
@pytest.mark.parametrize("skip_padding", [False, True])
@pytest.mark.slow_cases(1)
def test_a_classifier_learns(skip_padding):
    model = etcmodel.ModernBertForSequenceClassification(
        small.config(skip_padding=skip_padding, classifier_pooling="mean", attention_dropout=0.1),
        labels=["low", "high"],
    )
    model.compile(tf_keras.optimizers.Adam(0.01))
    ids = np.array([[3, 4, 5, 0], [30, 31, 0, 0], [6, 3, 0, 0], [35, 33, 36, 37]])
    features = {"input_ids": ids, "attention_mask": (ids > 0).astype(int)}
    history = model.fit(features, np.array([0, 1, 0, 1]), epochs=30, verbose=0).history["loss"]
    assert history[-1] < 0.3 * history[0]
