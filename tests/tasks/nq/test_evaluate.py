"""The official metrics and the plot of the curves."""

import random

import matplotlib.image
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etcmodel.tasks.nq import metrics as nq_metrics
from tests.tasks.nq import slow_scorer
from tests.tasks.nq.raw_examples import NO_ANSWER, annotation, gold_of, prediction, span

SHORT = annotation()
LONG = annotation(short_answers=())
YES = annotation(short_answers=(), yes_no="YES")


def judged(gold_examples, *predictions):
    """(long, short) verdicts without the score, of the one example."""
    verdicts = nq_metrics.verdicts(gold_examples, {"predictions": predictions})
    return tuple(tuple(by_id[17][:3]) for by_id in verdicts)


RIGHT, WRONG, MISSED = (True, True, True), (True, True, False), (True, False, False)
SPURIOUS, REJECTED = (False, True, False), (False, False, False)


class TestVerdicts:
    def test_two_annotators_make_an_answer_and_any_of_them_makes_it_right(self):
        other = annotation((10, 19), ((16, 17),), candidate_index=1)
        assert judged(gold_of(SHORT, other), prediction()) == (RIGHT, RIGHT)
        assert judged(gold_of(SHORT, NO_ANSWER), prediction()) == (SPURIOUS, SPURIOUS)
        nothing = prediction((-1, -1), ())
        assert judged(gold_of(SHORT, SHORT), nothing) == (MISSED, MISSED)
        assert judged(gold_of(NO_ANSWER, NO_ANSWER), nothing) == (REJECTED, REJECTED)

    def test_short_answers_are_compared_as_sets_of_one_annotator(self):
        two = annotation(short_answers=((6, 8), (4, 5)))
        both = prediction(short_answers=((4, 5), (6, 8)))
        assert judged(gold_of(two, SHORT), both)[1] == RIGHT
        assert judged(gold_of(two, two), prediction())[1] == WRONG
        assert judged(gold_of(SHORT, annotation(short_answers=((4, 5),))), both)[1] == WRONG

    def test_yes_and_no_are_short_answers(self):
        yes = prediction(short_answers=(), yes_no="yes")
        assert judged(gold_of(YES, YES), yes)[1] == RIGHT
        assert judged(gold_of(YES, SHORT), {**yes, "yes_no_answer": "no"})[1] == WRONG
        assert judged(gold_of(SHORT, SHORT), yes)[1] == WRONG

    def test_an_example_without_a_prediction_is_missed_and_below_every_threshold(self):
        assert judged(gold_of(SHORT, SHORT)) == (MISSED, MISSED)
        metrics = nq_metrics.metrics(gold_of(SHORT, SHORT), {"predictions": []})
        assert metrics["long-best-threshold-f1"] == 0.0

    @pytest.mark.parametrize(
        ("predictions", "message"),
        [
            ([prediction(), prediction()], "two predictions for the example 17"),
            ([prediction(example_id=3)], "1 predictions are of examples that the gold file lacks"),
            ([{"example_id": 17}], "not in the official format.*`long_answer_score` must be there"),
            ([prediction(long_answer_score=None)], "`long_answer_score` must be there"),
            ([prediction(long_answer_score=10**400)], "`long_answer_score`.* a number"),
            ([prediction(short_answers_score="high")], "`short_answers_score`.* a number"),
            ([prediction(short_answers_score=float("nan"))], "`short_answers_score`.* a number"),
            ([prediction(yes_no=None)], "not in the official format.*`yes_no_answer`"),
            ([prediction(yes_no="unsure", short_answers=())], "must be yes, no or none.*'unsure'"),
            ([prediction(yes_no="no")], "must be none where there is a short answer.*'no'"),
            ([prediction((8, 8))], "`long_answer` must have its `start_token` before"),
            ([prediction((9, 1))], "`long_answer` must have its `start_token` before"),
            ([prediction((-1, 8))], "`long_answer` must have both `start_token` and"),
            ([prediction(short_answers=((6, -1),))], "`short_answers` must have both `start_to"),
            ([prediction(long_answer=(3, 10, 5, -1))], "`long_answer` must have both `start_byte`"),
            (
                [prediction(short_answers=((4, 6, 9, 9),))],
                "`short_answers` must.* before its `end_b",
            ),
            ([prediction(long_answer=("3", 10))], "`long_answer` must have integers `start_token`"),
            ([{**prediction(), "long_answer": None}], "`long_answer` must be an object"),
            ([{**prediction(), "short_answers": {}}], "`short_answers` must be a list of objects"),
            (["no object"], "prediction 1: an example must be a JSON object"),
            ([{}], "prediction 1: an example has no field `example_id`"),
        ],
    )
    def test_names_what_is_wrong_with_predictions(self, predictions, message):
        with pytest.raises(ValueError, match=message) as caught:
            nq_metrics.verdicts(gold_of(SHORT), {"predictions": predictions})
        assert "\n" not in str(caught.value)

    @pytest.mark.parametrize("predictions", [[], None, {"predictions": None}, {"17": {}}])
    def test_names_a_file_that_holds_no_predictions(self, predictions):
        with pytest.raises(ValueError, match="is an object with a list `predictions`"):
            nq_metrics.verdicts(gold_of(SHORT), predictions)

    def test_what_is_left_out_is_no_answer_but_scores_must_be_there(self):
        scores = {"example_id": 17, "long_answer_score": 1, "short_answers_score": 1}
        assert judged(gold_of(SHORT, SHORT), scores) == (MISSED, MISSED)
        assert judged(gold_of(NO_ANSWER), scores) == (REJECTED, REJECTED)

    def test_a_null_span_beside_yes_is_no_short_answer(self):
        yes = prediction(short_answers=((-1, -1),), yes_no="yes")
        assert judged(gold_of(YES, YES), yes)[1] == RIGHT

    def test_refuses_gold_without_examples_or_annotations(self):
        with pytest.raises(ValueError, match="no gold example"):
            nq_metrics.metrics({}, {"predictions": []})
        with pytest.raises(ValueError, match="1 gold examples have no annotation.*the id 1"):
            nq_metrics.metrics({1: (), **gold_of(SHORT)}, {"predictions": []})


