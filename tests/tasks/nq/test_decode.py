"""From outputs for windows to answers, and what the release did differently."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etcmodel.tasks.nq import config, metrics
from tests.tasks.nq.outputs import ANSWER, decoded, short_words, window, words


class TestFormat:
    def test_spans_end_before_the_next_word_and_scores_are_sums(self):
        assert decoded(window(**ANSWER)) == {
            "example_id": 1,
            "long_answer": {"start_token": 11, "end_token": 31, "start_byte": -1, "end_byte": -1},
            "long_answer_score": 6.0,
            "short_answers": [
                {"start_token": 14, "end_token": 16, "start_byte": -1, "end_byte": -1}
            ],
            "short_answers_score": 4.0,
            "yes_no_answer": "NONE",
        }

    def test_windows_are_joined_by_page_wherever_they_come(self):
        outputs = [window(7, **ANSWER), window(8, **ANSWER), window(7, sa_start={12: 5.0})]
        predictions = metrics.generate_predictions(outputs, config.DecodingConfig())["predictions"]
        assert [prediction["example_id"] for prediction in predictions] == [7, 8]
        assert [short_words(prediction) for prediction in predictions] == [[(12, 16)], [(14, 16)]]

    def test_a_page_where_no_span_is_possible_has_no_answer(self):
        prediction = decoded(window(sa_start={14: 1.0}, la_start={20: 1.0}, la_end={19: 1.0}))
        assert words(prediction["long_answer"]) == (-1, -1)
        assert prediction["short_answers"] == []


P = {**ANSWER, "sa_start": {20: 5.0, 14: 4.0}, "sa_end": {15: 6.0, 22: 1.0, 36: 3.0}}
EXHAUSTIVE = {"span_selection_method": "joint-exhaustive"}
DISJOINT = {"span_selection_method": "disjoint"}
# Logits by word, options of decoding, and the words of the short answers.
SELECTED = {
    "joint: the best start and its best end": (P, {}, [(20, 37)]),
    "joint: a short answer": (P, {"max_short_answer_len": 3}, [(20, 23)]),
    "joint: where the best start has no end, the best pair": (
        {**P, "sa_end": {15: 6.0}},
        {},
        [(14, 16)],
    ),
    "exhaustive: the best pair": (P, EXHAUSTIVE, [(14, 16)]),
    "exhaustive: within the long answer": ({**P, "la_start": {19: 9.0}}, EXHAUSTIVE, [(20, 23)]),
    "exhaustive: none within": ({**P, "la_start": {26: 9.0}}, EXHAUSTIVE, []),
    "disjoint: the best of each": (P, DISJOINT, [(14, 16)]),
    "disjoint: if they make a span": ({**P, "sa_end": {22: 6.0, 15: 1.0}}, DISJOINT, [(20, 23)]),
}
OF_QUOTIENTS = {
    "la_start": {11: 3.0},
    "la_end": {22: 3.0},
    "sa_start": {14: 0.0, 20: 8.0},
    "sa_end": {15: 2.0, 30: 9.0},
}
SHORT = {**EXHAUSTIVE, "max_short_answer_len": 3}
EQUAL_ENDS = {24: 1.0, 29: 1.0, 22: 1.0}
TURNED = {"sa_start": {25: 2.0, 30: 2.0}, "sa_end": {11: 1.0, 13: 1.0}}
# Likewise in the release, whose null logit is 1.
RELEASED = {
    "the best ends change places": ({**P, "sa_end": {15: 6.0}}, {}, [(15, 21)]),
    # The logits' quotient is the score; without a pair the best start and end are taken.
    "a score of 0": (OF_QUOTIENTS, SHORT, [(14, 16)]),
    "a negative score is left out": (
        {**OF_QUOTIENTS, "sa_start": {14: -0.5, 20: 8.0}},
        SHORT,
        [(20, 31)],
    ),
    "the first end for a start": ({"sa_start": {20: 2.0}, "sa_end": EQUAL_ENDS}, {}, [(20, 25)]),
    "the first of the pairs": (
        {**ANSWER, "sa_start": {20: 2.0, 22: 2.0}, "sa_end": EQUAL_ENDS},
        EXHAUSTIVE,
        [(20, 25)],
    ),
    "joint: ends that change places are the furthest": (TURNED, {}, [(13, 31)]),
    "disjoint: ends that change places are the furthest": (TURNED, DISJOINT, [(13, 31)]),
    "a short end too far from the first word, all the same": (
        {"sa_end": {14: 1.0, 12: 2.0}},
        {"max_short_answer_len": 5},
        [(0, 13)],
    ),
}


class TestSpanSelection:
    @pytest.mark.parametrize("name", SELECTED)
    def test_of_all_spans_one_is_selected(self, name):
        positions, options, answers = SELECTED[name]
        assert short_words(decoded(window(**positions), **options)) == answers

    @pytest.mark.parametrize("name", RELEASED)
    def test_in_the_release_another_is(self, name):
        positions, options, answers = RELEASED[name]
        released = decoded(window(**positions, null=1.0), **options, release_compatible=True)
        assert short_words(released) == answers

    @given(st.data(), st.integers(1, 12))
    @settings(max_examples=60)
    def test_joint_exhaustive_equals_a_slow_search(self, data, max_len):
        logits = st.dictionaries(st.integers(12, 29), st.integers(-9, 9), min_size=1, max_size=6)
        starts, ends = data.draw(logits), data.draw(logits)
        positions = {**ANSWER, "sa_start": starts, "sa_end": ends}
        prediction = decoded(
            window(**positions),
            span_selection_method="joint-exhaustive",
            max_short_answer_len=max_len,
        )
        scores = [
            starts[start] + ends[end]
            for start, end in itertools.product(starts, ends)
            if 0 <= end - start < max_len
        ]
        assert bool(prediction["short_answers"]) == bool(scores)
        if scores:
            assert prediction["short_answers_score"] == max(scores)


class TestScores:
    def test_are_relative_to_the_windows_own_null_logit(self):
        sure = window(**ANSWER, null=-5.0)
        unsure = window(null=4.0, sa_start={20: 4.5}, sa_end={21: 4.5})
        prediction = decoded(sure, unsure)
        assert (short_words(prediction), prediction["short_answers_score"]) == ([(14, 16)], 14.0)

    def test_the_release_divides_which_a_negative_null_logit_turns_upside_down(self):
        outputs = window(null=-2.0, **{**ANSWER, "sa_start": {14: 2.0, 20: -4.0}})
        assert decoded(outputs)["short_answers"][0]["start_token"] == 14
        released = decoded(outputs, release_compatible=True)
        assert released["short_answers"][0]["start_token"] == 15  # Ends change places, too.


class TestAnswerType:
    def test_is_the_one_of_the_window_in_which_the_long_answer_starts(self):
        outputs = [window(**ANSWER, answer_type="yes"), window(answer_type="none")]
        prediction = decoded(*outputs)
        assert (prediction["yes_no_answer"], prediction["short_answers"]) == ("yes", [])
        assert prediction["short_answers_score"] == prediction["long_answer_score"]
        assert decoded(*reversed(outputs))["yes_no_answer"] == "yes"
        released = [window(**ANSWER, answer_type="yes", null=1.0), window(answer_type="none")]
        assert decoded(*released, release_compatible=True)["yes_no_answer"] == "NONE"

    def test_no(self):
        assert decoded(window(**ANSWER, answer_type="no"))["yes_no_answer"] == "no"

    def test_long_means_no_short_answer(self):
        outputs = window(**ANSWER, answer_type="long", null=1.0)
        assert decoded(outputs)["short_answers"] == []
        released = decoded(outputs, release_compatible=True)
        assert released["short_answers"] and released["short_answer"] == []

    def test_may_be_ignored(self):
        prediction = decoded(window(**ANSWER, answer_type="yes"), consider_answer_type=False)
        assert (prediction["yes_no_answer"], short_words(prediction)) == ("NONE", [(14, 16)])


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
@settings(max_examples=300)
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
