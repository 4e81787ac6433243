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
            "long_answer": {
                "start_token": 11,
                "end_token": 31,
                "start_byte": -1,
                "end_byte": -1,
            },
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

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"span_selection_method": "best"}, "`span_selection_method` must be one of"),
            ({"max_short_answer_len": 0}, "`max_short_answer_len` must be at least 1"),
        ],
    )
    def test_options_out_of_range_are_named(self, options, message):
        with pytest.raises(ValueError, match=message):
            config.DecodingConfig(**options)


class TestSpanSelection:
    positions = {
        **ANSWER,
        "sa_start": {20: 5.0, 14: 4.0},
        "sa_end": {15: 6.0, 22: 1.0, 36: 3.0},
    }

    def test_joint_takes_the_best_start_and_its_best_end(self):
        assert short_words(decoded(window(**self.positions))) == [(20, 37)]

    def test_joint_keeps_short_answers_short(self):
        prediction = decoded(window(**self.positions), max_short_answer_len=3)
        assert short_words(prediction) == [(20, 23)]

    def test_where_the_best_start_has_no_end_the_best_pair_is_taken(self):
        positions = {**self.positions, "sa_end": {15: 6.0}}
        assert short_words(decoded(window(**positions))) == [(14, 16)]
        released = decoded(window(**positions, null=1.0), release_compatible=True)
        assert short_words(released) == [(15, 21)]

    def test_joint_exhaustive_takes_the_best_pair_within_the_long_answer(self):
        method = {"span_selection_method": "joint-exhaustive"}
        assert short_words(decoded(window(**self.positions), **method)) == [(14, 16)]
        positions = {**self.positions, "la_start": {19: 9.0}}
        assert short_words(decoded(window(**positions), **method)) == [(20, 23)]
        positions["la_start"] = {26: 9.0}
        assert short_words(decoded(window(**positions), **method)) == []

    def test_disjoint_takes_the_best_of_each_if_they_make_a_span(self):
        method = {"span_selection_method": "disjoint"}
        assert short_words(decoded(window(**self.positions), **method)) == [(14, 16)]
        positions = {**self.positions, "sa_end": {22: 6.0, 15: 1.0}}
        assert short_words(decoded(window(**positions), **method)) == [(20, 23)]

    @given(st.data(), st.integers(1, 12))
    @settings(derandomize=True, deadline=None, max_examples=60)
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


class TestRelease:
    @pytest.mark.parametrize(("logit", "words"), [(0.0, (14, 16)), (-0.5, (20, 31))])
    def test_joint_exhaustive_leaves_out_negative_scores(self, logit, words):
        """The logits' quotient is the score; without a pair the best start and end are taken."""
        positions = {
            "la_start": {11: 3.0},
            "la_end": {22: 3.0},
            "sa_start": {14: logit, 20: 8.0},
            "sa_end": {15: 2.0, 30: 9.0},
        }
        method = {"span_selection_method": "joint-exhaustive", "max_short_answer_len": 3}
        prediction = decoded(window(null=1.0, **positions), release_compatible=True, **method)
        assert short_words(prediction) == [words]


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
