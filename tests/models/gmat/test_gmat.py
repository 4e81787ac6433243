"""GMAT's chunks, memory and compression; what holds for others, too: `test_every_encoder`."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from etcmodel.models.gmat import GmatModel
from tests.models.gmat import small
from tests.models.random_texts import changed_rows

KINDS = {
    "tied": {},
    "compressed": small.COMPRESSED,
    "compressed_own": {**small.COMPRESSED, **small.OWN},
    "no_memory": {"num_memory_tokens": 0},
}


@functools.cache
def model_of(kind):
    return small.model(**KINDS[kind])


def test_chunks_meet_in_the_memory_alone():
    one_layer = small.model(num_hidden_layers=1)  # The memory tells in the next layer.
    chunk, models = [8, 9, 10], (model_of("no_memory"), model_of("tied"), one_layer)
    for model, wanted in zip(models, (chunk, [*range(11)], chunk), strict=True):
        assert changed_rows(lambda x, of=model: of(x)[0], small.ids(1, 11), 9) == wanted


def test_another_chunk_size_with_the_same_weights():
    other = small.model(chunk_size=6)
    other.set_weights(model_of("tied").get_weights())
    ids = tf.constant(small.ids(1, 30))
    assert np.abs(other(ids)[0] - model_of("tied")(ids)[0]).max() > 1e-3
    short = ids[:, :4]  # One chunk of either.
    np.testing.assert_allclose(other(short)[0], model_of("tied")(short)[0], atol=1e-6)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("kind", ["compressed", "compressed_own"])
def test_tokens_reach_the_end_through_the_memory_alone(kind):
    model = model_of(kind)
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
    model = model_of("tied")
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
    model = model_of("tied")
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


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"memory_ids": np.ones([1, 2], int)}, "num_memory_tokens"),
        ({"position_ids": np.full([1, 9], 128)}, "`position_ids` must be at least 0 and below 128"),
    ],
)
def test_calls_that_cannot_be_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        model_of("tied")(input_ids=small.ids(1, 9), **arguments)


def test_what_a_model_has_not_is_said():
    with pytest.raises(ValueError, match="takes no `memory_ids`: it has no memory"):
        model_of("no_memory")(small.ids(1, 9), memory_ids=np.ones([1, 3], int))
    with pytest.raises(ValueError, match="has no compression"):
        model_of("tied").compress(small.ids(1, 9))
    compressing = model_of("compressed")
    with pytest.raises(ValueError, match="Nothing says how long the text is: give `input_ids`"):
        compressing.compress(None)
    memory = np.ones([2, 3, 16], np.float32)
    with pytest.raises(ValueError, match="or an `attention_mask` to `decompress`"):
        compressing.decompress(memory, None)
    for wrong in (memory[:1], memory[:, 1:], memory[..., 1:], memory[0]):
        with pytest.raises(ValueError, match=r"`memory` must have shape \[batch, num_memory_tok"):
            compressing.decompress(wrong, np.ones([2, 9], np.int32))


@pytest.mark.slow
def test_a_graph_refuses_a_text_that_is_longer_than_the_positions():
    graph = tf.function(
        model_of("tied"), input_signature=[tf.TensorSpec([None, None], tf.int32)], autograph=False
    )
    with pytest.raises(tf.errors.InvalidArgumentError, match="`position_ids` must be at least 0"):
        graph(tf.constant(small.ids(1, 129)))
