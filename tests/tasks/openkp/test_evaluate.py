"""From logits to phrases to the official metrics and the submission's lines."""

import json

import numpy as np
import pytest

from etcmodel.tasks.openkp import decode, evaluate, raw_data
from tests.tasks.openkp.pages import page

WORDS = ["The", "red", "Rose", "and", "the", "Red", "rose"]


def page_output(url, positions):
    starts, lengths, logits = zip(*positions, strict=True)
    points = np.array([ord(char) for char in url] + [-1] * 5)
    return {
        "url_code_points": points,
        "top_start_idx": np.array(starts),
        "top_phrase_len": np.array(lengths),
        "top_logits": np.array(logits),
    }


class TestKeyPhrases:
    def test_each_phrase_once_whatever_its_case_the_best_first(self):
        positions = [(0, 1, 1.0), (5, 2, 3.0), (1, 2, 2.0), (4, 1, 0.5)]
        assert decode.key_phrases(positions, WORDS, 5) == ["red rose", "the"]

    def test_no_more_than_asked_for(self):
        positions = [(i, 1, -i) for i in range(4)]
        assert decode.key_phrases(positions, WORDS, 2) == ["the", "red"]

    def test_what_is_not_on_the_page_is_no_phrase(self):
        positions = [(1, 0, 9.0), (7, 1, 8.0), (3, 1, 1.0)]
        assert decode.key_phrases(positions, WORDS, 5) == ["and"]

    @pytest.mark.parametrize(("compatible", "found"), [(False, ["and"]), (True, ["rose", "and"])])
    def test_an_ngram_beyond_the_end_is_no_phrase(self, compatible, found):
        positions = [(6, 2, 9.0), (3, 1, 1.0)]
        actual = decode.key_phrases(positions, WORDS, 5, release_compatible=compatible)
        assert actual == found


class TestPredictions:
    def test_by_url_with_nothing_for_a_page_without_output(self):
        outputs = [page_output("u/é", [(1, 2, 1.0)]), page_output("other", [(0, 1, 1.0)])]
        found = decode.predictions(outputs, {"u/é": WORDS, "none": WORDS}, 5)
        assert found == {"u/é": ["red rose"], "none": []}

    def test_outputs_of_other_pages_only_are_refused(self):
        with pytest.raises(ValueError, match="None of the records is of .* 1 pages.*'other'"):
            decode.predictions([page_output("other", [(0, 1, 1.0)])], {"u": WORDS}, 5)

    def test_line_of_the_submission(self):
        line = decode.submission_line("u", ["red rose", "café"])
        assert json.loads(line) == {"url": "u", "KeyPhrases": [["red rose"], ["café"]]}
        assert "\n" not in line


def text_example(url, key_phrases):
    raw = page("a red rose", url=url, key_phrases=key_phrases)
    return evaluate.TextExample.of(raw_data.parse_example(raw))


class TestMetrics:
    def test_precision_recall_and_f1_by_depth(self):
        scores = evaluate.scores({"red rose", "garden"}, ["sky", "Red  Rose"], max_depth=3)
        assert scores.precision == [0, 1 / 2, 1 / 3]
        assert scores.recall == [0, 1 / 2, 1 / 2]
        assert scores.f1 == pytest.approx([0, 1 / 2, 2 / 5])

    def test_a_phrase_counts_once(self):
        assert evaluate.scores({"rose"}, ["rose", "Rose"], 2).precision == [1, 1 / 2]

    def test_average_over_pages_with_or_without_predictions(self):
        gold = [text_example("a", [["rose"]]), text_example("b", [["red"], ["rose"]])]
        metrics = evaluate.metrics(gold, {"b": ["rose", "red"]})
        assert metrics["precision@1"] == 1 / 2
        assert metrics["recall@1"] == 1 / 4
        assert metrics["recall@3"] == 1 / 2
        assert metrics["f1@3"] == pytest.approx((2 * (2 / 3) / (5 / 3)) / 2)
        assert set(metrics) == {
            f"{n}@{d}" for n in ("precision", "recall", "f1") for d in (1, 3, 5)
        }

    def test_pages_without_labels_cannot_be_scored(self):
        with pytest.raises(ValueError, match="page 'a' has no key phrases to evaluate on"):
            evaluate.metrics([text_example("a", [])], {})
        with pytest.raises(ValueError, match="There is no page"):
            evaluate.metrics([], {})
