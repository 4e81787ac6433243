"""Attention probabilities: those of the NumPy twin, and those that make the layers' outputs."""

import numpy as np
import pytest
import tensorflow as tf

from etcmodel.inspection import MEAN, SIDES, attention, hidden_states
from etcmodel.models import input_utils
from tests.inspection import small_models
from tests.ops import numpy_attention, plain_attention

LABELED = [name for name in small_models.VARIANTS if not name.startswith("recomputing")]


def attention_input(model, states, layer):
    """What the attention of a layer is called with: (long, global)."""
    block = model.global_local_transformer_layers.fused_att_layers[layer]
    if not block.use_pre_activation_order:
        return states[layer]
    pairs = zip(block.normalization_layers, states[layer], strict=True)
    return [normalize(x) for normalize, x in pairs]


def pieces_of(model, states, layer):
    """The layer's attention, and its `Pieces`."""
    inner = model.global_local_transformer_layers.fused_att_layers[layer].inner_layer
    return inner, inner.project_pieces(*attention_input(model, states, layer))


def twin_probs(inner, pieces, structure, side):
    """[batch, queries, heads, keys]: of both sides' keys, the long ones first, by the twin.

    The values are unit vectors, one a key, so that the twin's outputs are its probabilities.
    """
    own, other = (pieces.l2l, pieces.l2g) if side == "long" else (pieces.g2g, pieces.g2l)
    keys = (
        {"long": own[0], "global": other[0]}
        if side == "long"
        else {
            "long": other[0],
            "global": own[0],
        }
    )
    queries = {"long": pieces.long_queries, "global": pieces.global_queries}
    layer = inner.long_qkv_attention.qkv_relative_attention
    layer = layer if side == "long" else inner.global_qkv_attention

    def joined(by_side):
        return np.concatenate([tf.cast(by_side[x], tf.float32) for x in ("global", "long")], 1)

    queries, keys = joined(queries), joined(keys)
    num_keys, num_heads = keys.shape[1:3]
    values = np.broadcast_to(
        np.eye(num_keys)[:, np.newaxis], [len(keys), num_keys, num_heads, num_keys]
    )
    labels = None
    if layer.relative_vocab_size:
        tables = (layer.relative_emb_table.numpy(), layer.relative_bias_table.numpy())
        labels = numpy_attention.Labels(*tables)
    pairs = plain_attention.pairs_of(structure, inner.local_radius)
    probs = numpy_attention.structured_attend(queries, keys, values, pairs, labels)
    global_len = pieces.global_queries.shape[1]
    probs = np.roll(probs, -global_len, -1)  # The twin has the global tokens first.
    return probs[:, global_len:] if side == "long" else probs[:, :global_len]


def dense_probs(found):
    """[queries, heads, keys] of all queries and heads, the long keys first."""
    rows = [
        [np.concatenate([*found.dense(query, head).values()]) for head in np.unique(found.head)]
        for query in np.unique(found.query)
    ]
    return np.array(rows)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("form", ["structure", "dense"])
@pytest.mark.parametrize("variant", LABELED)
def test_all_four_pieces_are_those_of_the_numpy_twin(variant, form):
    model = small_models.make_encoder(num_layers=2, **small_models.VARIANTS[variant])
    structure = small_models.inputs_of(model.config)["structure"]
    inputs = small_models.inputs_of(model.config, form)
    states = hidden_states(model, inputs)
    for found in attention(model, inputs, example=1):
        inner, pieces = pieces_of(model, states, found.layer)
        expected = twin_probs(inner, pieces, structure, found.query_side)[1]
        np.testing.assert_allclose(dense_probs(found), expected, atol=1e-5)
        assert np.ptp(expected) > 0.3


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("policy, atol", [("float32", 1e-5), ("mixed_bfloat16", 0.03)])
@pytest.mark.parametrize("implementation", ["auto", "sparse", "full"])
def test_values_weighed_by_them_make_the_layers_output(policy, atol, implementation):
    model = small_models.make_encoder(num_layers=2, dtype=policy)
    inputs = small_models.inputs_of(model.config)
    inputs["att_implementation"] = implementation
    structure, states = inputs["structure"], hidden_states(model, inputs)
    inner, pieces = pieces_of(model, states, 1)
    outputs = inner(
        *attention_input(model, states, 1),
        structure=structure,
        att_implementation=implementation,
    )
    values = {
        "long": (pieces.l2l[1], pieces.l2g[1]),
        "global": (pieces.g2l[1], pieces.g2g[1]),
    }
    attended = {}
    for example in range(2):
        for found in attention(model, inputs, layers=[1], example=example):
            own = [tf.cast(x[example], tf.float32) for x in values[found.query_side]]
            mixed = np.einsum("qhk,khs->qhs", dense_probs(found), np.concatenate(own))
            attended.setdefault(found.query_side, []).append(mixed)
            twin = twin_probs(inner, pieces, structure, found.query_side)[example]
            np.testing.assert_allclose(dense_probs(found), twin, atol=atol)
    recomputed = inner.project_outputs(
        *(tf.cast(np.stack(attended[side]), inner.compute_dtype) for side in SIDES)
    )
    for x, expected in zip(recomputed, outputs, strict=True):
        size = np.abs(tf.cast(expected, tf.float32)).max()
        difference = np.abs(tf.cast(x, tf.float32) - tf.cast(expected, tf.float32)).max()
        assert difference <= atol * max(size, 1)


