"""What of a document fits, by number of pieces."""

import math

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from etcmodel.text import truncation
from etcmodel.text.truncation import Outline, Room

# Two documents (blocks 0 and 4) with three sentences and one.
OUTLINE = Outline([0, 3, 2, 4, 0, 5], [-1, 0, 0, 0, -1, 4])


def spans(selection):
    return [tuple(span) for span in selection.spans]


def select(pieces, blocks=math.inf, give_way="end", whole_blocks=False):
    return spans(truncation.select(OUTLINE, Room(pieces, blocks, whole_blocks), give_way))


def test_what_fits_is_in():
    everything = [(0, 0, 0), (1, 0, 3), (2, 0, 2), (3, 0, 4), (4, 0, 0), (5, 0, 5)]
    for give_way in truncation.GIVE_WAY:
        assert select(14, 6, give_way) == everything


def test_the_end_gives_way_and_the_last_block_may_be_cut():
    assert select(6) == [(0, 0, 0), (1, 0, 3), (2, 0, 2), (3, 0, 1)]
    assert select(6, whole_blocks=True) == [(0, 0, 0), (1, 0, 3), (2, 0, 2)]


def test_the_start_gives_way():
    assert select(7, give_way="start") == [(0, 0, 0), (3, 2, 4), (4, 0, 0), (5, 0, 5)]
    assert select(7, give_way="start", whole_blocks=True) == [(4, 0, 0), (5, 0, 5)]


def test_the_longest_document_gives_way():
    assert select(8, give_way="longest") == [
        *[(0, 0, 0), (1, 0, 3), (2, 0, 1)],
        *[(4, 0, 0), (5, 0, 4)],
    ]
    assert select(12, give_way="longest") == [
        *[(0, 0, 0), (1, 0, 3), (2, 0, 2), (3, 0, 2)],
        *[(4, 0, 0), (5, 0, 5)],
    ]


def test_global_tokens_are_limited_and_those_that_hold_nothing_are_left_out():
    assert select(14, blocks=3) == [(0, 0, 0), (1, 0, 3), (2, 0, 2)]
    assert select(9) == [(0, 0, 0), (1, 0, 3), (2, 0, 2), (3, 0, 4)]


def windows(pieces, stride, blocks=math.inf, whole_blocks=False):
    room = Room(pieces, blocks, whole_blocks)
    return [spans(x) for x in truncation.select_windows(OUTLINE, room, stride)]


def test_windows_follow_one_another():
    assert windows(6, 0) == [
        [(0, 0, 0), (1, 0, 3), (2, 0, 2), (3, 0, 1)],
        [(0, 0, 0), (3, 1, 4), (4, 0, 0), (5, 0, 3)],
        [(4, 0, 0), (5, 3, 5)],
    ]


def test_windows_repeat_the_end_of_the_one_before():
    assert windows(8, 2)[1] == [(0, 0, 0), (3, 1, 4), (4, 0, 0), (5, 0, 5)]
    first, second = truncation.select_windows(OUTLINE, Room(8, math.inf), 2)
    assert (first.first_new, second.first_new) == ((0, 0), (3, 3))


def test_windows_of_whole_blocks_cut_only_what_fits_into_no_window():
    assert windows(5, 2, whole_blocks=True) == [
        [(0, 0, 0), (1, 0, 3), (2, 0, 2)],
        [(0, 0, 0), (3, 0, 4)],
        [(4, 0, 0), (5, 0, 5)],
    ]
    assert windows(4, 0, whole_blocks=True)[-2:] == [[(4, 0, 0), (5, 0, 4)], [(4, 0, 0), (5, 4, 5)]]


def test_a_window_without_room_for_any_block_is_refused():
    with pytest.raises(ValueError, match="room for 5 pieces and 1 global tokens of text, too few"):
        windows(5, 0, blocks=1)


@st.composite
def outlines(draw):
    counts = draw(st.lists(st.sampled_from([0, 0, 1, 2, 3, 7]), max_size=8))
    parents = [draw(st.integers(-1, index - 1)) for index in range(len(counts))]
    return Outline(counts, parents)


ROOMS = st.builds(Room, st.integers(0, 9), st.integers(0, 6), st.booleans())


def check_selection(outline, room, selection):
    kept = {span.block for span in selection.spans}
    assert len(kept) == len(selection.spans) <= room.blocks
    assert sum(span.last - span.first for span in selection.spans) <= room.pieces
    assert all(outline.parents[block] in kept | {-1} for block in kept)
    assert list(selection.spans) == sorted(selection.spans)


@settings(max_examples=300)
@given(outline=outlines(), room=ROOMS, give_way=st.sampled_from(truncation.GIVE_WAY))
def test_a_selection_fits_and_has_what_its_blocks_are_a_part_of(outline, room, give_way):
    selection = truncation.select(outline, room, give_way)
    check_selection(outline, room, selection)
    if room.whole_blocks:
        leaves = [span for span in selection.spans if span.last > span.first]
        assert all((span.first, span.last) == (0, outline.counts[span.block]) for span in leaves)


@settings(max_examples=300)
@given(outline=outlines(), room=ROOMS, stride=st.integers(0, 5))
def test_every_piece_is_new_in_exactly_one_window_and_every_block_in_some(outline, room, stride):
    try:
        found = truncation.select_windows(outline, room, stride)
    except ValueError:
        assume(False)
    new, blocks = [], set()
    for selection in found:
        check_selection(outline, room, selection)
        for block, first, last in selection.spans:
            blocks.add(block)
            new += [(block, x) for x in range(first, last) if (block, x) >= selection.first_new]
    everything = [(block, x) for block, n in enumerate(outline.counts) for x in range(n)]
    assert new == everything
    assert blocks == set(range(len(outline.counts)))
