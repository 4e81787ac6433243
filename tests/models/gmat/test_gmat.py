"""What holds for any GMAT: what no result depends on, and the ways to compute one."""

import hypothesis
import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from hypothesis import strategies as st

import etcmodel
from etcmodel.models.gmat import GmatModel
from tests.models.gmat import small

KINDS = {
    "tied": {},
    "own": small.OWN,
    "compressed": small.COMPRESSED,
    "compressed_own": {**small.COMPRESSED, **small.OWN},
    "no_memory": {"num_memory_tokens": 0},
}
MODELS = {kind: small.model(**changes) for kind, changes in KINDS.items()}


def traced(model):
    return tf.function(
        lambda ids, mask: model(ids, mask)[0],
        input_signature=[tf.TensorSpec([None, None], tf.int32)] * 2,
        autograph=False,
    )


HIDDEN = {kind: traced(model) for kind, model in MODELS.items()}


@pytest.mark.exhaustive
@hypothesis.settings(max_examples=20)
@hypothesis.given(
    st.sampled_from(["own", "compressed", "no_memory"]), st.integers(1, 40), st.integers(1, 30)
)
def test_padding_and_neighbors_do_not_matter(kind, length, padding):
    ids = small.ids(1, length)
    alone = HIDDEN[kind](tf.constant(ids), tf.ones_like(ids))
    padded = np.pad(ids, [(0, 2), (0, padding)], constant_values=7)
    padded[1:] = small.ids(2, length + padding, seed=4)
    mask = np.ones_like(padded)
    mask[0, length:] = 0
    among = HIDDEN[kind](tf.constant(padded), tf.constant(mask))
    np.testing.assert_allclose(among[:1, :length], alone, atol=2e-5)


def changed_rows(model, length, place, **arguments):
    """Which tokens' outputs differ once one token is another one."""
    ids = small.ids(1, length)
    changed = np.array(ids)
    changed[0, place] = ids[0, place] % (small.VOCAB_SIZE - 1) + 1
    states = [model(tf.constant(x), **arguments)[0][0].numpy() for x in (ids, changed)]
    return np.flatnonzero(np.abs(states[0] - states[1]).max(-1) > 1e-7).tolist()


def test_chunks_meet_in_the_memory_alone():
    assert changed_rows(MODELS["no_memory"], 11, 9) == [8, 9, 10]
    assert changed_rows(MODELS["tied"], 11, 9) == list(range(11))
    one_layer = small.model(num_hidden_layers=1)  # The memory tells in the next layer.
    assert changed_rows(one_layer, 11, 9) == [8, 9, 10]


def test_another_chunk_size_with_the_same_weights():
    other = small.model(chunk_size=6)
    other.set_weights(MODELS["tied"].get_weights())
    ids = tf.constant(small.ids(1, 30))
    assert np.abs(other(ids)[0] - MODELS["tied"](ids)[0]).max() > 1e-3
    short = ids[:, :4]  # One chunk of either.
    np.testing.assert_allclose(other(short)[0], MODELS["tied"](short)[0], atol=1e-6)


@pytest.mark.parametrize("kind", ["compressed", "compressed_own"])
def test_tokens_reach_the_end_through_the_memory_alone(kind):
    model = MODELS[kind]
    ids, mask = small.ids(2, 13), np.ones([2, 13], np.int32)
    mask[1, 9:] = 0
    memory = model.compress(ids, mask)
    assert memory.shape == [2, 3, 16]
    hidden, last = model.decompress(memory, mask)
    wanted, wanted_last = model(ids, mask)
    np.testing.assert_allclose(hidden, wanted, atol=1e-6)
    np.testing.assert_allclose(last, wanted_last, atol=1e-6)
    # Nothing else goes in: all rows of one memory are the same, whatever the texts were.
    shared = tf.repeat(memory[:1], 2, axis=0)
    again, _ = model.decompress(shared, np.ones([2, 13], np.int32))
    np.testing.assert_allclose(again[0], again[1], atol=1e-6)


def test_what_the_decompressor_reads():
    outputs = []
    for kind in ("positions", "normalized_positions", "normalized_positions_and_types"):
        model = small.model(**small.COMPRESSED, decompressor_input=kind)
        memory = model.compress(small.ids(1, 9))
        mask = np.ones([1, 9], np.int32)
        by_types = [
            model.decompress(memory, mask, token_type_ids=np.full([1, 9], number))[0].numpy()
            for number in (0, 1)
        ]
        assert (np.abs(by_types[0] - by_types[1]).max() > 1e-6) == kind.endswith("types")
        outputs.append(by_types[0])
    assert np.abs(outputs[0] - outputs[1]).max() > 1e-3


