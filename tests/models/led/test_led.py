"""What holds for any LED: what no result depends on, and the ways to compute one."""

import hypothesis
import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from hypothesis import strategies as st

from etcmodel.models.led import (
    LedConfig,
    LedForConditionalGeneration,
    LedForQuestionAnswering,
    LedModel,
)
from tests.models.led import models

MODEL = models.model()
ONE_LAYER = {"encoder_layers": 1, "decoder_layers": 1, "attention_window": 4}
SAME = {"atol": 2e-5, "rtol": 1e-5}
INTS = tf.TensorSpec([None, None], tf.int32)


@tf.function(input_signature=[INTS] * 4, autograph=False)
def traced(ids, mask, global_mask, decoder_ids):
    return MODEL(ids, mask, global_attention_mask=global_mask, decoder_input_ids=decoder_ids)


def logits(ids, mask, global_mask, decoder_ids):
    given = (tf.constant(x, tf.int32) for x in (ids, mask, global_mask, decoder_ids))
    return traced(*given)["logits"].numpy()


@st.composite
def inputs(draw):
    """One text: (ids, attention mask, global mask), each int [1, length]."""
    length = draw(st.integers(1, 20))
    bits = st.lists(st.integers(0, 1), min_size=length, max_size=length)
    mask, global_mask = (np.array([draw(bits)]) for _ in range(2))
    mask[0, draw(st.integers(0, length - 1))] = 1
    return models.ids(1, length, draw(st.integers(0, 99))), mask, global_mask


@pytest.mark.slow
@hypothesis.settings(max_examples=15)
@hypothesis.given(inputs(), st.integers(2, 9), st.data())
def test_a_later_token_never_matters(given, length, data):
    changed = data.draw(st.integers(1, length - 1))
    one, other = models.ids(1, length, seed=1), models.ids(1, length, seed=2)
    other = np.concatenate([one[:, :changed], other[:, changed:]], 1)
    one, other = (logits(*given, x)[:, :changed] for x in (one, other))
    np.testing.assert_allclose(one, other, **SAME)


@hypothesis.settings(max_examples=15)
@hypothesis.given(inputs(), st.integers(0, 15), st.data())
def test_padding_and_neighbors_do_not_matter(given, padding, data):
    length, decoder_ids = given[0].shape[1], models.ids(1, 5, seed=3)
    bits = st.lists(st.integers(0, 1), min_size=length + padding, max_size=length + padding)
    neighbor = (models.ids(1, length + padding, seed=4), *(data.draw(bits) for _ in range(2)))
    padded = [
        np.concatenate([np.pad(x, [(0, 0), (0, padding)], constant_values=fill), [np.ravel(y)]])
        for x, fill, y in zip(given, (7, 0, 1), neighbor, strict=True)
    ]
    among = logits(*padded, np.concatenate([decoder_ids, models.ids(1, 5, seed=5)]))
    np.testing.assert_allclose(among[:1], logits(*given, decoder_ids), **SAME)


def test_what_is_masked_matters_to_nobody():
    ids, mask = models.ids(1, 9), np.array([[1, 1, 0, 1, 1, 1, 0, 1, 1]])
    others = np.where(mask, ids, models.ids(1, 9, seed=1))
    rest = (mask, np.eye(9, dtype=int)[:1], models.ids(1, 4, seed=2))
    np.testing.assert_array_equal(logits(ids, *rest), logits(others, *rest))


def test_global_tokens_are_said_in_several_ways():
    ids, labels = models.ids(2, 9), models.ids(2, 4, seed=1)
    wanted = MODEL(ids, labels=labels, global_attention_mask=np.eye(9, dtype=int)[[0, 0]])
    same = models.model(global_positions=[0])
    for found in (
        MODEL(ids, labels=labels, global_attention_mask=[0]),
        MODEL(ids, 1 + np.eye(9, dtype=int)[[0, 0]], labels=labels),
        MODEL({"input_ids": ids, "labels": labels, "global_attention_mask": [0]}),
        same(ids, labels=labels),
    ):
        np.testing.assert_allclose(found["logits"], wanted["logits"], **SAME)
    plain = MODEL(ids, labels=labels)["logits"]
    assert np.abs(plain - wanted["logits"]).max() > 1e-3
    none = same(ids, labels=labels, global_attention_mask=np.zeros([2, 9], int))
    np.testing.assert_allclose(none["logits"], plain, **SAME)


