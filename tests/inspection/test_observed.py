"""Looking inside a Longformer, GMAT and BigBird: what they tell by `output_attentions`."""

import functools

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from etcmodel import inspection
from etcmodel.models import gmat, longformer
from tests.models.bigbird import small as bigbirds

LENGTH, MEMORY = 9, 3
SIZES = {
    "vocab_size": 20,
    "hidden_size": 8,
    "num_attention_heads": 2,
    "intermediate_size": 8,
    "initializer_range": 0.5,
}
IDS = np.array([[3, 4, 5, 6, 7, 8, 9, 10, 11], [12, 13, 3, 4, 5, 6, 1, 1, 1]])
MASK = (IDS > 1).astype(np.int32)
GLOBAL = np.array([[1, 0, 0, 0, 1, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0, 0, 0, 0]])


@functools.cache
def make_longformer(has_head=False):
    tf_keras.utils.set_random_seed(1)
    config = longformer.LongformerConfig(
        **SIZES, num_hidden_layers=2, attention_window=[2, 4], max_position_embeddings=20
    )
    if has_head:
        return longformer.LongformerForSequenceClassification(config)
    return longformer.LongformerModel(config)


@functools.cache
def make_gmat(**changes):
    tf_keras.utils.set_random_seed(1)
    config = gmat.GmatConfig(
        **SIZES,
        **{"num_hidden_layers": 2, **changes},
        chunk_size=4,
        num_memory_tokens=MEMORY,
        position_period=20,
        num_position_quotients=1,
    )
    return gmat.GmatModel(config)


def inputs(is_global=True):
    given = {"input_ids": IDS, "attention_mask": MASK}
    return {**given, "global_attention_mask": GLOBAL} if is_global else given


def longformer_row(extras, layer, example, head, query, radius):
    """A query's probabilities by key, one at a time: the layout that `LongformerModel` tells."""
    slots = np.flatnonzero(GLOBAL[example])
    num_slots = GLOBAL.sum(1).max()
    if query in slots:
        return extras["global_attentions"][layer][example, head, :, list(slots).index(query)]
    local = extras["attentions"][layer][example, head, query].numpy()
    row = np.zeros(LENGTH, np.float32)
    for column in range(2 * radius + 1):
        if 0 <= (key := query + column - radius) < LENGTH:
            row[key] += local[num_slots + column]
    for slot, key in enumerate(slots):
        row[key] += local[slot]
    return row


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("example", [0, 1])
def test_a_longformer_s_rows_are_those_that_it_tells(example):
    model = make_longformer()
    *_, extras = model(inputs(), output_attentions=True)
    found = inspection.attention(model, inputs(), example=example)
    assert [(part.layer, part.query_side) for part in found] == [(0, "long"), (1, "long")]
    for part in found:
        assert part.num_keys == (LENGTH, 0)
        for head in range(2):
            for query in range(LENGTH):
                row = longformer_row(extras, part.layer, example, head, query, 1 + part.layer)
                shown = part.dense(query, head)["long"]
                np.testing.assert_allclose(shown, row, atol=1e-6)
                np.testing.assert_allclose(np.sum(row), MASK[example, query], atol=1e-5)


def test_tokens_see_their_window_and_global_ones_all():
    (part,) = inspection.attention(make_longformer(), inputs(), layers=[0], heads=[0])
    assert set(part.key[part.query == 7]) == {0, 4, 6, 7, 8}
    assert set(part.key[part.query == 4]) == set(range(LENGTH))
    (part,) = inspection.attention(make_longformer(), inputs(False), layers=[0], heads=[0])
    assert set(part.key[part.query == 7]) == {6, 7, 8}


def test_a_head_s_encoder_is_looked_into():
    model = make_longformer(has_head=True)
    wanted = inspection.attention(model.encoder, inputs(), heads=[inspection.MEAN], top=2)
    found = inspection.attention(model, inputs(), heads=[inspection.MEAN], top=2)
    assert max(np.bincount(found[0].query)) == 2
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one.key, other.key)
        np.testing.assert_allclose(one.probability, other.probability, atol=1e-6)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("changes", [{}, {"num_compression_layers": 1, "num_memory_layers": 1}])
