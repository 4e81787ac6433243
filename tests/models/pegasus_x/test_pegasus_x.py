"""What holds for any PEGASUS-X: what no result depends on, and the ways to compute one."""

import hypothesis
import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from hypothesis import strategies as st

from etcmodel.models.pegasus_x import (
    PegasusXConfig,
    PegasusXEncoder,
    PegasusXForConditionalGeneration,
    PegasusXModel,
)
from tests.models.pegasus_x import models

MODEL = models.model()


@tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32)] * 3, autograph=False)
def traced(ids, mask, decoder_ids):
    return MODEL(ids, mask, decoder_ids)["logits"]


def logits(ids, mask, decoder_ids):
    return traced(*map(tf.constant, (ids, mask, decoder_ids))).numpy()


@hypothesis.settings(max_examples=15)
@hypothesis.given(st.integers(2, 9), st.data())
def test_a_later_token_never_matters(length, data):
    changed = data.draw(st.integers(1, length - 1))
    ids, mask = models.ids(1, 11), np.ones((1, 11), np.int32)
    one = models.ids(1, length, seed=1)
    other = np.concatenate([one[:, :changed], models.ids(1, length, seed=2)[:, changed:]], 1)
    np.testing.assert_allclose(
        logits(ids, mask, one)[:, :changed], logits(ids, mask, other)[:, :changed], atol=1e-5
    )


@hypothesis.settings(max_examples=20)
@hypothesis.given(st.integers(1, 40), st.integers(1, 30))
def test_padding_and_neighbors_do_not_matter(length, padding):
    ids, decoder_ids = models.ids(1, length), models.ids(1, 5, seed=3)
    alone = logits(ids, np.ones_like(ids), decoder_ids)
    padded = np.pad(ids, [(0, 2), (0, padding)], constant_values=7)
    padded[1:] = models.ids(2, length + padding, seed=4)
    mask = np.ones_like(padded)
    mask[0, length:] = 0
    among = logits(padded, mask, np.concatenate([decoder_ids, models.ids(2, 5, seed=5)]))
    np.testing.assert_allclose(among[:1], alone, atol=2e-5)


@pytest.mark.parametrize("stagger, seen", [(True, range(6, 14)), (False, range(8, 12))])
def test_blocks_are_staggered_in_every_second_layer(stagger, seen):
    """Without what goes through the global tokens, a token reaches its block's neighbors."""
    encoder = models.model(stagger_local_blocks=stagger).encoder
    attention = encoder.layers.attention_layers
    for block in attention:  # The global tokens' values are 0: what they saw is lost.
        block.normalization_layers[1].gamma.assign(np.zeros(16))
        block.normalization_layers[1].beta.assign(np.zeros(16))
    ids = models.ids(1, 20)
    changed = np.array(ids)
    changed[0, 9] = (ids[0, 9] + 1) % models.VOCAB_SIZE
    states = [encoder(tf.constant(x))["last_hidden_state"][0].numpy() for x in (ids, changed)]
    assert np.flatnonzero(np.abs(states[0] - states[1]).max(-1) > 1e-7).tolist() == list(seen)


def test_global_tokens_carry_what_is_far():
    encoder = MODEL.encoder
    ids = models.ids(1, 40)
    changed = np.array(ids)
    changed[0, 39] = (ids[0, 39] + 1) % models.VOCAB_SIZE
    states = [encoder(tf.constant(x))["last_hidden_state"][0].numpy() for x in (ids, changed)]
    assert (np.abs(states[0] - states[1]).max(-1) > 1e-7).all()


def test_an_input_of_embeddings():
    ids, decoder_ids = models.ids(2, 9), models.ids(2, 4, seed=1)
    table = MODEL.get_token_embedding_table()
    embeddings = [tf.gather(table, x) * 4.0 for x in (ids, decoder_ids)]  # sqrt(16)
    by_ids = MODEL(tf.constant(ids), decoder_input_ids=decoder_ids)["logits"]
    by_embeddings = MODEL(inputs_embeds=embeddings[0], decoder_inputs_embeds=embeddings[1])
    np.testing.assert_allclose(by_ids, by_embeddings["logits"], atol=1e-6)
    encoded = MODEL.encoder(tf.constant(ids))["last_hidden_state"]
    again = MODEL(encoder_output=encoded, decoder_input_ids=decoder_ids)["logits"]
    np.testing.assert_allclose(by_ids, again, atol=1e-6)


