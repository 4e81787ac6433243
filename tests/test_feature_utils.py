"""Masks and relative labels against pair-by-pair twins."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from etcmodel import feature_utils

FEW_EXAMPLES = settings(max_examples=25)
segment_rows = st.integers(1, 12).flatmap(
    lambda size: st.lists(
        st.lists(st.integers(0, 3), min_size=size, max_size=size), min_size=1, max_size=2
    )
)
breakpoint_rows = segment_rows.map(lambda rows: [[int(i == 1) for i in row] for row in rows])


def label(distance, max_distance, ignore_direction=False):
    """The label of a token `distance` places to the right."""
    clipped = min(abs(distance), max_distance)
    return clipped + max_distance if distance < 0 and not ignore_direction else clipped


def segments_of(breakpoints, use_starting_breakpoints):
    """The number of each token's segment, walking along the row."""
    segments, current = [], 0
    for is_breakpoint in breakpoints:
        current += use_starting_breakpoints and is_breakpoint
        segments.append(current)
        current += not use_starting_breakpoints and is_breakpoint
    return segments


def full_mask(segments):
    return [[[int(a == b) for b in row] for a in row] for row in segments]


def local_mask(segments, local_radius):
    """Window by window; places beyond the ends are 0."""
    return [
        [
            [
                int(0 <= key < len(row) and row[key] == row[query])
                for key in range(query - local_radius, query + local_radius + 1)
            ]
            for query in range(len(row))
        ]
        for row in segments
    ]


@FEW_EXAMPLES
@given(st.integers(1, 9), st.integers(0, 5), st.booleans(), st.integers(1, 3))
def test_labels_are_clipped_distances(seq_len, max_distance, ignore_direction, batch_size):
    generator = feature_utils.RelativePositionGenerator(max_distance, ignore_direction)
    ids = generator.make_relative_att_ids(seq_len, batch_size)
    row = [
        [label(key - query, max_distance, ignore_direction) for key in range(seq_len)]
        for query in range(seq_len)
    ]
    np.testing.assert_array_equal(ids, [row] * batch_size)
    assert np.max(ids) < generator.relative_vocab_size and ids.dtype == tf.int32


@FEW_EXAMPLES
@given(st.integers(1, 9), st.integers(1, 5), st.integers(0, 5), st.booleans())
def test_local_labels_are_the_same_in_every_window(seq_len, radius, max_distance, ignored):
    generator = feature_utils.RelativePositionGenerator(max_distance, ignored)
    ids = generator.make_local_relative_att_ids(seq_len, radius, batch_size=2)
    window = [label(distance, max_distance, ignored) for distance in range(-radius, radius + 1)]
    np.testing.assert_array_equal(ids, [[window] * seq_len] * 2)


@pytest.mark.parametrize("ignore_direction, left, size", [(False, 6, 7), (True, 3, 4)])
def test_the_generator_tells_its_label_range(ignore_direction, left, size):
    generator = feature_utils.RelativePositionGenerator(3, ignore_direction)
    assert generator.right_pad_value == 3
    assert generator.left_pad_value == left
    assert generator.relative_vocab_size == size


def test_sizes_below_1_are_refused():
    with pytest.raises(ValueError, match="`max_distance` must not be negative.*max_distance=-1"):
        feature_utils.RelativePositionGenerator(-1)
    generator = feature_utils.RelativePositionGenerator(2)
    with pytest.raises(ValueError, match="`seq_len` must be at least 1. Received: seq_len=0"):
        generator.make_relative_att_ids(0)
    with pytest.raises(ValueError, match="`batch_size` must be at least 1"):
        generator.make_relative_att_ids(2, batch_size=0)
    with pytest.raises(ValueError, match="`local_radius` must be at least 1"):
        generator.make_local_relative_att_ids(2, local_radius=0)
    with pytest.raises(ValueError, match="`local_radius` must be at least 1"):
        feature_utils.make_local_segmented_att_mask([[1]], 0)


@FEW_EXAMPLES
@given(segment_rows, st.integers(1, 5))
def test_segmented_masks_allow_pairs_of_one_segment(segments, local_radius):
    mask = feature_utils.make_segmented_att_mask(segments)
    np.testing.assert_array_equal(mask, full_mask(segments))
    local = feature_utils.make_local_segmented_att_mask(segments, local_radius)
    np.testing.assert_array_equal(local, local_mask(segments, local_radius))
    assert mask.dtype == local.dtype == tf.int32


@FEW_EXAMPLES
@given(breakpoint_rows, st.integers(1, 5), st.booleans())
def test_breakpoints_part_segments(breakpoints, local_radius, use_starting):
    segments = [segments_of(row, use_starting) for row in breakpoints]
    mask = feature_utils.make_att_mask_from_breakpoints(breakpoints, use_starting)
    np.testing.assert_array_equal(mask, full_mask(segments))
    local = feature_utils.make_local_att_mask_from_breakpoints(
        breakpoints, local_radius, use_starting
    )
    np.testing.assert_array_equal(local, local_mask(segments, local_radius))


def test_padding_sees_padding_and_real_tokens_see_real_tokens():
    mask = feature_utils.make_att_mask_from_input_mask([[1, 1, 0]])
    np.testing.assert_array_equal(mask, [[[1, 1, 0], [1, 1, 0], [0, 0, 1]]])


@FEW_EXAMPLES
@given(segment_rows, st.integers(0, 9))
def test_labels_outside_segments_are_overwritten(segments, value):
    length = len(segments[0])
    ids = np.arange(length * length).reshape(1, length, length)
    actual = feature_utils.overwrite_relative_att_ids_outside_segments(ids, segments, value)
    expected = np.where(np.array(full_mask(segments)) == 1, ids, value)
    np.testing.assert_array_equal(actual, expected)


def test_segment_ids_need_a_batch():
    for function in (
        feature_utils.make_segmented_att_mask,
        lambda ids: feature_utils.make_local_segmented_att_mask(ids, 1),
    ):
        with pytest.raises(ValueError, match=r"`segment_ids` must have rank 2. Received shape"):
            function([1, 1, 2])


def test_labels_and_segments_of_other_ranks_are_refused():
    overwrite = feature_utils.overwrite_relative_att_ids_outside_segments
    ids, segments = np.zeros([1, 3, 3], np.int32), np.zeros([1, 3], np.int32)
    with pytest.raises(ValueError, match="`segment_ids` must have rank 2"):
        overwrite(ids, segments[0], 5)
    with pytest.raises(ValueError, match="`rel_att_ids` must have rank 3"):
        overwrite(ids[0], segments, 5)