@pytest.mark.slow
def test_generation_has_the_global_tokens_of_training():
    """Of the batch, or of the config: the sequence's logits are those of teacher forcing."""
    ids = models.ids(2, 15)
    batch = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
    with_mask = {**batch, "global_attention_mask": [0, 3], "labels": models.ids(2, 3)}
    found = {}
    for name, model, given in (
        ("none", models.model(**ONE_LAYER), batch),
        ("batch", models.model(**ONE_LAYER), with_mask),
        ("config", models.model(global_positions=(0, 3), **ONE_LAYER), batch),
    ):
        result = model.generate(given, max_length=6, min_length=6, with_scores=True)
        given = {key: x for key, x in given.items() if key != "labels"}
        forced = model(given, decoder_input_ids=result["sequences"][:, :-1])["logits"]
        scores = result["step_scores"].numpy()
        is_known = np.isfinite(scores)
        np.testing.assert_allclose(scores[is_known], forced.numpy()[is_known], atol=1e-4)
        found[name] = scores[:, 0]
    np.testing.assert_allclose(found["batch"], found["config"], atol=1e-5)
    assert np.abs(found["batch"][:, 3:] - found["none"][:, 3:]).max() > 1e-3


def test_a_model_that_was_never_called_generates():
    model = LedForConditionalGeneration(MODEL.config)
    assert not model.built
    assert model.generate(models.ids(1, 9), max_new_tokens=2)["sequences"].shape[1] <= 3


def test_generation_ends_where_positions_do():
    ids = models.ids(1, 9)
    settings = {"min_length": 21, "no_repeat_ngram_size": 2}
    assert MODEL.generate(ids, max_length=21, **settings)["sequences"].shape == [1, 21]
    with pytest.raises(ValueError, match="`max_length` must be at most 21, .* Received: 22"):
        MODEL.generate(ids, max_length=22)
    with pytest.raises(ValueError, match="`max_length` must be at most 9, .* Received: 21"):
        models.model(max_decoder_position_embeddings=8).generate(ids)


@pytest.mark.exhaustive
def test_generation_in_a_saved_model(tmp_path):
    module = tf.Module()
    module.model = models.model(**ONE_LAYER)
    module.generate = tf.function(
        lambda ids, mask, global_mask: module.model.generate(ids, mask, global_mask, max_length=5),
        input_signature=[INTS] * 3,
        autograph=False,
    )
    tf.saved_model.save(module, str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    ids = tf.constant(models.ids(2, 9))
    given = (ids, tf.ones_like(ids), tf.one_hot([0, 0], 9, dtype=tf.int32))
    found, wanted = loaded.generate(*given), module.generate(*given)
    np.testing.assert_array_equal(found["sequences"], wanted["sequences"])


def test_an_input_of_embeddings():
    ids, decoder_ids = models.ids(2, 9), models.ids(2, 4, seed=1)
    table, encoded = MODEL.get_token_embedding_table(), MODEL.encoder(ids)["last_hidden_state"]
    wanted = MODEL(ids, decoder_input_ids=decoder_ids)["logits"]
    embeddings = tf.gather(table, ids)
    for given in (
        {"inputs_embeds": embeddings, "decoder_input_ids": decoder_ids},
        {"input_ids": ids, "decoder_inputs_embeds": tf.gather(table, decoder_ids)},
        {
            "encoder_output": encoded,
            "decoder_input_ids": decoder_ids,
        },
        {"input_ids": ids, "position_ids": [range(9)], "decoder_input_ids": decoder_ids},
    ):
        np.testing.assert_allclose(MODEL(**given)["logits"], wanted, **SAME)


def test_what_is_asked_for_beside_changes_nothing():
    ids, labels = models.ids(2, 9), models.ids(2, 4, seed=1)
    plain = MODEL(ids, labels=labels, global_attention_mask=[0])
    more = MODEL(
        ids,
        labels=labels,
        global_attention_mask=[0],
        output_hidden_states=True,
        output_attentions=True,
    )
    assert set(plain) == {"logits", "loss", "encoder_last_hidden_state"}
    for name, value in plain.items():
        np.testing.assert_allclose(value, more[name], atol=1e-6)
    for probs in (*more["decoder_attentions"], *more["cross_attentions"]):
        np.testing.assert_allclose(tf.reduce_sum(probs, -1), 1, atol=1e-5)


def gradients(model, training):
    ids, labels = models.ids(2, 13), models.ids(2, 4, seed=1)
    with tf.GradientTape() as tape:
        loss = model(ids, labels=labels, global_attention_mask=[0], training=training)["loss"]
    found = tape.gradient(loss, model.trainable_variables)
    return loss, [tf.convert_to_tensor(x) for x in found]


def test_recomputed_activations_give_the_same_gradients():
    (plain, wanted), (again, found) = (
        gradients(models.model(grad_checkpointing_period=period), True) for period in (0, 1)
    )
    np.testing.assert_allclose(plain, again, rtol=1e-5)
    for one, other in zip(wanted, found, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("name", ["dropout", "attention_dropout", "activation_dropout"])
def test_dropout_is_of_training(name):
    model = models.model(**{name: 0.5})
    ids, labels = models.ids(2, 13), models.ids(2, 4, seed=1)
    still = [model(ids, labels=labels)["loss"].numpy() for _ in range(2)]
    dropped = [model(ids, labels=labels, training=True)["loss"].numpy() for _ in range(2)]
    assert still[0] == still[1]
    assert len({still[0], *dropped}) == 3


@pytest.mark.parametrize("policy, limit", [("mixed_bfloat16", 0.3), ("mixed_float16", 0.03)])
def test_half_precision_stays_finite_and_near(policy, limit):
    """Also where a row is all padding."""
    ids, mask = models.ids(3, 14), np.ones((3, 14), np.int32)
    mask[1, 5:] = mask[2] = 0
    given = {"attention_mask": mask, "global_attention_mask": [0], "labels": models.ids(3, 4)}
    wanted = MODEL(ids, **given)["logits"]
    model = models.model(policy=policy)
    with tf.GradientTape() as tape:
        found = model(ids, **given)
    assert found["logits"].dtype == tf.float32
    np.testing.assert_allclose(found["logits"][:2], wanted[:2], atol=limit)
    for gradient in tape.gradient(found["loss"], model.trainable_variables):
        assert np.isfinite(tf.convert_to_tensor(gradient)).all()


@pytest.mark.parametrize(
    "made_by", [LedModel, LedForConditionalGeneration, LedForQuestionAnswering]
)
def test_its_config_makes_it_again(made_by):
    model = models.model(made_by)
    again = tf_keras.layers.deserialize(tf_keras.layers.serialize(model))
    assert type(again) is made_by and again.config == model.config
    with tf.name_scope(again.name):
        again.build(None)
    again.set_weights(model.get_weights())
    one, other = (x(models.ids(1, 9)) for x in (model, again))
    for name, value in one.items():
        np.testing.assert_array_equal(value, other[name])


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"d_model": 0}, "`d_model` must be at least 1"),
        ({"decoder_attention_heads": 3}, "multiple of `decoder_attention_heads`"),
        ({"dropout": 1.0}, "`dropout` must be at least 0 and below 1"),
        ({"attention_window": (4, 5)}, "`attention_window` must be even"),
        ({"attention_window": (4, 4, 4)}, "one entry for each of 2 layers"),
        ({"activation_function": "sine"}, "Unknown activation 'sine'"),
        ({"max_global_tokens": -1}, "`max_global_tokens` must be at least 0"),
        ({"global_positions": (-1,)}, "`global_positions` must be at least 0"),
        ({"global_positions": ("a",)}, "`global_positions` must be positions of tokens"),
        ({"encoder_layers": "2"}, "`encoder_layers` must be of type int"),
    ],
)
def test_a_config_that_cannot_be_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        models.config(**changes)