def test_positions_may_be_given():
    ids, positions = tf.constant(models.ids(2, 9)), np.arange(9)[np.newaxis]
    plain, same, other = (
        MODEL.encoder(ids, position_ids=x)["last_hidden_state"]
        for x in (None, positions, positions + 5)
    )
    np.testing.assert_allclose(plain, same, atol=1e-6)
    assert np.abs(plain - other).max() > 1e-3


def test_what_is_asked_for_beside_changes_nothing():
    ids = tf.constant(models.ids(2, 9))
    plain = MODEL(ids, labels=models.ids(2, 4, seed=1))
    more = MODEL(
        ids, labels=models.ids(2, 4, seed=1), output_hidden_states=True, output_attentions=True
    )
    assert set(plain) == {"logits", "loss", "encoder_last_hidden_state"}
    for name, value in plain.items():
        np.testing.assert_allclose(value, more[name], atol=1e-6)
    names = ("encoder_attentions", "encoder_global_attentions", "cross_attentions")
    for probs in (x for name in names for x in more[name]):
        np.testing.assert_allclose(tf.reduce_sum(probs, -1), 1, atol=1e-5)


def test_the_model_without_logits_is_the_same():
    plain = models.model(model_class=PegasusXModel)
    plain.set_weights(MODEL.get_weights())
    arguments = (tf.constant(models.ids(2, 9)), None, tf.constant(models.ids(2, 3)))
    hidden = plain(*arguments)["last_hidden_state"]
    found = MODEL.logits(hidden)
    np.testing.assert_allclose(found, MODEL(*arguments)["logits"], atol=1e-6)


def gradients(model, training):
    ids, labels = tf.constant(models.ids(2, 13)), models.ids(2, 4, seed=1)
    with tf.GradientTape() as tape:
        loss = model(ids, labels=labels, training=training)["loss"]
    found = tape.gradient(loss, model.trainable_variables)
    return loss, [tf.convert_to_tensor(x) for x in found]


@pytest.mark.parametrize("period", [1, 2])
def test_recomputed_activations_give_the_same_gradients(period):
    (plain, wanted), (again, found) = (
        gradients(models.model(grad_checkpointing_period=number), True) for number in (0, period)
    )
    np.testing.assert_allclose(plain, again, rtol=1e-5)
    for one, other in zip(wanted, found, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4)


def test_dropout_is_of_training():
    model = models.model(dropout=0.5, attention_dropout=0.2, activation_dropout=0.2)
    ids, labels = tf.constant(models.ids(2, 13)), models.ids(2, 4, seed=1)
    still = [model(ids, labels=labels)["loss"].numpy() for _ in range(2)]
    dropped = [model(ids, labels=labels, training=True)["loss"].numpy() for _ in range(2)]
    assert still[0] == still[1]
    assert len({still[0], *dropped}) == 3


@pytest.mark.parametrize("policy, limit", [("mixed_bfloat16", 0.3), ("mixed_float16", 0.03)])
def test_half_precision_stays_finite_and_near(policy, limit):
    """Also where a row is all padding."""
    ids, mask = models.ids(3, 14), np.ones((3, 14), np.int32)
    mask[1, 5:] = mask[2] = 0
    arguments = (tf.constant(ids), tf.constant(mask), tf.constant(models.ids(3, 4, seed=1)))
    found = models.model(policy=policy)(*arguments)["logits"]
    assert found.dtype == tf.float32
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found[:2], MODEL(*arguments)["logits"][:2], atol=limit)


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, {"num_beams": 3, "length_penalty": 0.6}])
def test_generation_ends_by_the_end_token_of_the_config(settings):
    ids = models.ids(2, 9)
    forced = MODEL.generate(ids, max_length=5, min_length=5, **settings)["sequences"].numpy()
    assert forced.shape == (2, 5) and (forced[:, -1] == 1).all()
    free = MODEL.generate(ids, max_length=5, min_length=5, forced_eos_token_id=None, **settings)
    assert (free["sequences"].numpy() != 1).all()