class TestOffsets:
    """Two spans are equal if they agree in bytes or in tokens, whichever both have."""

    gold = gold_of(*[annotation((3, 8, 50, 90), ((4, 6, 55, 66),))] * 2)

    @pytest.mark.parametrize(
        ("long_answer", "short_answer", "expected"),
        [
            ((3, 8, 50, 90), (4, 6, 55, 66), (RIGHT, RIGHT)),
            ((-1, -1, 50, 90), (-1, -1, 55, 66), (RIGHT, RIGHT)),
            ((3, 8, -1, -1), (4, 6, -1, -1), (RIGHT, RIGHT)),
            ((3, 8, 1, 2), (4, 6, 1, 2), (RIGHT, RIGHT)),
            ((1, 2, 50, 90), (1, 2, 55, 66), (RIGHT, RIGHT)),
            ((3, 9, 50, 91), (4, 5, 55, 67), (WRONG, WRONG)),
            ((-1, -1, 50, 91), (-1, -1, 56, 66), (WRONG, WRONG)),
        ],
    )
    def test_either_kind_makes_it_right(self, long_answer, short_answer, expected):
        assert judged(self.gold, prediction(long_answer, (short_answer,))) == expected

    def test_gold_may_lack_either_kind(self):
        only_bytes = gold_of(*[annotation((-1, -1, 50, 90), ((-1, -1, 55, 66),))] * 2)
        only_tokens = gold_of(*[annotation((3, 8), ((4, 6),))] * 2)
        both = prediction((3, 8, 50, 90), ((4, 6, 55, 66),))
        assert judged(only_bytes, both) == judged(only_tokens, both) == (RIGHT, RIGHT)
        assert judged(only_bytes, prediction((3, 8), ((4, 6),))) == (WRONG, WRONG)

    def test_sets_may_pair_their_spans_by_different_kinds(self):
        two = gold_of(*[annotation((3, 8), ((4, 6, 55, 66), (7, 8, 70, 80)))] * 2)
        mixed = prediction(short_answers=((-1, -1, 70, 80), (4, 6, -1, -1)))
        assert judged(two, mixed)[1] == RIGHT
        assert judged(two, prediction(short_answers=((4, 6), (-1, -1, 55, 66))))[1] == WRONG


OFFSETS = st.sampled_from([(-1, -1), (-1, -1), (0, 1), (0, 2), (1, 2), (-2, -3)])
ANY_OFFSETS = st.one_of(OFFSETS, OFFSETS, OFFSETS, st.tuples(*[st.integers(-1, 2)] * 2))


