"""Answers over windows, and scores and thresholds, against loops like those of the scripts."""

import collections
import re
import string
import types

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from etcmodel.pictures import metric_names
from etcmodel.tasks.squad import config, examples, metrics

WORDS = st.lists(
    st.sampled_from(["the", "The", "a", "red", "Red,", "king", "king.", "-", "é"]), max_size=4
)
TEXTS = WORDS.map(" ".join)


def normalized(text):
    """Step by step: lower case, no punctuation, no articles, single spaces."""
    text = "".join(x for x in text.lower() if x not in set(string.punctuation))
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", text).split())


def f1_of(told, right, is_v2):
    told, right = normalized(told).split(), normalized(right).split()
    if is_v2 and not (told and right):
        return float(told == right)
    common = sum((collections.Counter(told) & collections.Counter(right)).values())
    if not common:
        return 0.0
    precision, recall = common / len(told), common / len(right)
    return 2 * precision * recall / (precision + recall)


def scores_of(told, texts, is_v2):
    """(exact, F1), the best over the annotators."""
    if is_v2:
        texts = [text for text in texts if normalized(text)] or [""]
    exact = max(float(normalized(told) == normalized(text)) for text in texts)
    return exact, max(f1_of(told, text, is_v2) for text in texts)


def best_of(told, raw, odds, has):
    """The loop of `evaluate-v2.0.py` that finds a threshold."""
    score = best = sum(not x for x in has.values())
    threshold = 0.0
    for key in sorted(odds, key=lambda x: odds[x]):
        score += raw[key] if has[key] else -1 if told[key] else 0
        if score > best:
            best, threshold = score, odds[key]
    return best / len(raw), threshold


def twin(gold, told, odds, threshold):
    has = {key: bool(texts) for key, texts in gold.items()}
    raw = {key: scores_of(told[key], texts, True) for key, texts in gold.items()}
    rows = {key: (float(not has[key]),) * 2 if odds[key] > threshold else raw[key] for key in gold}
    found = {}
    for prefix, part in (
        ("", [*gold]),
        ("HasAns_", [key for key in gold if has[key]]),
        ("NoAns_", [key for key in gold if not has[key]]),
    ):
        for column, name in enumerate(("exact", "f1") if part else ()):
            found[f"{prefix}{name}"] = sum(rows[key][column] for key in part) / len(part)
            found[f"{prefix}total"] = len(part)
    for column, name in enumerate(("exact", "f1")):
        one = {key: scores[column] for key, scores in raw.items()}
        found[f"best_{name}"], found[f"best_{name}_thresh"] = best_of(told, one, odds, has)
    return found


def gold_of(texts):
    return [
        examples.SquadExample(key, "q", "c", tuple(map(examples.Answer, answers)))
        for key, answers in texts.items()
    ]


@hypothesis.given(
    st.lists(
        st.tuples(st.lists(TEXTS, max_size=3), TEXTS, st.sampled_from([-1.5, 0.0, 0.25, 3.0])),
        min_size=1,
        max_size=6,
    ),
    st.sampled_from([-2.0, 0.0, 1.0]),
)
@hypothesis.settings(max_examples=300)
def test_scores_of_version_2_are_those_of_the_script(rows, threshold):
    gold, told, odds = ({f"q{x}": row[part] for x, row in enumerate(rows)} for part in range(3))
    found = metrics.metrics(gold_of(gold), told, odds, threshold)
    assert found == pytest.approx(twin(gold, told, odds, threshold))
    # An empty answer in the file of predictions says the same as the odds.
    chosen = {key: "" if odds[key] > threshold else told[key] for key in gold}
    if not all(gold.values()) and all(any(map(normalized, x)) for x in gold.values() if x):
        assert metrics.metrics(gold_of(gold), chosen).items() <= found.items()


@hypothesis.given(st.lists(st.tuples(st.lists(TEXTS, min_size=1), TEXTS), min_size=1))
@hypothesis.settings(max_examples=200)
def test_scores_of_version_1_are_those_of_the_script(rows):
    gold, told = ({f"q{x}": row[part] for x, row in enumerate(rows)} for part in range(2))
    wanted = [scores_of(told[key], gold[key], False) for key in gold]
    exact, f1 = np.mean(wanted, axis=0)
    found = metrics.metrics(gold_of(gold), told)
    assert found == pytest.approx({"exact_match": exact, "f1": f1})


