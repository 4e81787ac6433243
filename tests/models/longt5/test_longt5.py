"""What holds for any LongT5: what no result depends on, and the ways to compute one."""

import hypothesis
import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from hypothesis import strategies as st

from etcmodel.models.longt5 import LongT5Config, LongT5Model
from tests.models.longt5 import models

TYPES = ("local", "transient-global")
MODELS = {kind: models.model(encoder_attention_type=kind) for kind in TYPES}


def traced(model):
    return tf.function(
        lambda *arguments: model(*arguments)["logits"],
        input_signature=[tf.TensorSpec([None, None], tf.int32)] * 3,
        autograph=False,
    )


LOGITS = {kind: traced(model) for kind, model in MODELS.items()}


def logits(kind, ids, mask, decoder_ids):
    return LOGITS[kind](*map(tf.constant, (ids, mask, decoder_ids))).numpy()


@pytest.mark.slow
@hypothesis.settings(max_examples=15)
@hypothesis.given(st.sampled_from(TYPES), st.integers(2, 9), st.data())
def test_a_later_token_never_matters(kind, length, data):
    changed = data.draw(st.integers(1, length - 1))
    ids, mask = models.ids(1, 11), np.ones((1, 11), np.int32)
    one = models.ids(1, length, seed=1)
    other = np.concatenate([one[:, :changed], models.ids(1, length, seed=2)[:, changed:]], 1)
    np.testing.assert_allclose(
        logits(kind, ids, mask, one)[:, :changed],
        logits(kind, ids, mask, other)[:, :changed],
        atol=1e-5,
    )


@pytest.mark.slow
@hypothesis.settings(max_examples=15)
@hypothesis.given(st.sampled_from(TYPES), st.integers(1, 40), st.integers(1, 30))
def test_padding_and_neighbors_do_not_matter(kind, length, padding):
    ids, decoder_ids = models.ids(1, length), models.ids(1, 5, seed=3)
    alone = logits(kind, ids, np.ones_like(ids), decoder_ids)
    padded = np.pad(ids, [(0, 2), (0, padding)], constant_values=7)
    padded[1:] = models.ids(2, length + padding, seed=4)
    mask = np.ones_like(padded)
    mask[0, length:] = 0
    among = logits(kind, padded, mask, np.concatenate([decoder_ids, models.ids(2, 5, seed=5)]))
    np.testing.assert_allclose(among[:1], alone, atol=2e-5)


@pytest.mark.parametrize("kind", TYPES)
def test_what_is_out_of_the_window_is_seen_through_blocks_alone(kind):
    encoder = models.model(num_layers=1, encoder_attention_type=kind).encoder
    ids = models.ids(1, 30)
    changed = np.array(ids)
    changed[0, 20] = (ids[0, 20] + 1) % models.VOCAB_SIZE
    states = [encoder(tf.constant(x))["last_hidden_state"][0].numpy() for x in (ids, changed)]
    differs = np.flatnonzero(np.abs(states[0] - states[1]).max(-1) > 1e-7)
    window = list(range(17, 24))
    assert differs.tolist() == (window if kind == "local" else list(range(30)))


def test_an_input_of_embeddings():
    model = MODELS["transient-global"]
    ids, decoder_ids = models.ids(2, 9), models.ids(2, 4, seed=1)
    embeddings = tf.gather(model.get_token_embedding_table(), ids)
    by_ids = model(tf.constant(ids), decoder_input_ids=decoder_ids)["logits"]
    by_embeddings = model(inputs_embeds=embeddings, decoder_input_ids=decoder_ids)["logits"]
    np.testing.assert_allclose(by_ids, by_embeddings, atol=1e-6)
    by_dict = model({"input_ids": ids, "decoder_input_ids": decoder_ids})["logits"]
    np.testing.assert_array_equal(by_ids, by_dict)
    encoded = model.encoder(tf.constant(ids))["last_hidden_state"]
    again = model(encoder_output=encoded, decoder_input_ids=decoder_ids)["logits"]
    np.testing.assert_allclose(by_ids, again, atol=1e-6)


def test_what_is_asked_for_beside_changes_nothing():
    model, ids = MODELS["transient-global"], tf.constant(models.ids(2, 9))
    plain = model(ids, labels=models.ids(2, 4, seed=1))
    more = model(
        ids, labels=models.ids(2, 4, seed=1), output_hidden_states=True, output_attentions=True
    )
    assert set(plain) == {"logits", "loss", "encoder_last_hidden_state"}
    for name, value in plain.items():
        np.testing.assert_allclose(value, more[name], atol=1e-6)
    for probs in (*more["encoder_attentions"], *more["cross_attentions"]):
        np.testing.assert_allclose(tf.reduce_sum(probs, -1), 1, atol=1e-5)