def long_batch(config, long_len):
    """One document of sentences of ten tokens."""
    sentences = np.arange(long_len)[np.newaxis] // 10
    global_ids = np.ones([1, sentences.max() + 1], int)
    structure = input_utils.make_structure_from_example_ids(
        np.ones([1, long_len]), global_ids, sentences, config.relative_pos_max_distance
    )
    token_ids = np.random.default_rng(0).integers(1, 11, [1, long_len])
    return {"token_ids": token_ids, "global_token_ids": global_ids, "structure": structure}


def test_some_queries_of_a_long_text_in_tiles_are_those_of_the_twin():
    model = small_models.make_encoder(num_layers=1)
    inputs = long_batch(model.config, 150)
    inner, pieces = pieces_of(model, hidden_states(model, inputs), 0)
    queries = {"long": [149, 0, 64, 63], "global": [14]}
    found = attention(model, inputs, queries=queries)
    for side, rows in zip(SIDES, found, strict=True):
        assert rows.query_side == side and set(rows.query) == set(queries[side])
        expected = twin_probs(inner, pieces, inputs["structure"], side)[0, sorted(queries[side])]
        np.testing.assert_allclose(dense_probs(rows), expected, atol=1e-5)
    assert len(found[0].key) == 2 * (15 + 5 + 5 + 3 + 3 + 15 * 3)  # Heads, windows, global keys.


@pytest.fixture(scope="module")
def model():
    return small_models.make_encoder()


@pytest.fixture(scope="module")
def inputs(model):
    return small_models.inputs_of(model.config)


def test_layers_heads_and_sides_are_those_that_were_chosen(model, inputs):
    found = attention(model, inputs, layers=[2, 0], heads=[1], queries={"global": [2]})
    assert [(x.layer, x.query_side) for x in found] == [(2, "global"), (0, "global")]
    everything = attention(model, inputs)
    assert [(x.layer, x.query_side) for x in everything] == [
        (i, x) for i in range(3) for x in SIDES
    ]
    for part in found:
        assert set(part.query) == {2} and set(part.head) == {1}
        (whole,) = (x for x in everything if (x.layer, x.query_side) == (part.layer, "global"))
        for side in SIDES:
            np.testing.assert_array_equal(part.dense(2, 1)[side], whole.dense(2, 1)[side])


def test_the_mean_is_over_all_heads_and_the_top_keys_are_the_first(model, inputs):
    (mean, _), (whole, _) = (
        attention(model, inputs, layers=[1], heads=heads) for heads in ([MEAN], None)
    )
    expected = np.mean([whole.dense(3, head)["long"] for head in (0, 1)], 0)
    np.testing.assert_allclose(mean.dense(3, MEAN)["long"], expected, atol=1e-6)
    (top, _) = attention(model, inputs, layers=[1], top=2)
    for query in range(small_models.LONG_LEN):
        for head in range(2):
            all_probs, first = (
                x.probability[(x.query == query) & (x.head == head)] for x in (whole, top)
            )
            np.testing.assert_array_equal(first, np.sort(all_probs)[::-1][:2])


def test_masked_keys_have_no_entry(model, inputs):
    long_rows, global_rows = attention(model, inputs, layers=[0])
    padding = (long_rows.key_side == 0) & (long_rows.key >= 10) & (long_rows.query < 10)
    assert not padding.any()
    linked = global_rows.key[(global_rows.query == 1) & (global_rows.key_side == 0)]
    assert set(linked) == {4, 5, 6, 7}  # Hard masks: the tokens of the second sentence.


def test_a_model_around_the_encoder_is_called_as_it_is(model, inputs):
    around = attention(small_models.Classifier(model), inputs, layers=[2])
    for x, y in zip(around, attention(model, inputs, layers=[2]), strict=True):
        np.testing.assert_array_equal(x.probability, y.probability)


@pytest.mark.parametrize(
    "choice, message",
    [
        ({"layers": [3]}, "`layers` must be from 0 to 2. Received: 3"),
        ({"heads": [-2]}, "`heads` must be from 0 to 1, or -1. Received: -2"),
        ({"queries": {"long": [12]}}, r"`queries\['long'\]` must be from 0 to 11. Received: 12"),
        ({"queries": {"local": [0]}}, r"dict of \('long', 'global'\) .* Received: \['local'\]"),
        ({"example": 2}, "`example` must be from 0 to 1. Received: 2"),
        ({"top": 0}, "`top` must be at least 1. Received: 0"),
    ],
)
def test_what_is_not_there_is_refused(model, inputs, choice, message):
    with pytest.raises(ValueError, match=message):
        attention(model, inputs, **choice)