def test_a_question_without_a_prediction_scores_0():
    gold = gold_of({"a": ["red"], "b": ["red"]})
    assert metrics.metrics(gold, {"a": "Red"}) == {"exact_match": 0.5, "f1": 0.5}
    none = gold_of({"a": [], "b": []})
    assert metrics.metrics(none, {"a": ""})["NoAns_exact"] == 0.5
    found = metrics.metrics(none, {"a": "red"}, {"a": 1.0})
    assert (found["exact"], found["best_exact"], found["best_f1"]) == (0.5, 0.5, 0.5)
    with pytest.raises(ValueError, match="example 'x': field `answers` is missing"):
        metrics.metrics([examples.SquadExample("x", "q", "c")], {})
    with pytest.raises(ValueError, match="two examples with the id 'a'"):
        metrics.metrics([*gold, *gold], {})
    with pytest.raises(ValueError, match="no gold example"):
        metrics.metrics([], {})


OPTIONS = {"max_answer_length": 2, "n_best_size": 3, "null_score_diff_threshold": 0.0}


def options(**fields):
    return types.SimpleNamespace(**{**OPTIONS, "version_2_with_negative": True, **fields})


def window(text, start, starts, ends, best=None):
    """The output for a window of the words of a text; the first logits are those of [CLS]."""
    places = [(x.start(), x.end()) for x in re.finditer(r"\S+", text)]
    return {
        "example_id": b"q",
        "text": text.encode(),
        "text_start": np.array([start]),
        "token_starts": np.array([-1, *(x for x, _ in places)]),
        "token_ends": np.array([-1, *(x for _, x in places)]),
        "max_context": np.array([0, *(best or [1] * len(places))]),
        "start": np.array(starts, float),
        "end": np.array(ends, float),
    }


def test_the_best_answer_of_all_windows_against_the_lowest_score_of_none():
    first = window("the red king", 0, [3, 0, 4, 0], [2, 0, 0, 3])
    # "king" begins no answer here: the first window has more context.
    second = window("king of mud", 8, [1, 9, 0, 3], [1, 0, 0, 3], best=[0, 1, 1])
    lines = [metrics.line(x, options()) for x in (first, second)]
    assert [x["null"] for x in lines] == [5, 2]
    told = metrics.combine(lines[::-1], options())["q"]
    assert told["answer"] == "red king" and told["null_odds"] == 2 - 7
    assert [(x["text"], x["score"]) for x in told["nbest"]] == [
        *(("red king", 7), ("mud", 6), ("red", 4), ("", 2))
    ]
    shares = np.exp([7.0, 6, 4, 2]) / np.exp([7.0, 6, 4, 2]).sum()
    np.testing.assert_allclose([x["probability"] for x in told["nbest"]], shares)
    context = "the red king of mud"
    assert all(context[x["start"] : x["end"]] == x["text"] for x in told["nbest"][:3])

    strict = metrics.combine(lines, options(null_score_diff_threshold=-5.5))["q"]
    assert strict["answer"] == "" and strict["nbest"] == told["nbest"]
    at_odds = metrics.combine(lines, options(null_score_diff_threshold=-5.0))["q"]
    assert at_odds["answer"] == "red king"
    plain = metrics.combine(lines, options(version_2_with_negative=False))["q"]
    assert plain["answer"] == "red king" and "null_odds" not in plain
    assert [x["text"] for x in plain["nbest"]] == ["red king", "mud", "red"]


def test_equal_texts_are_one_answer_and_keep_the_better_place():
    lines = [metrics.line(window("mud , mud", 4, [0, 1, 0, 2], [0, 1, 0, 2]), options())]
    nbest = metrics.combine(lines, options(version_2_with_negative=False))["q"]["nbest"]
    assert (nbest[0]["text"], nbest[0]["start"]) == ("mud", 10)
    assert len({x["text"] for x in nbest}) == len(nbest)


def test_metrics_have_names_for_people():
    shown = {name: metric_names.describe(name) for name in ("HasAns_f1", "best_f1_thresh", "total")}
    assert shown["HasAns_f1"].name == "F1, questions with an answer"
    assert shown["best_f1_thresh"].is_setting and shown["total"].is_setting
    assert metric_names.describe("best_exact").title == "Exact match, % (higher is better)"
    assert config.SquadDecodingOptions().n_best_size == 20