def test_a_config_says_what_files_must_say():
    entries = models.config(global_positions=[0]).to_dict()
    assert LedConfig.from_dict({**entries, "num_hidden_layers": 2}).global_positions == (0,)
    assert "global_positions" not in models.config().to_dict()  # It is not Hugging Face's.
    del entries["decoder_ffn_dim"]
    with pytest.raises(ValueError, match="has no `decoder_ffn_dim`"):
        LedConfig.from_dict(entries)
    with pytest.raises(ValueError, match="`tie_word_embeddings` must be true"):
        LedConfig.from_dict({**models.config().to_dict(), "tie_word_embeddings": False})


def test_calls_that_cannot_be_are_refused():
    ids = models.ids(1, 9)
    with pytest.raises(ValueError, match="Give ids, or embeddings"):
        MODEL.encoder()
    with pytest.raises(ValueError, match="Give `decoder_input_ids`, or `labels` or `input_ids`"):
        MODEL(inputs_embeds=np.zeros([1, 9, 16], np.float32))
    with pytest.raises(ValueError, match="`attention_mask` must have shape"):
        MODEL(ids, np.ones([1, 8], np.int32))
    with pytest.raises(ValueError, match="below 60, which is `max_encoder_position_embeddings`"):
        MODEL(models.ids(1, 61), labels=ids)
    with pytest.raises(ValueError, match="below 20, which is `max_decoder_position_embeddings`"):
        MODEL(ids, labels=models.ids(1, 21))
    with pytest.raises(ValueError, match="`global_attention_mask` must be at least 0 and below 2"):
        MODEL(ids, labels=ids, global_attention_mask=np.full([1, 9], 2))
    with pytest.raises(ValueError, match="at most `max_global_tokens`, 1, global"):
        models.model(max_global_tokens=1)(ids, labels=ids, global_attention_mask=[0, 1])
    with pytest.raises(ValueError, match="`start_positions` and `end_positions`, or neither"):
        models.model(LedForQuestionAnswering)(ids, start_positions=[1])
    with pytest.raises(ValueError, match="`config` must be a `LedConfig`"):
        LedModel(3)