def test_a_gmat_s_rows_are_those_that_it_tells(changes):
    changes = {**changes, "num_hidden_layers": 3} if changes else {}
    model = make_gmat(**changes)
    given = inputs(is_global=False)
    *_, extras = model(given, output_attentions=True)
    found = {(part.layer, part.query_side): part for part in inspection.attention(model, given)}
    layers = [0, 2] if changes else [0, 1]
    assert [layer for layer, side in found if side == "long"] == layers
    of_memory = [layer for layer, side in found if side == "global"]
    assert of_memory == [*range(len(extras["memory_attentions"]))]
    for number, layer in enumerate(layers):
        probs = extras["attentions"][number][0].numpy()
        for head, query in ((0, 2), (1, 8)):
            row = found[layer, "long"].dense(query, head)
            np.testing.assert_allclose(
                [*row["long"], *row["global"]], probs[head, query], atol=1e-6
            )
    for layer, probs in enumerate(extras["memory_attentions"]):
        row = found[layer, "global"].dense(1, 0)
        wanted = probs[0, 0, 1].numpy()
        padded = np.pad(wanted, [LENGTH + MEMORY - len(wanted), 0])
        np.testing.assert_allclose([*row["long"], *row["global"]], padded, atol=1e-6)


def test_pages_are_made_of_both(tmp_path):
    for model, memory in ((make_longformer(), []), (make_gmat(), ["m0", "m1", "m2"])):
        found = inspection.attention(model, inputs(is_global=False), heads=[0], top=2)
        path = tmp_path / f"{model.name}.html"
        inspection.write_page(path, found, [f"w{i}" for i in range(LENGTH)], memory)
        page = path.read_text(encoding="utf-8")
        assert ">w8<" in page and (not memory or ">m2<" in page)


@pytest.mark.slow
@pytest.mark.parametrize("make", [make_longformer, make_gmat])
@pytest.mark.slow_cases(1)
def test_integrated_gradients_sum_to_the_difference_of_scores(make):
    direction = tf.range(8, dtype=tf.float32)
    found = inspection.integrated_gradients(
        make(),
        inputs(is_global=False),
        lambda outputs: tf.reduce_sum(outputs[0][:, 0] * direction, -1),
        num_steps=12,
        tolerance=None,
    )
    assert [x.shape for x in found.tokens] == [IDS.shape]
    error = np.abs(found.completeness_error) / np.abs(found.score - found.baseline_score)
    assert error.max() < 0.1 and np.abs(found.tokens[0]).max() > 0


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("length", [9, 31])
def test_a_bigbird_tells_what_pairs_weigh_together(length):
    """A block that counts twice has twice the probability; those of a query sum to 1."""
    model = bigbirds.model()
    ids = bigbirds.ids(length, batch=2)
    mask = np.ones_like(ids)
    mask[1, -3:] = 0
    given = {"input_ids": ids, "attention_mask": mask}
    *_, extras = model(**given, output_attentions=True)
    counts = model.pair_counts(given, length)
    assert (np.max(counts[0]) == 2) == (length > 14)
    for example in range(2):
        (found,) = inspection.attention(
            model, given, layers=[1], heads=[0], queries={"long": [4]}, example=example
        )
        row = found.dense(4, 0)["long"]
        weighed = extras["attentions"][1][example, 0, 4] * tf.cast(counts[1][0, 0, 4], tf.float32)
        np.testing.assert_allclose(row, weighed, atol=1e-6)
        np.testing.assert_allclose(row.sum(), 1.0, atol=1e-5)


def test_a_page_of_a_model_without_a_global_side_needs_its_tokens_alone(tmp_path):
    given = {name: value[:1] for name, value in inputs().items()}
    found = inspection.attention(make_longformer(), given, layers=[0], heads=[inspection.MEAN])
    tokens = [f"token{x}" for x in range(IDS.shape[1])]
    inspection.write_page(tmp_path / "page.html", found, tokens)
    assert "token3" in (tmp_path / "page.html").read_text(encoding="utf-8")
