"""The numbering of relative labels."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etcmodel import feature_utils
from etcmodel.models import presets
from etcmodel.ops.relation_labels import RelationLabels
from tests.models.numpy_side_inputs import position_label


def test_positions_come_first_then_what_every_structure_has_then_names():
    labels = RelationLabels(2, 12, ("cites", "is a"))
    assert [labels.name_of(label) for label in range(12)] == [
        "position +0",
        "position +1",
        "position +2",
        "position -1",
        "position -2",
        "cross",
        "linked",
        "other_segment",
        "cites",
        "is a",
        None,
        None,
    ]
    assert (labels.cross, labels.linked, labels.other_segment) == (5, 6, 7)
    assert (labels["linked"], labels["cites"], labels["is a"]) == (6, 8, 9)
    assert (labels.num_positions, labels.num_reserved) == (5, 8)


@given(st.integers(0, 30))
def test_positions_have_the_labels_of_the_twin(max_distance):
    labels = RelationLabels(max_distance)
    assert [position_label(0, offset, max_distance) for offset in labels.offsets] == list(
        range(labels.num_positions)
    )
    generator = feature_utils.RelativePositionGenerator(max_distance)
    assert generator.relative_vocab_size == labels.num_positions


def test_without_positions_one_label_is_left_for_them():
    labels = RelationLabels(0, 5, ("cites",))
    assert (labels.offsets, labels.cross, labels["cites"]) == ((0,), 1, 4)


def test_a_config_names_the_free_labels_of_its_tables():
    labels = presets.PRESETS["etc_base"].relation_labels("cites")
    assert labels == RelationLabels(12, 32, ("cites",)) and labels["cites"] == 28


@pytest.mark.parametrize(
    "arguments, line",
    [
        ((-1,), "`max_distance` must not be negative. Received: -1"),
        ((2, 12, ("a", "b", "a")), r"Each label has a name of its own. Received twice: \['a'\]"),
        ((2, 12, ("cross",)), r"Received twice: \['cross'\]"),
        (
            (2, 9, ("a", "b")),
            r"A table of 9 labels \(`relative_vocab_size`\), of which 8 have a meaning, leaves 1 "
            r"free. Received 2 names: \['a', 'b'\]",
        ),
    ],
)
def test_numberings_that_cannot_be_are_refused(arguments, line):
    with pytest.raises(ValueError, match=line):
        RelationLabels(*arguments)


def test_an_unknown_name_is_told_the_known_ones():
    line = r"There is no label 'cite'. There are: \['cross', 'linked', 'other_segment', 'cites'\]"
    with pytest.raises(ValueError, match=line):
        _ = RelationLabels(2, 12, ("cites",))["cite"]
