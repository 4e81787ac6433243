"""Side inputs of the multi-paragraph tasks against their pair-by-pair twin."""

import numpy as np
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from etcmodel.models import multihop_utils
from tests.models import numpy_side_inputs as twin

FEW_EXAMPLES = settings(max_examples=25)


@st.composite
def call_arguments(draw):
    """One row of structure, without the batch axis, and all options."""
    long_len, global_len = draw(st.integers(1, 9)), draw(st.integers(1, 5))

    def row(size, low, high):
        return draw(st.lists(st.integers(low, high), min_size=size, max_size=size))

    def maybe(value):
        return value if draw(st.booleans()) else None

    return {
        "long_paragraph_breakpoints": row(long_len, 0, 1),
        "long_paragraph_ids": row(long_len, -1, global_len - 1),
        "long_sentence_ids": row(long_len, -1, global_len - 1),
        "global_paragraph_breakpoints": row(global_len, 0, 1),
        "ignore_hard_g2l_mask": maybe(row(global_len, 0, 1)),
        "ignore_hard_l2g_mask": maybe(row(long_len, 0, 1)),
        "l2g_linked_ids": maybe(row(long_len, -1, global_len - 1)),
        "local_radius": draw(st.integers(1, 4)),
        "relative_pos_max_distance": draw(st.integers(0, 3)),
        "use_hard_g2l_mask": draw(st.booleans()),
        "use_hard_l2g_mask": draw(st.booleans()),
        "flat_sequence": draw(st.booleans()),
    }


def expected_masks(arguments, long_paragraphs, global_paragraphs):
    num_long, num_global = len(long_paragraphs), len(global_paragraphs)
    is_flat = arguments["flat_sequence"]

    def l2l(a, b):
        one, other = long_paragraphs[a], long_paragraphs[b]
        return (one > 0) == (other > 0) if is_flat else one == other

    def both_real_or_both_padding(t, g):
        return (long_paragraphs[t] > 0) == (global_paragraphs[g] > 0)

    def hardened(is_hard, ignored, index_of):
        def allowed(t, g):
            is_exempt = ignored is not None and not is_flat and ignored[index_of(t, g)]
            is_open = not is_hard or is_exempt or is_linked(arguments, t, g)
            return both_real_or_both_padding(t, g) and is_open

        return twin.pairs(num_long, num_global, allowed)

    l2g = hardened(
        arguments["use_hard_l2g_mask"], arguments["ignore_hard_l2g_mask"], lambda t, g: t
    )
    g2l = hardened(
        arguments["use_hard_g2l_mask"], arguments["ignore_hard_g2l_mask"], lambda t, g: g
    ).T
    return {
        "l2l_att_mask": twin.windows(num_long, arguments["local_radius"], l2l, lambda a, b: 0),
        "g2g_att_mask": twin.pairs(
            num_global,
            num_global,
            lambda a, b: (global_paragraphs[a] > 0) == (global_paragraphs[b] > 0),
        ),
        "l2g_att_mask": l2g,
        "g2l_att_mask": g2l,
    }


def expected_labels(arguments, long_paragraphs, global_paragraphs):
    num_long, num_global = len(long_paragraphs), len(global_paragraphs)
    distance = arguments["relative_pos_max_distance"]
    mentions = arguments["l2g_linked_ids"]

    def position(a, b):
        return twin.position_label(a, b, distance)

    def g2g(a, b):
        is_other = global_paragraphs[a] != global_paragraphs[b]
        return 2 * distance + 3 if is_other and not arguments["flat_sequence"] else position(a, b)

    def l2g(t, g):
        is_mention = mentions is not None and mentions[t] == g and not arguments["flat_sequence"]
        return 2 * distance + (2 if is_mention or is_linked(arguments, t, g) else 1)

    l2g_labels = twin.pairs(num_long, num_global, l2g)
    return {
        "l2l_relative_att_ids": twin.windows(
            num_long, arguments["local_radius"], position, position
        ),
        "g2g_relative_att_ids": twin.pairs(num_global, num_global, g2g),
        "l2g_relative_att_ids": l2g_labels,
        "g2l_relative_att_ids": l2g_labels.T,
    }


def is_linked(arguments, t, g):
    """Whether the global token stands for the long token's sentence or paragraph."""
    in_paragraph = arguments["long_paragraph_ids"][t] == g and not arguments["flat_sequence"]
    return arguments["long_sentence_ids"][t] == g or in_paragraph


def in_batch(arguments):
    return {
        name: [value] if isinstance(value, list) else value for name, value in arguments.items()
    }


@FEW_EXAMPLES
@given(call_arguments())
def test_side_inputs_equal_the_twin(arguments):
    paragraphs = [
        twin.examples_of(arguments[f"{which}_paragraph_breakpoints"])
        for which in ("long", "global")
    ]
    expected = expected_masks(arguments, *paragraphs)
    labels = expected_labels(arguments, *paragraphs)
    if arguments["relative_pos_max_distance"] == 0:
        labels = dict.fromkeys(labels)
    made = multihop_utils.make_global_local_transformer_side_inputs(**in_batch(arguments))
    assert list(made.to_dict()) == [*expected, *labels]
    for name, value in {**expected, **labels}.items():
        actual = getattr(made, name)
        if value is None:
            assert actual is None, name
        else:
            assert actual.dtype == tf.int32, name
            np.testing.assert_array_equal(actual, value[np.newaxis], err_msg=name)


def test_a_flat_sequence_follows_its_sentences_alone():
    arguments = {
        "long_paragraph_breakpoints": [[0, 1, 0, 1]],
        "long_paragraph_ids": [[0, 0, 2, 2]],
        "long_sentence_ids": [[1, 1, 3, 3]],
        "global_paragraph_breakpoints": [[0, 1, 0, 1]],
        "local_radius": 2,
        "relative_pos_max_distance": 1,
        "use_hard_g2l_mask": True,
        "use_hard_l2g_mask": True,
        "flat_sequence": True,
    }
    make = multihop_utils.make_global_local_transformer_side_inputs
    alone = make(**arguments).to_dict()
    np.testing.assert_array_equal(alone["l2g_att_mask"][0, 0], [0, 1, 0, 0])
    with_others = make(
        **arguments,
        ignore_hard_g2l_mask=[[1, 0, 0, 0]],
        ignore_hard_l2g_mask=[[0, 1, 0, 0]],
        l2g_linked_ids=[[-1, 2, -1, -1]],
    ).to_dict()
    for name, value in alone.items():
        np.testing.assert_array_equal(with_others[name], value, err_msg=name)


def test_features_do_not_share_their_lists():
    first, second = multihop_utils.InputFeatures(), multihop_utils.InputFeatures()
    first.long_token_ids.append(1)
    assert second.long_token_ids == []


def test_special_ids_are_those_of_the_release():
    config = multihop_utils.InputConfig(global_seq_length=3, long_seq_length=None)
    token_ids = (
        config.sentence_global_token_id,
        config.cpc_mask_global_token_id,
        config.question_global_token_id,
        config.candidate_global_token_id,
        config.paragraph_global_token_id,
    )
    type_ids = (
        config.global_token_type_id,
        config.sentence_token_type_id,
        config.title_token_type_id,
        config.question_token_type_id,
        config.candidate_token_type_id,
    )
    assert token_ids == (1, 2, 3, 4, 5) and type_ids == (0, 1, 2, 3, 4)