def gradients(model, training):
    ids, labels = tf.constant(models.ids(2, 13)), models.ids(2, 4, seed=1)

    with tf.GradientTape() as tape:
        loss = model(ids, labels=labels, training=training)["loss"]
    found = tape.gradient(loss, model.trainable_variables)
    return loss, [tf.convert_to_tensor(x) for x in found]


def test_recomputed_activations_give_the_same_gradients():
    (plain, wanted), (again, found) = (
        gradients(models.model(grad_checkpointing_period=period), True) for period in (0, 1)
    )
    np.testing.assert_allclose(plain, again, rtol=1e-5)
    for one, other in zip(wanted, found, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4)


def test_dropout_is_of_training():
    model = models.model(dropout_rate=0.5)
    ids, labels = tf.constant(models.ids(2, 13)), models.ids(2, 4, seed=1)
    still = [model(ids, labels=labels)["loss"].numpy() for _ in range(2)]
    dropped = [model(ids, labels=labels, training=True)["loss"].numpy() for _ in range(2)]
    assert still[0] == still[1]
    assert len({still[0], *dropped}) == 3


@pytest.mark.parametrize("policy, limit", [("mixed_bfloat16", 0.3), ("mixed_float16", 0.03)])
def test_half_precision_stays_finite_and_near(policy, limit):
    """Also where a row is all padding, and where feed-forward outputs pass what float16 holds."""
    ids, mask = models.ids(3, 14), np.ones((3, 14), np.int32)
    mask[1, 5:] = mask[2] = 0
    arguments = (tf.constant(ids), tf.constant(mask), tf.constant(models.ids(3, 4, seed=1)))
    wanted = models.model()(*arguments)["logits"]
    found = models.model(policy=policy)(*arguments)["logits"]
    assert found.dtype == tf.float32
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found[:2], wanted[:2], atol=limit)
    model = models.model(policy=policy, num_layers=1)
    kernel = model.encoder.layers.feed_forward_layers[0].inner_layer.output_layer.kernel
    kernel.assign(kernel * 1e5)
    assert np.isfinite(model(*arguments)["logits"]).all()


def test_its_config_makes_it_again():
    model = MODELS["local"]
    again = tf_keras.layers.deserialize(tf_keras.layers.serialize(model))
    assert isinstance(again, LongT5Model) and again.config == model.config
    with tf.name_scope(again.name):
        again.build(None)
    again.set_weights(model.get_weights())
    arguments = (tf.constant(models.ids(1, 9)), None, tf.constant(models.ids(1, 3)))
    np.testing.assert_array_equal(model(*arguments)["logits"], again(*arguments)["logits"])


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"d_kv": 0}, "`d_kv` must be at least 1"),
        ({"num_decoder_layers": 0}, "`num_decoder_layers` must be at least 1"),
        ({"dropout_rate": 1.0}, "`dropout_rate` must be at least 0 and below 1"),
        ({"encoder_attention_type": "global"}, "must be 'local' or 'transient-global'"),
        ({"feed_forward_proj": "gated-sine"}, "Unknown activation 'sine'"),
        ({"relative_attention_num_buckets": 7}, "must be even"),
        ({"num_layers": "2"}, "`num_layers` must be of type int"),
    ],
)
def test_a_config_that_cannot_be_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        models.config(**changes)


def test_calls_that_cannot_be_are_refused():
    model, ids = MODELS["local"], tf.constant(models.ids(1, 9))
    with pytest.raises(ValueError, match="Give `decoder_input_ids`, or `labels`"):
        model(ids)
    with pytest.raises(ValueError, match="Give ids, or embeddings"):
        model.encoder()
    without_start = LongT5Model(models.config(decoder_start_token_id=None))
    with pytest.raises(ValueError, match="no `decoder_start_token_id`"):
        without_start(ids, labels=ids)
    with pytest.raises(ValueError, match="`config` must be a `LongT5Config`"):
        LongT5Model(3)


def test_entries_of_other_programs_are_left_out_of_a_config():
    entries = {**models.config().to_dict(), "torch_dtype": "float16", "n_positions": 512}
    assert LongT5Config.from_dict(entries) == models.config()
    with pytest.raises(ValueError, match="`is_decoder` must be False, .* Received: True"):
        LongT5Config.from_dict({**entries, "is_decoder": True})