def test_a_memory_of_the_first_tokens_of_a_question():
    model = MODELS["tied"]
    ids, question = small.ids(2, 9), small.ids(2, 3, seed=5)
    learned, given = model(ids)[0], model(ids, memory_ids=question)[0]
    assert np.abs(learned - given).max() > 1e-3
    words = tf.gather(model.get_token_embedding_table(), question)
    first = model(ids, memory_ids=question, output_hidden_states=True)[2]["memory_states"][0]
    norm = model.embeddings.layer_norm
    np.testing.assert_allclose(first, norm(words), atol=1e-6)
    # What a mask leaves out does not matter.
    mask = np.array([[1, 1, 0], [1, 1, 1]])
    other = np.where(mask, question, 3)
    one, two = (model(ids, memory_ids=x, memory_mask=mask)[0] for x in (question, other))
    np.testing.assert_allclose(one, two, atol=1e-6)


def test_positions_have_two_tables():
    model = MODELS["tied"]
    ids = small.ids(1, 40)
    by_default = model(ids)[0]
    same = model(ids, position_ids=np.arange(40)[np.newaxis])[0]
    np.testing.assert_array_equal(by_default, same)
    first = GmatModel(small.config())
    first.get_token_embedding_table()
    assert not first.embeddings.quotient_embeddings.embedding_table.numpy().any()
    vectors = first.embeddings.positions(np.arange(40))
    np.testing.assert_array_equal(vectors[:16], vectors[16:32])  # Until it learns.
    without = small.model(num_position_quotients=0)
    assert without.embeddings.quotient_embeddings is None and without.config.max_length == 16


def test_an_input_of_embeddings():
    model, ids = MODELS["tied"], small.ids(2, 9)
    embeddings = tf.gather(model.get_token_embedding_table(), ids)
    np.testing.assert_allclose(model(inputs_embeds=embeddings)[0], model(ids)[0], atol=1e-6)


@pytest.mark.parametrize("kind", [*KINDS])
def test_what_is_asked_for_beside_changes_nothing(kind):
    model, ids = MODELS[kind], small.ids(2, 9)
    plain = model({"input_ids": ids})
    *more, extras = model(ids, output_hidden_states=True, output_attentions=True)
    has_memory, compressed = kind != "no_memory", kind.startswith("compressed")
    for one, other in zip(plain, more, strict=True):
        if has_memory or one is not None:
            np.testing.assert_allclose(one, other, atol=1e-5)
    assert len(extras["hidden_states"]) == 4
    assert set(extras) == {"hidden_states", "attentions"} | (
        {"memory_states", "memory_attentions"} if has_memory else set()
    )
    assert len(extras["attentions"]) == (2 if compressed else 3)
    for probs in (*extras["attentions"], *extras.get("memory_attentions", ())):
        np.testing.assert_allclose(tf.reduce_sum(probs, -1), 1, atol=1e-5)
    if has_memory:
        assert len(extras["memory_states"]) == 4 and len(extras["memory_attentions"]) == 3


def gradients(model):
    ids = tf.constant(small.ids(2, 13))
    with tf.GradientTape() as tape:
        hidden = model(ids, training=True)[0]
        loss = tf.reduce_sum(hidden * np.random.default_rng(0).normal(size=hidden.shape))
    found = tape.gradient(loss, model.trainable_variables)
    return loss, [tf.convert_to_tensor(x) if x is not None else tf.zeros([]) for x in found]


@pytest.mark.parametrize("kind", ["own", "compressed"])
def test_recomputed_activations_give_the_same_gradients(kind):
    (plain, wanted), (again, found) = (
        gradients(small.model(grad_checkpointing_period=number, **KINDS[kind])) for number in (0, 1)
    )
    np.testing.assert_allclose(plain, again, rtol=1e-4)
    for one, other in zip(wanted, found, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4)


def test_dropout_is_of_training():
    model = small.model(hidden_dropout_prob=0.5, attention_probs_dropout_prob=0.2)
    ids = tf.constant(small.ids(2, 13))
    still = [model(ids)[0].numpy() for _ in range(2)]
    dropped = [model(ids, training=True)[0].numpy() for _ in range(2)]
    np.testing.assert_array_equal(*still)
    assert (still[0] != dropped[0]).any() and (dropped[0] != dropped[1]).any()


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("kind", ["tied", "compressed", "no_memory"])
@pytest.mark.parametrize("policy, limit", [("mixed_bfloat16", 0.3), ("mixed_float16", 0.05)])
def test_half_precision_stays_finite_and_near(kind, policy, limit):
    """Also where a row is all padding."""
    ids, mask = small.ids(3, 14), np.ones((3, 14), np.int32)
    mask[1, 5:] = mask[2] = 0
    found = small.model(policy=policy, **KINDS[kind])(ids, mask)[0]
    assert np.isfinite(tf.cast(found, tf.float32)).all()
    wanted = MODELS[kind](ids, mask)[0]
    np.testing.assert_allclose(tf.cast(found[0], tf.float32), wanted[0], atol=limit)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("kind", [*KINDS])
