"""From logits to phrases to the official metrics and the submission's lines."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etcmodel.tasks.openkp import examples, phrases
from etcmodel.tasks.openkp import metrics as openkp_metrics
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
        assert openkp_metrics.key_phrases(positions, WORDS, 5) == ["red rose", "the"]

    def test_no_more_than_asked_for(self):
        positions = [(i, 1, -i) for i in range(4)]
        assert openkp_metrics.key_phrases(positions, WORDS, 2) == ["the", "red"]

    def test_what_is_not_on_the_page_is_no_phrase(self):
        positions = [(1, 0, 9.0), (7, 1, 8.0), (3, 1, 1.0)]
        assert openkp_metrics.key_phrases(positions, WORDS, 5) == ["and"]

    def test_words_stand_between_single_blanks_and_nothing_is_trimmed(self):
        words = phrases.split("red\u00a0fox  den\t")
        positions = [(0, 3, 3.0), (1, 2, 2.0), (0, 1, 1.0)]
        expected = ["red\u00a0fox  den\t", " den\t", "red\u00a0fox"]
        assert openkp_metrics.key_phrases(positions, words, 5) == expected

    @pytest.mark.parametrize("compatible", [False, True])
    def test_an_empty_word_alone_is_no_phrase(self, compatible):
        words = phrases.split("red\u00a0fox  den")
        positions = [(0, 3, 3.0), (1, 1, 2.0), (2, 1, 1.0)]
        found = openkp_metrics.key_phrases(positions, words, 2, release_compatible=compatible)
        assert found == ["red\u00a0fox  den", "den"]

    @pytest.mark.parametrize(("compatible", "found"), [(False, ["and"]), (True, ["rose", "and"])])
    def test_an_ngram_beyond_the_end_is_no_phrase(self, compatible, found):
        positions = [(6, 2, 9.0), (3, 1, 1.0)]
        actual = openkp_metrics.key_phrases(positions, WORDS, 5, release_compatible=compatible)
        assert actual == found


class TestPredictions:
    def test_by_url_with_nothing_for_a_page_without_output(self):
        outputs = [page_output("u/é", [(1, 2, 1.0)]), page_output("other", [(0, 1, 1.0)])]
        found = openkp_metrics.predictions(outputs, {"u/é": WORDS, "none": WORDS}, 5)
        assert found == {"u/é": ["red rose"], "none": []}

    def test_outputs_of_other_pages_only_are_refused(self):
        with pytest.raises(ValueError, match="None of the records is of .* 1 pages.*'other'"):
            openkp_metrics.predictions([page_output("other", [(0, 1, 1.0)])], {"u": WORDS}, 5)

    def test_line_of_the_submission(self):
        line = openkp_metrics.submission_line("u", ["red rose", "café"])
        assert json.loads(line) == {"url": "u", "KeyPhrases": [["red rose"], ["café"]]}
        assert "\n" not in line


def text_example(url, key_phrases):
    raw = page("a red rose", url=url, key_phrases=key_phrases)
    return openkp_metrics.TextExample.of(examples.parse_example(raw))


class TestMetrics:
    def test_precision_recall_and_f1_by_depth(self):
        scores = openkp_metrics.scores({"red rose", "garden"}, ["sky", "Red Rose"], max_depth=3)
        assert scores.precision == [0, 1 / 2, 1 / 3]
        assert scores.recall == [0, 1 / 2, 1 / 2]
        assert scores.f1 == pytest.approx([0, 1 / 2, 2 / 5])

    def test_repeated_and_empty_phrases_are_dropped_before_ranking(self):
        scores = openkp_metrics.scores({"rose", "sky"}, ["rose", "", "Rose", "sky"], 3)
        assert scores.precision == [1, 1, 2 / 3]
        assert scores.recall == [1 / 2, 1, 1]

    @given(
        gold=st.sets(st.sampled_from(["a", "b", "a b", "a  b"]), min_size=1),
        predicted=st.lists(st.sampled_from(["", "a", "A", "b", "a b", "a  b", "c", "\u00a0"])),
    )
    @settings(max_examples=200)
    def test_matches_slow_reference(self, gold, predicted):
        scores = openkp_metrics.scores(gold, predicted, max_depth=4)
        ranked = []
        for phrase in predicted:
            if phrase != "" and phrase.lower() not in ranked:
                ranked.append(phrase.lower())
        for depth in (1, 2, 3, 4):
            num_right = len(gold & set(ranked[:depth]))
            precision, recall = num_right / depth, num_right / len(gold)
            f1 = 2 * precision * recall / (precision + recall) if num_right else 0
            expected = pytest.approx((precision, recall, f1))
            assert tuple(values[depth - 1] for values in scores) == expected

    def test_spacing_counts(self):
        (gold,) = text_example("a", [["Oak", "", "door"]]).key_phrases
        assert gold == "oak  door"
        assert openkp_metrics.scores({gold}, ["oak door"], 1).precision == [0]
        assert openkp_metrics.scores({gold}, ["Oak  door"], 1).precision == [1]

    def test_average_over_pages_with_or_without_predictions(self):
        gold = [text_example("a", [["rose"]]), text_example("b", [["red"], ["rose"]])]
        metrics = openkp_metrics.metrics(gold, {"b": ["rose", "red"]})
        assert metrics["precision@1"] == 1 / 2
        assert metrics["recall@1"] == 1 / 4
        assert metrics["recall@3"] == 1 / 2
        assert metrics["f1@3"] == pytest.approx((2 * (2 / 3) / (5 / 3)) / 2)
        assert set(metrics) == {
            f"{n}@{d}" for n in ("precision", "recall", "f1") for d in (1, 3, 5)
        }

    def test_pages_without_labels_cannot_be_scored(self):
        with pytest.raises(ValueError, match="page 'a' has no key phrases to evaluate on"):
            openkp_metrics.metrics([text_example("a", [])], {})
        with pytest.raises(ValueError, match="There is no page"):
            openkp_metrics.metrics([], {})
