"""Batches of texts that are about as long."""

from hypothesis import given
from hypothesis import strategies as st

from etcmodel.text import alike

SIZES = st.lists(st.integers(0, 100_000), max_size=40)


@given(SIZES, st.integers(1, 8))
def test_each_text_is_in_one_batch_with_none_that_is_much_longer(sizes, most):
    parts = alike.parts(sizes, most)
    assert sorted(index for part in parts for index in part) == [*range(len(sizes))]
    for part in parts:
        texts = [sizes[index] for index in part]
        assert 1 <= len(texts) <= most and texts == sorted(texts, reverse=True)
        assert texts[0] <= 2 * texts[-1] + 500


@given(SIZES, st.integers(1, 8))
def test_a_batch_ends_only_where_it_is_full_or_the_next_text_is_much_shorter(sizes, most):
    parts = alike.parts(sizes, most)
    for part, (after, *_) in zip(parts, parts[1:], strict=False):
        assert len(part) == most or sizes[part[0]] > 2 * sizes[after] + 500


def test_texts_of_one_length_are_parted_as_they_come():
    assert alike.parts([7] * 5, most=2) == [[0, 1], [2, 3], [4]]
    assert alike.parts([], most=2) == []
