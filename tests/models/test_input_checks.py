"""What the encoder refuses at its door, in one line that names the argument."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from absl import logging

from etcmodel.models import input_utils, modeling

CONFIG = modeling.EtcConfig(
    vocab_size=11,
    segment_vocab_size=4,
    hidden_size=8,
    num_hidden_layers=1,
    num_attention_heads=2,
    local_radius=2,
    relative_pos_max_distance=2,
    relative_vocab_size=8,
    intermediate_size=12,
    initializer_range=0.3,
)
BATCH, LONG_LEN, GLOBAL_LEN = 2, 6, 3
TOKENS = {
    "token_ids": np.arange(BATCH * LONG_LEN).reshape([BATCH, LONG_LEN]) % 11,
    "global_token_ids": np.arange(BATCH * GLOBAL_LEN).reshape([BATCH, GLOBAL_LEN]),
}
LINKS = np.array([[0, 0, 1, 1, 2, 2], [-1, 0, 1, 2, 2, -1]])
UNKNOWN = tf.TensorSpec([None, None], tf.int32)


@pytest.fixture(scope="module")
def model():
    return make_model()


@pytest.fixture(scope="module")
def graph(model):
    return by_graph(model)


@pytest.fixture(scope="module")
def compiled(model):
    return by_graph(model, jit_compile=True)


def make_model(**changes):
    model = modeling.EtcModel(dataclasses.replace(CONFIG, **changes))
    model.get_token_embedding_table()  # Builds it.
    return model


def make_structure(links=LINKS, long_len=LONG_LEN, global_len=GLOBAL_LEN, batch=BATCH, distance=2):
    return input_utils.make_structure_from_example_ids(
        tf.ones([batch, long_len], tf.int32),
        tf.ones([batch, global_len], tf.int32),
        links,
        distance,
    )


def ones(*shape):
    return np.ones(shape, int)


IDS = "[batch, long_len], here [2, 6]. Received shape:"
GLOBAL_IDS = "[batch, global_len], here [2, 3]. Received shape:"
WINDOW = "[batch, long_len, 2*local_radius+1], here [2, 6, 5]. Received shape:"
ADDER = "[batch, long_len, hidden_size], here [2, 6, 8]. Received shape:"


@pytest.mark.parametrize(
    "changes, line",
    [
        (
            {"token_ids": ones(6)},
            "`token_ids` must have shape [batch, long_len]. Received shape: [6]",
        ),
        (
            {"token_ids": ones(2, 6, 1)},
            "`token_ids` must have shape [batch, long_len]. Received shape: [2, 6, 1]",
        ),
        (
            {"global_token_ids": ones(3)},
            "`global_token_ids` must have shape [batch, global_len], here [2, global_len]. "
            "Received shape: [3]",
        ),
        (
            {"global_token_ids": ones(1, 3)},
            "`global_token_ids` must have shape [batch, global_len], here [2, global_len]. "
            "Received shape: [1, 3]",
        ),
        (
            {"token_ids": tf.ragged.constant([[1, 2, 3], [4]])},
            "`token_ids` must have shape [batch, long_len], padded. Received: a RaggedTensor of "
            "shape [2, ?]",
        ),
        (
            {"global_token_ids": tf.ragged.constant([[1, 2, 3], [4]])},
            "`global_token_ids` must have shape [batch, global_len], here [2, global_len], padded. "
            "Received: a RaggedTensor of shape [2, ?]",
        ),
        (
            {"token_ids": tf.sparse.from_dense(ones(2, 6))},
            "`token_ids` must have shape [batch, long_len], padded. Received: a SparseTensor of "
            "shape [2, 6]",
        ),
        ({"segment_ids": ones(2, 5)}, f"`segment_ids` must have shape {IDS} [2, 5]"),
        ({"segment_ids": ones(1, 6)}, f"`segment_ids` must have shape {IDS} [1, 6]"),
        (
            {"global_segment_ids": ones(2, 6)},
            f"`global_segment_ids` must have shape {GLOBAL_IDS} [2, 6]",
        ),
        ({"l2l_att_mask": ones(2, 6, 4)}, f"`l2l_att_mask` must have shape {WINDOW} [2, 6, 4]"),
        ({"l2l_att_mask": ones(6, 5)}, f"`l2l_att_mask` must have shape {WINDOW} [6, 5]"),
        (
            {"l2g_att_mask": ones(2, 3, 6)},
            "`l2g_att_mask` must have shape [batch, long_len, global_len], here [2, 6, 3]. "
            "Received shape: [2, 3, 6]",
        ),
        (
            {"g2l_att_mask": ones(1, 3, 6)},
            "`g2l_att_mask` must have shape [batch, global_len, long_len], here [2, 3, 6]. "
            "Received shape: [1, 3, 6]",
        ),
        (
            {"g2g_relative_att_ids": ones(3, 3, 3)},
            "`g2g_relative_att_ids` must have shape [batch, global_len, global_len], here "
            "[2, 3, 3]. Received shape: [3, 3, 3]",
        ),
        (
            {"long_embedding_adder": np.ones([2, 6, 4], np.float32)},
            f"`long_embedding_adder` must have shape {ADDER} [2, 6, 4]",
        ),
        (
            {"structure": make_structure(LINKS[:, :5], long_len=5)},
            f"`structure.long_segment_ids` must have shape {IDS} [2, 5]",
        ),
        (
            {"structure": make_structure(global_len=4)},
            f"`structure.global_example_ids` must have shape {GLOBAL_IDS} [2, 4]",
        ),
        (
            {"structure": make_structure(LINKS[:1], batch=1)},
            f"`structure.long_segment_ids` must have shape {IDS} [1, 6]",
        ),
        (
            {"structure": make_structure(LINKS[:, :4])},
            f"`structure.links[0]` must have shape {IDS} [2, 4]",
        ),
        (
            {"structure": make_structure()._replace(ignore_hard_g2l_mask=ones(3, 3))},
            "`structure.ignore_hard_g2l_mask` must have shape [batch or 1, global_len], here "
            "[2, 3]. Received shape: [3, 3]",
        ),
        (
            {"structure": make_structure(distance=3)},
            "`structure.max_distance` must be the model's `relative_pos_max_distance`, 2. "
            "Received: 3",
        ),
        (
            {"position_ids": ones(2, 6)},
            "Position ids need `max_absolute_position_embeddings` above 0 in the config. Received: "
            "`position_ids`",
        ),
    ],
)
def test_inputs_that_do_not_fit_are_named_in_one_line(model, changes, line):
    with pytest.raises(ValueError) as raised:
        model(**{**TOKENS, **changes})
    assert str(raised.value) == line


BAD_LINKS = [(3, "from 3 to 3"), (-2, "from -2 to 2"), (10**6, "from -1 to 1000000")]


def with_link(link):
    """`LINKS`, where one token, or all, have another."""
    links = LINKS.copy()
    links[1, 2] = link
    return np.full_like(links, link) if link == 3 else links


def link_line(field, values):
    return (
        f"`structure.{field}` must hold indices of global tokens, or -1 for no link. Received: "
        f"values {values} for 3 global tokens"
    )


@pytest.mark.parametrize("link, values", BAD_LINKS)
@pytest.mark.parametrize("field", ["links", "label_links"])
def test_links_to_global_tokens_that_do_not_exist_are_refused(model, field, link, values):
    wrong = tf.constant(with_link(link), tf.int32)
    structure = make_structure()
    position = len(getattr(structure, field))
    structure = structure._replace(**{field: (*getattr(structure, field), wrong)})
    with pytest.raises(ValueError) as raised:
        model(**TOKENS, structure=structure)
    assert str(raised.value) == link_line(f"{field}[{position}]", values)


@pytest.mark.parametrize("wrong", [2**32, -(2**32), 2**31])
@pytest.mark.parametrize("is_made", [True, False])
def test_links_beyond_32_bits_do_not_wrap_to_those_of_other_tokens(model, wrong, is_made):
    links = LINKS.astype(np.int64) + wrong
    structure = make_structure(links) if is_made else make_structure()._replace(links=(links,))
    with pytest.raises(ValueError, match=r"`structure.links\[0\]` must hold indices of global tok"):
        model(**TOKENS, structure=structure)
    side_inputs = input_utils.make_global_local_transformer_side_inputs_from_example_ids(
        ones(BATCH, LONG_LEN), ones(BATCH, GLOBAL_LEN), links, 2, 2, use_hard_l2g_mask=True
    )
    assert not np.any(side_inputs.l2g_att_mask)


def test_a_structure_may_be_of_numpy_arrays(model):
    structure = make_structure()
    arrays = structure._replace(
        long_segment_ids=ones(BATCH, LONG_LEN), links=(LINKS.astype(np.int64),)
    )
    for x, y in zip(*(model(**TOKENS, structure=s) for s in (arrays, structure)), strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize(
    "changes, line",
    [
        (
            {"global_token_ids": None},
            "`global_token_ids` must have shape [batch, global_len]. Received: None",
        ),
        (
            {"token_ids": [[1, 2], [3]]},
            "`token_ids` must have shape [batch, long_len], padded. Received: what no tensor can "
            "be made of",
        ),
        (
            {"l2g_att_mask": ones(BATCH, LONG_LEN, GLOBAL_LEN)},
            "Give `structure`, or masks and relative labels, not both.",
        ),
        (
            {"att_implementation": "fast"},
            "`att_implementation` must be 'auto', 'sparse' or 'full'. Received: 'fast'",
        ),
    ],
)
def test_what_else_is_no_input_is_told_in_one_line(model, changes, line):
    with pytest.raises(ValueError) as raised:
        model(**{**TOKENS, "structure": make_structure(), **changes})
    assert str(raised.value) == line


def by_graph(model, jit_compile=False):
    """The model as a graph that knows no length when it is traced."""

    @tf.function(input_signature=[UNKNOWN] * 3, jit_compile=jit_compile)
    def run(token_ids, global_token_ids, links):
        structure = input_utils.make_structure_from_example_ids(
            tf.ones_like(token_ids), tf.ones_like(global_token_ids), links, 2
        )
        return model(token_ids, global_token_ids, structure=structure)

    return run


@pytest.mark.parametrize("link, values", BAD_LINKS)
def test_a_graph_refuses_such_links_when_it_runs(graph, link, values):
    least, largest = values.split()[1::2]
    line = (
        rf"\[`structure.links\[0\]` must hold .*\] \[{least}\] \[to\] \[{largest}\] \[for\] \[3\]"
    )
    with pytest.raises(tf.errors.InvalidArgumentError, match=line):
        graph(*TOKENS.values(), with_link(link))


@pytest.mark.parametrize("link", [3, -2, 10**6])
def test_compiled_by_xla_such_links_link_nothing(model, compiled, link):
    wrong = with_link(link)
    nothing = np.where(wrong == link, -1, wrong)
    outputs = compiled(*TOKENS.values(), wrong)
    expected = model(**TOKENS, structure=make_structure(nothing))
    others = model(**TOKENS, structure=make_structure())
    for x, y, other in zip(outputs, expected, others, strict=True):
        np.testing.assert_allclose(x, y, atol=1e-5)
        assert not np.allclose(y, other, atol=1e-5)


def test_minus_one_is_no_link_and_right_links_pass_everywhere(model, graph, compiled):
    expected = model(**TOKENS, structure=make_structure())
    for run in (graph, compiled):
        outputs = run(*TOKENS.values(), LINKS)
        for x, y in zip(outputs, expected, strict=True):
            np.testing.assert_allclose(x, y, atol=1e-5)


def test_without_a_global_input_links_are_not_looked_at(model, graph):
    nothing = np.zeros([BATCH, 0], int)
    structure = make_structure(np.zeros_like(LINKS), global_len=0)
    model(TOKENS["token_ids"], nothing, structure=structure)
    graph(TOKENS["token_ids"], nothing, np.zeros_like(LINKS))


@pytest.mark.parametrize("of_model, of_structure", [(2, 0), (2, 1), (0, 2)])
def test_a_structure_of_another_distance_is_refused(of_model, of_structure):
    """0, too, which is what a structure has whose maker forgot it: all positions would be lost."""
    line = rf"must be the model's `relative_pos_max_distance`, {of_model}. Received: {of_structure}"
    with pytest.raises(ValueError, match=line):
        make_model(relative_pos_max_distance=of_model)(
            **TOKENS, structure=make_structure(distance=of_structure)
        )


def test_one_ignored_mask_serves_the_whole_batch(model):
    structure = make_structure()._replace(use_hard_g2l_mask=True)
    mask = np.array([[1, 0, 0]])
    one, whole = (
        model(**TOKENS, structure=structure._replace(ignore_hard_g2l_mask=x))
        for x in (mask, np.tile(mask, [BATCH, 1]))
    )
    for x, y in zip(one, whole, strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize(
    "changes, line",
    [
        (
            {"global_token_ids": ones(1, 3)},
            r"`global_token_ids` must have shape \[batch, global_len\]. Received shape:\] \[1 3\]",
        ),
        (
            {"links": ones(2, 5)},
            r"`structure.links\[0\]` must have shape \[batch, long_len\]. Rec.*:\] \[2 5\]",
        ),
        (
            {"links": ones(1, 6)},
            r"`structure.links\[0\]` must have shape \[batch, long_len\]. Rec.*:\] \[1 6\]",
        ),
    ],
)
def test_a_graph_that_knows_no_length_compares_them_when_it_runs(graph, changes, line):
    with pytest.raises(tf.errors.InvalidArgumentError, match=line):
        graph(*{**TOKENS, "links": LINKS, **changes}.values())


def test_masks_are_compared_when_the_graph_runs(model):
    @tf.function(input_signature=[UNKNOWN, UNKNOWN, tf.TensorSpec([None, None, None], tf.int32)])
    def run(token_ids, global_token_ids, mask):
        return model(token_ids, global_token_ids, l2g_att_mask=mask)

    run(*TOKENS.values(), ones(2, 6, 3))
    line = r"`l2g_att_mask` must have shape \[batch, long_len, global_len\]. Rec.*:\] \[2 3 6\]"
    with pytest.raises(tf.errors.InvalidArgumentError, match=line):
        run(*TOKENS.values(), ones(2, 3, 6))


POSITIONED = {"max_absolute_position_embeddings": 6}


@pytest.mark.parametrize(
    "changes, line",
    [
        (
            {"token_ids": ones(2, 7)},
            "`token_ids` must have shape [batch, long_len] with long_len at most "
            "`max_absolute_position_embeddings`, 6. Received long_len: 7",
        ),
        (
            {"global_token_ids": ones(2, 8)},
            "`global_token_ids` must have shape [batch, global_len] with global_len at most "
            "`max_absolute_position_embeddings`, 6. Received global_len: 8",
        ),
        (
            {"position_ids": np.array([[0, 1, 2, 3, 4, 6]] * 2)},
            "`position_ids` must be at least 0 and below `max_absolute_position_embeddings`, 6. "
            "Received values from 0 to 6",
        ),
        (
            {"global_position_ids": np.array([[0, -1, 2]] * 2)},
            "`global_position_ids` must be at least 0 and below "
            "`max_absolute_position_embeddings`, 6. Received values from -1 to 2",
        ),
    ],
)
def test_inputs_beyond_the_table_of_positions_are_refused(changes, line):
    with pytest.raises(ValueError) as raised:
        make_model(**POSITIONED)(**{**TOKENS, **changes})
    assert str(raised.value) == line


def test_a_graph_refuses_inputs_beyond_the_table_when_it_runs():
    model = make_model(**POSITIONED)
    run = tf.function(lambda *ids: model(*ids), input_signature=[UNKNOWN] * 2)
    run(*TOKENS.values())
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"at most .*, 6. Rec.*\] \[7\]"):
        run(ones(2, 7), TOKENS["global_token_ids"])


def test_given_positions_let_an_input_be_longer_than_the_table():
    model = make_model(**POSITIONED)
    positions = np.arange(9)[np.newaxis] % 6
    outputs = model(ones(2, 9), TOKENS["global_token_ids"], position_ids=positions)
    tiled = np.tile(positions, [2, 1])
    expected = model(ones(2, 9), TOKENS["global_token_ids"], position_ids=tiled)
    np.testing.assert_array_equal(outputs[0], expected[0])


@pytest.mark.parametrize(
    "inputs, line",
    [
        (
            [tf_keras.Input([], dtype=tf.int32), tf_keras.Input([3], dtype=tf.int32)],
            "`token_ids` must have shape [batch, long_len]. Received shape: [?]",
        ),
        (
            [tf_keras.Input([None], dtype=tf.int32, ragged=True), tf_keras.Input([3])],
            "`token_ids` must have shape [batch, long_len], padded. Received: a RaggedTensor of "
            "shape [?, ?]",
        ),
    ],
)
def test_a_functional_model_is_refused_when_it_is_made(model, inputs, line):
    with pytest.raises(ValueError) as raised:
        model(*inputs)
    assert str(raised.value) == line


def test_a_functional_model_refuses_wrong_links_and_lengths_when_it_is_called(model):
    inputs = {
        "token_ids": tf_keras.Input([None], dtype=tf.int32, name="token_ids"),
        "global_token_ids": tf_keras.Input([None], dtype=tf.int32, name="global_token_ids"),
        "links": tf_keras.Input([None], dtype=tf.int32, name="links"),
    }
    ids = {name: inputs[name] for name in TOKENS}
    structure = input_utils.make_structure_from_example_ids(
        tf.ones_like(inputs["token_ids"]),
        tf.ones_like(inputs["global_token_ids"]),
        inputs["links"],
        2,
    )
    functional = tf_keras.Model(inputs, model(**ids, structure=structure))
    features = {name: tf.constant(x, tf.int32) for name, x in {**TOKENS, "links": LINKS}.items()}
    expected = model(**TOKENS, structure=make_structure())
    np.testing.assert_allclose(functional(features)[0], expected[0], atol=1e-6)
    np.testing.assert_allclose(functional.predict(features, verbose=0)[0], expected[0], atol=1e-6)
    wrong = {**features, "links": tf.constant(with_link(3), tf.int32)}
    with pytest.raises(ValueError, match=r"`structure.links\[0\]` must hold indices"):
        functional(wrong)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"`structure.links\[0\]` must hold"):
        functional.predict(wrong, verbose=0)


def test_an_exported_graph_checks_links_too(model, graph, tmp_path):
    module = tf.Module()
    module.model_variables = model.variables
    without_gradients = tf.saved_model.SaveOptions(experimental_custom_gradients=False)
    signature = graph.get_concrete_function()
    tf.saved_model.save(module, str(tmp_path), signature, without_gradients)
    loaded = tf.saved_model.load(str(tmp_path))
    exported = loaded.signatures["serving_default"]

    def run(function, links):
        named = zip((*TOKENS, "links"), (*TOKENS.values(), links), strict=True)
        return function(**{name: tf.constant(x, tf.int32) for name, x in named})["output_0"]

    expected = graph(*TOKENS.values(), LINKS)[0]
    np.testing.assert_allclose(run(exported, LINKS), expected, atol=1e-6)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"`structure.links\[0\]` must hold"):
        run(exported, with_link(3))


@pytest.fixture
def warnings(monkeypatch):
    """What is logged as a warning."""
    logged = []
    monkeypatch.setattr(logging, "warning", lambda text, *args: logged.append(text % args))
    return logged


def test_a_bag_of_words_is_warned_of_once_and_told_what_to_pass(warnings):
    model = make_model()
    for _ in range(3):
        model(**TOKENS)
    by_default = tf.function(lambda *ids: model(*ids))
    by_default(*TOKENS.values())
    assert len(warnings) == 1
    for word in ("etc_document_bert", "bag of words", "`structure=`", "input_utils", "masks and"):
        assert word in warnings[0]


@pytest.mark.parametrize(
    "distance, given",
    [
        (2, {"structure": make_structure()}),
        (0, {"structure": make_structure(distance=0)}),
        (2, {"l2l_att_mask": ones(2, 6, 5)}),
        (2, {"l2l_relative_att_ids": ones(2, 6, 5), "l2g_relative_att_ids": ones(2, 6, 3)}),
    ],
)
def test_who_says_anything_of_the_pairs_is_not_warned(warnings, distance, given):
    make_model(relative_pos_max_distance=distance)(**TOKENS, **given)
    assert not warnings


def test_absolute_positions_are_more_than_a_bag_of_words(warnings):
    make_model(**POSITIONED)(**TOKENS)
    assert not warnings


def test_a_bag_of_words_does_not_know_the_order_of_its_words():
    """What the warning says, and the reason for it: only who is within reach counts."""
    model = make_model(local_radius=LONG_LEN)
    order = np.random.default_rng(0).permutation(LONG_LEN)
    shuffled = {**TOKENS, "token_ids": TOKENS["token_ids"][:, order]}
    outputs, moved = model(**TOKENS), model(**shuffled)
    np.testing.assert_allclose(moved[0], outputs[0].numpy()[:, order], atol=1e-5)
    np.testing.assert_allclose(moved[1], outputs[1], atol=1e-5)
    structure = make_structure(np.full_like(LINKS, -1))
    ordered = [model(**x, structure=structure)[0].numpy() for x in (TOKENS, shuffled)]
    assert not np.allclose(ordered[1], ordered[0][:, order], atol=1e-3)