def test_it_is_made_again_of_its_config_and_of_a_folder(kind, tmp_path):
    model, ids = MODELS[kind], small.ids(2, 11)
    again = tf_keras.layers.deserialize(tf_keras.layers.serialize(model))
    again.get_token_embedding_table()
    again.set_weights(model.get_weights())
    np.testing.assert_array_equal(again(ids)[0], model(ids)[0])
    model.save_pretrained(tmp_path / "one")
    loaded = etcmodel.load_pretrained(tmp_path / "one")
    assert isinstance(loaded, GmatModel) and loaded.config == model.config
    np.testing.assert_array_equal(loaded(ids)[0], model(ids)[0])
    etcmodel.save_pretrained(loaded, tmp_path / "two")
    one, other = (tmp_path / name / "model.safetensors" for name in ("one", "two"))
    assert one.read_bytes() == other.read_bytes()
    assert etcmodel.load_pretrained(tmp_path / "one", chunk_size=7).config.chunk_size == 7


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"chunk_size": 0}, "`chunk_size` must be at least 1"),
        ({"num_memory_tokens": -1}, "`num_memory_tokens` must be at least 0"),
        ({"hidden_dropout_prob": 1.0}, "`hidden_dropout_prob` must be at least 0 and below 1"),
        ({"num_attention_heads": 3}, "must be a multiple of `num_attention_heads`"),
        ({"memory_type_id": 2}, "`memory_type_id` must be below `type_vocab_size`, 2"),
        ({"num_memory_layers": 1}, "`num_memory_layers` needs `num_compression_layers`"),
        ({"num_compression_layers": 3}, "Compression needs memory tokens, and layers after"),
        (
            {"num_compression_layers": 1, "num_memory_tokens": 0},
            "Compression needs memory tokens",
        ),
        ({"decompressor_input": "words"}, "`decompressor_input` must be one of"),
        ({"chunk_size": "4"}, "`chunk_size` must be of type int"),
    ],
)
def test_a_config_that_cannot_be_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        small.config(**changes)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({}, "Give `input_ids` or `inputs_embeds`, one of them"),
        ({"attention_mask": np.ones([1, 8])}, "`attention_mask` must have shape"),
        ({"memory_ids": np.ones([1, 2], int)}, "num_memory_tokens"),
        ({"position_ids": np.full([1, 9], 128)}, "`position_ids` must be at least 0 and below 128"),
    ],
)
def test_calls_that_cannot_be_are_refused(arguments, message):
    given = {"input_ids": small.ids(1, 9), **arguments} if arguments else {}
    with pytest.raises(ValueError, match=message):
        MODELS["tied"](**given)


def test_what_a_model_has_not_is_said():
    with pytest.raises(ValueError, match="takes no `memory_ids`: it has no memory"):
        MODELS["no_memory"](small.ids(1, 9), memory_ids=np.ones([1, 3], int))
    with pytest.raises(ValueError, match="has no compression"):
        MODELS["tied"].compress(small.ids(1, 9))
    with pytest.raises(ValueError, match="`config` must be a `GmatConfig`"):
        GmatModel(3)
    compressing = small.model(**small.COMPRESSED)
    with pytest.raises(ValueError, match="Nothing says how long the text is: give `input_ids`"):
        compressing.compress(None)
    memory = np.ones([2, 3, 16], np.float32)
    with pytest.raises(ValueError, match="or an `attention_mask` to `decompress`"):
        compressing.decompress(memory, None)
    for wrong in (memory[:1], memory[:, 1:], memory[..., 1:], memory[0]):
        with pytest.raises(ValueError, match=r"`memory` must have shape \[batch, num_memory_tok"):
            compressing.decompress(wrong, np.ones([2, 9], np.int32))
    graph = tf.function(
        MODELS["tied"], input_signature=[tf.TensorSpec([None, None], tf.int32)], autograph=False
    )
    with pytest.raises(tf.errors.InvalidArgumentError, match="`position_ids` must be at least 0"):
        graph(tf.constant(small.ids(1, 129)))
