"""Which of equal scores, and what in place of a missing end: here and in the release."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etcmodel.tasks.nq import config, metrics
from tests.tasks.nq.outputs import ANSWER, decoded, short_words, window, words


class TestEqualScores:
    tied = {
        f"{name}_{end}": dict.fromkeys(words, score)
        for name in ("la", "sa")
        for end, words, score in (("start", (10, 12), 2.0), ("end", (11, 13), 1.0))
    }

    @pytest.mark.parametrize("order", [1, -1])
    @pytest.mark.parametrize("method", ["joint", "disjoint"])
    def test_in_the_release_the_one_furthest_down_the_page_is_taken(self, method, order):
        positions = {name: dict([*by_word.items()][::order]) for name, by_word in self.tied.items()}
        options = {"span_selection_method": method}
        released = decoded(window(**positions, null=1.0), **options, release_compatible=True)
        assert words(released["long_answer"]) == (12, 14)
        assert short_words(released) == [(12, 14)]
        assert (released["long_answer_score"], released["short_answers_score"]) == (3.0, 3.0)

    def test_in_the_release_the_first_end_for_a_start_is_taken(self):
        positions = {"sa_start": {20: 2.0}, "sa_end": {24: 1.0, 29: 1.0, 22: 1.0}}
        released = decoded(window(**positions, null=1.0), release_compatible=True)
        assert short_words(released) == [(20, 25)]

    def test_in_the_release_the_first_of_the_pairs_is_taken(self):
        positions = {
            **ANSWER,
            "sa_start": {20: 2.0, 22: 2.0},
            "sa_end": {24: 1.0, 29: 1.0, 22: 1.0},
        }
        options = {"span_selection_method": "joint-exhaustive", "release_compatible": True}
        assert short_words(decoded(window(**positions, null=1.0), **options)) == [(20, 25)]

    def test_in_the_release_ends_that_change_places_are_the_furthest(self):
        positions = {"sa_start": {25: 2.0, 30: 2.0}, "sa_end": {11: 1.0, 13: 1.0}}
        for method in ("joint", "disjoint"):
            options = {"span_selection_method": method, "release_compatible": True}
            assert short_words(decoded(window(**positions, null=1.0), **options)) == [(13, 31)]

    def test_windows_do_not_matter(self):
        outputs = [window(sa_start={20: 2.0}, null=1.0), window(sa_start={14: 2.0}, null=1.0)]
        outputs.append(window(sa_end={33: 1.0}, null=1.0))
        for windows in itertools.permutations(outputs):
            assert short_words(decoded(*windows, release_compatible=True)) == [(20, 34)]


class TestMissingEnds:
    @pytest.mark.parametrize(
        ("positions", "expected", "score"),
        [
            ({}, (0, 1), 0.0),
            ({"start": {14: 2.0, 12: 1.0}}, (0, 1), 0.0),
            ({"end": {14: 1.0, 12: 2.0}}, (0, 13), 2.0),
        ],
    )
    def test_in_the_release_joint_takes_the_first_word_of_the_page(
        self, positions, expected, score
    ):
        named = {f"{name}_{end}": p for name in ("sa", "la") for end, p in positions.items()}
        released = decoded(window(**named, null=1.0), release_compatible=True)
        assert words(released["long_answer"]) == expected
        assert short_words(released) == [expected]
        assert (released["long_answer_score"], released["short_answers_score"]) == (score, score)
        assert decoded(window(**named))["short_answers"] == []
        assert words(decoded(window(**named))["long_answer"]) == (-1, -1)

    def test_in_the_release_a_short_end_too_far_from_the_first_word_is_taken_all_the_same(self):
        outputs = window(sa_end={14: 1.0, 12: 2.0}, null=1.0)
        released = decoded(outputs, release_compatible=True, max_short_answer_len=5)
        assert short_words(released) == [(0, 13)]

    @pytest.mark.parametrize("method", ["disjoint", "joint-exhaustive"])
    def test_the_other_methods_give_no_answer(self, method):
        options = {"span_selection_method": method, "release_compatible": True}
        released = decoded(window(sa_start={14: 1.0}, null=1.0), **options)
        assert (words(released["long_answer"]), short_words(released)) == ((-1, -1), [])


def released_span(starts, ends, method, max_len, within=None):
    """(score, first word, last word) of the release, or None; scores by word, in their order."""
    starts, ends = list(starts.items()), list(ends.items())
    if method == "joint":
        if not ends:
            return 0.0, 0, 0
        starts = starts or [(0, 0.0)]
    if not (starts and ends):
        return None

    def is_span(start, end):
        return start <= end and (max_len is None or end - start < max_len)

    def furthest_best(positions):
        return max(positions, key=lambda position: (position[1], position[0]))

    pairs = list(itertools.product(starts, ends))
    if method == "joint":
        pairs = [(furthest_best(starts), end) for end in ends]
    if method == "disjoint":
        pairs = [(furthest_best(starts), furthest_best(ends))]
    if method == "joint-exhaustive":
        pairs = [(s, e) for s, e in pairs if s[1] >= 0 and e[1] >= 0]
        if within is not None:
            inside = range(within[1], within[2] + 1)
            pairs = [(s, e) for s, e in pairs if s[0] in inside and e[0] in inside]
    best = None
    for start, end in pairs:
        if is_span(start[0], end[0]) and (best is None or start[1] + end[1] > best[0]):
            best = start[1] + end[1], start[0], end[0]
    if best is None:
        start, end = furthest_best(starts), furthest_best(ends)
        best = start[1] + end[1], *sorted((start[0], end[0]))
    return best


@given(st.data(), st.sampled_from(config.SPAN_SELECTION_METHODS), st.integers(1, 8))
@settings(derandomize=True, deadline=None, max_examples=300)
def test_the_release_selects_as_a_slow_search_does(data, method, max_len):
    few_scores = st.dictionaries(
        st.integers(10, 22), st.sampled_from([-1.0, 0.0, 1.0, 1.0, 2.0]), max_size=5
    )
    positions = {name: data.draw(few_scores) for name in metrics.POSITIONS}
    options = {"span_selection_method": method, "max_short_answer_len": max_len}
    released = decoded(
        window(**positions, null=1.0),
        **options,
        consider_answer_type=False,
        release_compatible=True,
    )
    long = released_span(positions["la_start"], positions["la_end"], method, None)
    within = long or (0.0, -1, -1)
    short = released_span(positions["sa_start"], positions["sa_end"], method, max_len, within)
    for name, score, answer, expected in (
        ("long", released["long_answer_score"], [words(released["long_answer"])], long),
        ("short", released["short_answers_score"], short_words(released), short),
    ):
        if expected is None:
            assert (score, answer) == (0.0, [(-1, -1)] if name == "long" else [])
        else:
            assert (score, answer) == (expected[0], [(expected[1], expected[2] + 1)])
