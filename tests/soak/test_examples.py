"""The plugin that gives property tests more examples: they are tried, and find what is rare."""

import hypothesis
import pytest
from hypothesis import strategies as st

from tests.soak import examples

NUMBERS = st.integers(0, 9999)


def rare(limit):
    """A property that no number from `limit` on has."""

    @hypothesis.settings(max_examples=5, derandomize=True, database=None)
    @hypothesis.given(NUMBERS)
    def test(number):
        assert number % 100 < limit

    return test


def test_what_few_examples_do_not_find_many_do():
    test = rare(97)
    test()
    examples.scale(test, 500, seed=1)
    with pytest.raises(AssertionError):
        test()


def test_as_many_are_tried_as_are_asked_for():
    test = rare(100)
    examples.scale(test, 20, seed=1)
    examples.scale(test, 70, seed=1)
    test()
    assert examples.tried(test) == 70


def test_another_seed_gives_other_examples():
    def drawn(seed):
        numbers = []

        @hypothesis.given(NUMBERS)
        def test(number):
            numbers.append(number)

        examples.scale(test, 20, seed)
        test()
        return numbers

    assert drawn(1) == drawn(1) != drawn(2)
