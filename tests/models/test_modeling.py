"""What may and may not change the encoder's outputs."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from etcmodel.models import input_utils, modeling
from etcmodel.ops import dropout as dropout_ops
from tests.models import etcs

SMALL = etcs.config(segment_vocab_size=4, num_hidden_layers=2, initializer_range=0.3)
FEW_EXAMPLES = settings(max_examples=3)
seeds = st.integers(0, 2**16)


def make_model(**options):
    """Initial label biases and the like are 0, which would hide faults: everything is random."""
    changes = {name: options.pop(name) for name in set(options) & set(vars(SMALL))}
    model = modeling.EtcModel(dataclasses.replace(SMALL, **changes), **options)
    model(np.array([[1, 2]]), np.array([[3]]))
    rng = np.random.default_rng(0)
    model.set_weights([rng.normal(scale=0.4, size=w.shape) for w in model.get_weights()])
    return model


@pytest.fixture(scope="module")
def model():
    return make_model()


def example(long_len, global_len, seed=0):
    """The model's inputs of one example without side inputs; each long token has a sentence."""
    rng = np.random.default_rng(seed)
    ids = [rng.integers(1, 11, [1, length]) for length in (long_len, global_len)]
    sentence_ids = np.sort(rng.integers(0, global_len, [1, long_len]))
    return *ids, sentence_ids, *map(np.ones_like, ids)


def run(model, token_ids, global_token_ids, sentence_ids, long_ids, global_ids, **options):
    side_inputs = input_utils.make_global_local_transformer_side_inputs_from_example_ids(
        long_ids,
        global_ids,
        sentence_ids,
        local_radius=model.config.local_radius,
        relative_pos_max_distance=model.config.relative_pos_max_distance,
    )
    return model(token_ids, global_token_ids, **side_inputs.to_dict(), **options)


def assert_same(actual, expected, atol=1e-5):
    for one, other in zip(actual, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=atol)


@FEW_EXAMPLES
@given(st.integers(1, 20), seeds)
def test_sparse_equals_full(model, long_len, seed):
    inputs = example(long_len, 3, seed)
    assert_same(*(run(model, *inputs, att_implementation=way) for way in ("sparse", "full")))


def test_missing_side_inputs_mean_that_all_is_allowed(model):
    token_ids, global_token_ids, *_ = example(8, 3)
    ones = {
        "l2l_att_mask": np.ones([1, 8, 5], int),
        "g2g_att_mask": np.ones([1, 3, 3], int),
        "l2g_att_mask": np.ones([1, 8, 3], int),
        "g2l_att_mask": np.ones([1, 3, 8], int),
    }
    expected = model(token_ids, global_token_ids, **ones)
    assert_same(model(token_ids, global_token_ids), expected)
    for name in ones:
        others = {other: mask for other, mask in ones.items() if other != name}
        assert_same(model(token_ids, global_token_ids, **others), expected)


def test_segments_default_to_1_for_long_and_0_for_global_tokens(model):
    ids = np.array([[1, 2, 3]]), np.array([[4, 5]])
    given_ids = {"segment_ids": np.ones([1, 3], int), "global_segment_ids": np.zeros([1, 2], int)}
    assert_same(model(*ids, **given_ids), model(*ids), atol=0)
    others = {"segment_ids": np.full([1, 3], 2), "global_segment_ids": np.full([1, 2], 3)}
    assert not np.allclose(model(*ids, **others)[0], model(*ids)[0], atol=1e-3)


def test_embedding_adders_are_added_before_normalization(model):
    ids = np.array([[1, 2, 3]]), np.array([[4, 5]])
    table = model.segment_emb_lookup.embedding_table
    segments = {"segment_ids": np.full([1, 3], 2), "global_segment_ids": np.full([1, 2], 3)}
    adders = {
        "long_embedding_adder": tf.tile((table[2] - table[1])[tf.newaxis, tf.newaxis], [1, 3, 1]),
        "global_embedding_adder": tf.tile((table[3] - table[0])[tf.newaxis, tf.newaxis], [1, 2, 1]),
    }
    assert_same(model(*ids, **adders), model(*ids, **segments))


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize(
    "is_training, training, has_dropout",
    [
        (None, None, False),
        (None, False, False),
        (None, True, True),
        (False, None, False),
        (False, True, False),
        (True, None, True),
        (True, False, False),
        (True, True, True),
    ],
)
def test_dropout_follows_is_training_and_the_training_argument(is_training, training, has_dropout):
    model = make_model(is_training=is_training)
    ids = np.array([[1, 2, 3]]), np.array([[4, 5]])
    runs = []
    for seed in ([1, 2], [3, 4]):
        with dropout_ops.seed_scope(seed):
            runs.append(model(*ids, training=training)[0].numpy())
    assert np.array_equal(*runs) is not has_dropout


def test_one_hot_lookups_give_what_gathers_give(model):
    options = {"use_one_hot_embeddings": True, "use_one_hot_relative_embeddings": True}
    inputs = example(9, 3)
    assert_same(*(run(x, *inputs) for x in (model, make_model(**options))))


def test_the_token_embedding_table_is_there_before_the_first_call():
    model = modeling.EtcModel(dataclasses.replace(SMALL, embedding_size=3))
    table = model.get_token_embedding_table()
    assert table.shape == [11, 3]
    names = {weight.name for weight in model.weights}
    assert table.name == "etc_document_bert/token_emb_lookup/embedding_table:0"
    model(np.array([[1, 2]]), np.array([[3]]))
    assert {weight.name for weight in model.weights} == names
    assert model.get_token_embedding_table() is table


def test_positions_default_to_0_1_2_in_tables_of_their_own():
    model = make_model(max_absolute_position_embeddings=6)
    ids = np.array([[1, 2, 3], [2, 3, 1]]), np.array([[4, 5], [4, 4]])
    positions = {
        "position_ids": np.array([[0, 1, 2]] * 2),
        "global_position_ids": np.array([[0, 1]] * 2),
    }
    expected = model(*ids)
    assert_same(model(*ids, **positions), expected)
    moved = {**positions, "global_position_ids": np.array([[2, 3]] * 2)}
    assert not np.allclose(model(*ids, **moved)[1], expected[1], atol=1e-3)
    assert model.position_emb_lookup_long.embedding_table.shape == [6, 8]
    assert model.position_emb_lookup_global is not model.position_emb_lookup_long


def test_positions_need_tables(model):
    with pytest.raises(ValueError, match="Position ids need `max_absolute_position_embeddings`"):
        model(np.array([[1]]), np.array([[2]]), position_ids=np.array([[0]]))


def test_heads_may_have_a_size_of_their_own():
    model = make_model(num_attention_heads=3, att_size_per_head=5)
    assert model(np.array([[1, 2]]), np.array([[3]]))[0].shape == [1, 2, 8]