def test_generation_takes_the_batches_of_training():
    batch = {"input_ids": models.ids(2, 9), "attention_mask": np.ones([2, 9], np.int32)}
    wanted = MODEL.generate(**batch, max_length=5)["sequences"]
    found = MODEL.generate({**batch, "labels": models.ids(2, 4)}, max_length=5)["sequences"]
    np.testing.assert_array_equal(found, wanted)


def test_greedy_tokens_are_the_most_probable_ones():
    ids = models.ids(2, 9)
    found = MODEL.generate(ids, max_length=8, forced_eos_token_id=None, with_scores=True)
    sequences = found["sequences"].numpy()
    wanted = MODEL(tf.constant(ids), decoder_input_ids=sequences[:, :-1])["logits"].numpy()
    for row, sequence in enumerate(sequences):
        ends = np.flatnonzero(sequence[1:] == 1)
        count = ends[0] + 1 if len(ends) else len(sequence) - 1
        assert sequence[1 : count + 1].tolist() == wanted[row, :count].argmax(-1).tolist()
        np.testing.assert_allclose(
            found["step_scores"][row, :count], wanted[row, :count], atol=1e-4
        )


@pytest.mark.parametrize("kind", [PegasusXModel, PegasusXForConditionalGeneration])
def test_its_config_makes_it_again(kind):
    model = models.model(model_class=kind)
    again = tf_keras.layers.deserialize(tf_keras.layers.serialize(model))
    assert type(again) is kind and again.config == model.config
    with tf.name_scope(again.name):
        again.build(None)
    again.set_weights(model.get_weights())
    arguments = (tf.constant(models.ids(1, 9)), None, tf.constant(models.ids(1, 3)))
    for name, value in model(*arguments).items():
        np.testing.assert_array_equal(value, again(*arguments)[name])


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"block_size": 0}, "`block_size` must be at least 1"),
        ({"num_global_tokens": 0}, "`num_global_tokens` must be at least 1"),
        ({"dropout": 1.0}, "`dropout` must be at least 0 and below 1"),
        ({"decoder_attention_heads": 3}, "multiple of `decoder_attention_heads`"),
        ({"activation_function": "sine"}, "Unknown activation 'sine'"),
        ({"encoder_layers": "2"}, "`encoder_layers` must be of type int"),
        ({"grad_checkpointing_period": -1}, "`grad_checkpointing_period` must be at least 0"),
        ({"tie_word_embeddings": False}, "`tie_word_embeddings` must be true"),
        (
            {"d_model": 3, "encoder_attention_heads": 1, "decoder_attention_heads": 1},
            "`d_model` must be even",
        ),
    ],
)
def test_a_config_that_cannot_be_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        models.config(**changes)


def test_calls_that_cannot_be_are_refused():
    ids = tf.constant(models.ids(1, 9))
    with pytest.raises(ValueError, match="Give `decoder_input_ids`, or `labels`"):
        MODEL(ids)
    with pytest.raises(ValueError, match="Give ids, or embeddings"):
        MODEL.encoder()
    with pytest.raises(ValueError, match="`config` must be a `PegasusXConfig`"):
        PegasusXModel(3)


def test_an_encoder_alone():
    encoder = PegasusXEncoder(models.config())
    assert encoder(tf.constant(models.ids(2, 7)))["last_hidden_state"].shape == [2, 7, 16]
    assert encoder.get_token_embedding_table().shape == [models.VOCAB_SIZE, 16]


def test_entries_of_other_programs_are_left_out_of_a_config():
    entries = {**models.config().to_dict(), "torch_dtype": "float16", "num_beams": 8}
    assert PegasusXConfig.from_dict(entries) == models.config()
