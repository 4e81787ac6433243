"""What the encoder refuses at its door, in one line that names the argument."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from etcmodel.models import input_utils, modeling
from tests.models import etcs

CONFIG = etcs.config(segment_vocab_size=4, initializer_range=0.3)
BATCH, LONG_LEN, GLOBAL_LEN = 2, 6, 3
TOKENS = {
    "token_ids": np.arange(BATCH * LONG_LEN).reshape([BATCH, LONG_LEN]) % 11,
    "global_token_ids": np.arange(BATCH * GLOBAL_LEN).reshape([BATCH, GLOBAL_LEN]),
}
LINKS = np.array([[0, 0, 1, 1, 2, 2], [-1, 0, 1, 2, 2, -1]])


@pytest.fixture(scope="module")
def model():
    return make_model()


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


BAD_LINKS = [(3, (0, 0)), (-2, (1, 2)), (10**6, (1, 2))]


def with_link(link):
    """`LINKS`, where one token, or all, have another."""
    links = LINKS.copy()
    links[1, 2] = link
    return np.full_like(links, link) if link == 3 else links


@pytest.mark.parametrize("link, place", BAD_LINKS)
@pytest.mark.parametrize("field", ["links", "label_links"])
def test_links_to_global_tokens_that_do_not_exist_are_refused(model, field, link, place):
    wrong = tf.constant(with_link(link), tf.int32)
    structure = make_structure()
    position = len(getattr(structure, field))
    structure = structure._replace(**{field: (*getattr(structure, field), wrong)})
    with pytest.raises(ValueError) as raised:
        model(**TOKENS, structure=structure)
    assert str(raised.value) == (
        f"`structure.{field}[{position}]` must hold indices of global tokens, or -1 for no link. "
        f"Received: {link} in example {place[0]} at token {place[1]} for 3 global tokens"
    )


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


@pytest.mark.parametrize("of_model, of_structure", [(2, 0), (2, 1), (0, 2)])
def test_a_structure_of_another_distance_is_refused(of_model, of_structure):
    """0, too, which is what a structure has whose maker forgot it: all positions would be lost."""
    line = rf"must be the model's `relative_pos_max_distance`, {of_model}. Received: {of_structure}"
    with pytest.raises(ValueError, match=line):
        make_model(relative_pos_max_distance=of_model)(
            **TOKENS, structure=make_structure(distance=of_structure)
        )


@pytest.mark.parametrize("name", ["use_hard_g2l_mask", "use_hard_l2g_mask"])
def test_a_structure_without_the_hard_masks_of_the_config_is_refused(name):
    """Which is what `make_structure` makes if it is not told of them."""
    line = (
        f"`structure.{name}` must be the `{name}` of the model's config, True: make the structure "
        f"with {name}=True, or the model with {name}=False. Received: False"
    )
    model = make_model(**{name: True})
    with pytest.raises(ValueError) as raised:
        model(**TOKENS, structure=make_structure())
    assert str(raised.value) == line
    model(**TOKENS, structure=make_structure()._replace(**{name: True}))


def test_one_ignored_mask_serves_the_whole_batch(model):
    structure = make_structure()._replace(use_hard_g2l_mask=True)
    mask = np.array([[1, 0, 0]])
    one, whole = (
        model(**TOKENS, structure=structure._replace(ignore_hard_g2l_mask=x))
        for x in (mask, np.tile(mask, [BATCH, 1]))
    )
    for x, y in zip(one, whole, strict=True):
        np.testing.assert_array_equal(x, y)


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
            "Received values from 0 to 6, 6 in row 0 of the batch",
        ),
        (
            {"global_position_ids": np.array([[0, -1, 2]] * 2)},
            "`global_position_ids` must be at least 0 and below "
            "`max_absolute_position_embeddings`, 6. Received values from -1 to 2, -1 in row 0 of "
            "the batch",
        ),
    ],
)
def test_inputs_beyond_the_table_of_positions_are_refused(changes, line):
    with pytest.raises(ValueError) as raised:
        make_model(**POSITIONED)(**{**TOKENS, **changes})
    assert str(raised.value) == line


def test_given_positions_let_an_input_be_longer_than_the_table():
    model = make_model(**POSITIONED)
    positions = np.arange(9)[np.newaxis] % 6
    outputs = model(ones(2, 9), TOKENS["global_token_ids"], position_ids=positions)
    tiled = np.tile(positions, [2, 1])
    expected = model(ones(2, 9), TOKENS["global_token_ids"], position_ids=tiled)
    np.testing.assert_array_equal(outputs[0], expected[0])
