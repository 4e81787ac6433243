"""The official metrics, the gold file and the plot of the curves."""

import gzip
import json
import random

import matplotlib.image
import pytest

from etcmodel.tasks.nq import curves, evaluate, gold, raw_data
from tests.tasks.nq.raw_examples import NO_ANSWER, annotation, raw_example, span

SHORT = annotation()
LONG = annotation(short_answers=())
YES = annotation(short_answers=(), yes_no="YES")


def gold_of(*annotations):
    return {17: raw_data.annotations_of({"example_id": 17, "annotations": list(annotations)})}


def prediction(long_answer=(3, 10), short_answers=((6, 8),), yes_no="NONE", **fields):
    return {
        "example_id": 17,
        "long_answer": span(*long_answer),
        "long_answer_score": 1.0,
        "short_answers": [span(*short) for short in short_answers],
        "short_answers_score": 2.0,
        "yes_no_answer": yes_no,
        **fields,
    }


def judged(gold_examples, *predictions):
    """(long, short) verdicts without the score, of the one example."""
    verdicts = evaluate.verdicts(gold_examples, {"predictions": predictions})
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
        assert judged(gold_of(YES, SHORT), prediction(yes_no="no"))[1] == WRONG
        assert judged(gold_of(SHORT, SHORT), yes)[1] == WRONG

    def test_an_example_without_a_prediction_is_missed_and_below_every_threshold(self):
        assert judged(gold_of(SHORT, SHORT)) == (MISSED, MISSED)
        metrics = evaluate.metrics(gold_of(SHORT, SHORT), {"predictions": []})
        assert metrics["long-best-threshold-f1"] == 0.0

    @pytest.mark.parametrize(
        ("predictions", "message"),
        [
            ([prediction(), prediction()], "two predictions for the example 17"),
            ([prediction(example_id=3)], "1 predictions are of examples that the gold file lacks"),
            ([{"example_id": 17}], "not in the official format.*'short_answers'"),
            ([prediction(yes_no=None)], "not in the official format"),
        ],
    )
    def test_names_what_is_wrong_with_predictions(self, predictions, message):
        with pytest.raises(ValueError, match=message):
            evaluate.verdicts(gold_of(SHORT), {"predictions": predictions})

    def test_refuses_an_empty_gold_file(self):
        with pytest.raises(ValueError, match="no gold example"):
            evaluate.metrics({}, {"predictions": []})


def verdict(gold_has, predicted, correct, score):
    return evaluate.Verdict(bool(gold_has), bool(predicted), bool(correct), score)


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
        assert evaluate.curve(reversed(GROUP)) == expected

    def test_the_best_threshold_has_the_highest_f1(self):
        named = evaluate.best_threshold_metrics(GROUP, [])
        assert named["long-best-threshold"] == 2.0
        assert named["long-best-threshold-f1"] == pytest.approx(4 / 7)
        assert named["long-recall-at-precision>=0.9"] == 0.25
        assert named["short-best-threshold-f1"] == 0.0

    def test_the_mean_of_both_f1_chooses_the_best_checkpoint(self):
        wrong_short = {"predictions": [prediction(short_answers=((4, 5),))]}
        assert evaluate.metrics(gold_of(SHORT, SHORT), wrong_short)["mean-best-threshold-f1"] == 0.5

    def test_without_scores_every_prediction_counts(self):
        named = evaluate.metrics_ignoring_scores(GROUP, GROUP[:1])
        assert named["long-answer-precision"] == named["long-answer-recall"] == 0.5
        assert (named["long-answer-n"], named["short-answer-f1"]) == (5, 1.0)

    def test_the_order_of_the_examples_does_not_matter(self):
        shuffled = random.Random(0).sample(GROUP, len(GROUP))
        assert evaluate.best_threshold_metrics(shuffled, GROUP) == evaluate.best_threshold_metrics(
            GROUP, shuffled
        )


class TestGold:
    def test_the_cache_gives_the_same_annotations_without_the_pages(self, tmp_path):
        for index in range(2):
            raws = [raw_example(example_id=10 * index + i) for i in range(3)]
            text = "".join(f"{json.dumps(raw)}\n" for raw in raws)
            (tmp_path / f"dev-{index}.jsonl.gz").write_bytes(gzip.compress(text.encode()))
        pattern, cache = str(tmp_path / "dev-*.jsonl.gz"), str(tmp_path / "sub" / "gold.jsonl.gz")
        assert gold.write_gold_cache(pattern, cache) == 6
        assert gold.read_gold(cache) == gold.read_gold(pattern)
        assert list(gold.read_gold(cache)) == [0, 1, 2, 10, 11, 12]
        assert (
            "document_text"
            not in gzip.decompress((tmp_path / "sub" / "gold.jsonl.gz").read_bytes()).decode()
        )
        assert [path.name for path in (tmp_path / "sub").iterdir()] == ["gold.jsonl.gz"]

    def test_names_the_line_of_what_is_malformed_or_there_twice(self, tmp_path):
        path = tmp_path / "gold.jsonl"
        path.write_text(f"{json.dumps(raw_example())}\n" * 2)
        with pytest.raises(ValueError, match="gold.jsonl: example 2: there is another example 17"):
            gold.read_gold(str(path))
        path.write_text('{"example_id": 1}\nnothing\n')
        with pytest.raises(ValueError, match="gold.jsonl: example 2: malformed JSON"):
            gold.read_gold(str(path))
        with pytest.raises(ValueError, match="No gold file matches"):
            gold.read_gold(str(tmp_path / "none-*"))


def test_the_curves_are_drawn_to_a_png_file(tmp_path):
    path = tmp_path / "plots" / "curves.png"
    curves.plot_curves(GROUP, [verdict(1, 0, 0, float("-inf"))], str(path))
    picture = matplotlib.image.imread(path)
    assert picture.shape[:2] == (480, 1200)
    colours = {tuple(pixel) for pixel in picture[:, :600].reshape(-1, picture.shape[2])[::7]}
    assert len(colours) > 10  # Lines and letters, not an empty page.
    assert [file.name for file in path.parent.iterdir()] == ["curves.png"]