def spans(offsets):
    return st.builds(lambda tokens, in_bytes: span(*tokens, *in_bytes), offsets, offsets)


def answers(offsets, yes_no):
    return {
        "long_answer": spans(offsets),
        "short_answers": st.lists(spans(offsets), max_size=2),
        "yes_no_answer": st.sampled_from(yes_no),
    }


@given(
    st.lists(
        st.fixed_dictionaries(answers(OFFSETS, ["NONE", "NONE", "YES", "NO"])),
        min_size=1,
        max_size=4,
    ),
    st.fixed_dictionaries(
        {
            "example_id": st.just(17),
            "long_answer_score": st.floats(-3, 3),
            "short_answers_score": st.integers(-3, 3),
            **answers(ANY_OFFSETS, ["none", "NONE", "no", "Yes", "maybe"]),
        }
    ),
    st.integers(1, 3),
)
@settings(max_examples=400)
def test_verdicts_equal_those_of_the_official_scorer(notes, predicted, threshold):
    annotations = gold_of(*notes)
    thresholds = {"long_threshold": threshold, "short_threshold": threshold}
    try:
        expected = slow_scorer.verdicts({17: notes}, [predicted], threshold)[17]
    except ValueError:
        with pytest.raises(ValueError, match="not in the official format"):
            nq_metrics.verdicts(annotations, {"predictions": [predicted]}, **thresholds)
        return
    by_kind = nq_metrics.verdicts(annotations, {"predictions": [predicted]}, **thresholds)
    assert tuple(tuple(by_id[17]) for by_id in by_kind) == expected


def verdict(gold_has, predicted, correct, score):
    return nq_metrics.Verdict(bool(gold_has), bool(predicted), bool(correct), score)


GROUP = [
    verdict(1, 1, 1, 3.0),
    verdict(0, 1, 0, 2.0),
    verdict(1, 1, 1, 2.0),
    verdict(1, 1, 0, 1.0),
    verdict(1, 0, 0, 0.0),
]


class TestThresholds:
    def test_the_curve_counts_equal_scores_together(self):
        expected = [(3.0, 1.0, 0.25), (2.0, 2 / 3, 0.5), (1.0, 0.5, 0.5), (0.0, 0.5, 0.5)]
        assert nq_metrics.curve(reversed(GROUP)) == expected

    def test_the_best_threshold_has_the_highest_f1(self):
        named = nq_metrics.best_threshold_metrics(GROUP, [])
        assert named["long-best-threshold"] == 2.0
        assert named["long-best-threshold-f1"] == pytest.approx(4 / 7)
        assert named["long-recall-at-precision>=0.9"] == 0.25
        assert named["short-best-threshold-f1"] == 0.0

    def test_the_mean_of_both_f1_chooses_the_best_checkpoint(self):
        wrong_short = {"predictions": [prediction(short_answers=((4, 5),))]}
        assert (
            nq_metrics.metrics(gold_of(SHORT, SHORT), wrong_short)["mean-best-threshold-f1"] == 0.5
        )

    def test_without_scores_every_prediction_counts(self):
        named = nq_metrics.metrics_ignoring_scores(GROUP, GROUP[:1])
        assert named["long-answer-precision"] == named["long-answer-recall"] == 0.5
        assert (named["long-answer-n"], named["short-answer-f1"]) == (5, 1.0)

    def test_the_order_of_the_examples_does_not_matter(self):
        shuffled = random.Random(0).sample(GROUP, len(GROUP))
        assert nq_metrics.best_threshold_metrics(
            shuffled, GROUP
        ) == nq_metrics.best_threshold_metrics(GROUP, shuffled)


def test_the_curves_are_drawn_to_a_png_file(tmp_path):
    path = tmp_path / "plots" / "curves.png"
    nq_metrics.plot_curves(GROUP, [verdict(1, 0, 0, float("-inf"))], str(path))
    picture = matplotlib.image.imread(path)
    assert picture.shape[:2] == (341, 1012)
    colors = {tuple(pixel) for pixel in picture[:, :506].reshape(-1, picture.shape[2])[::7]}
    assert len(colors) > 10  # Lines and letters, not an empty page.
    assert [file.name for file in path.parent.iterdir()] == ["curves.png"]
