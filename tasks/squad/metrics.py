"""Decodes the model's outputs to answers, and measures them, as BERT's and SQuAD's scripts do."""

import collections

import numpy as np

from etcmodel.finetuning import metrics as metrics_lib
from etcmodel.finetuning import spans, text_of
from etcmodel.finetuning.metrics import normalize_answer
from etcmodel.preprocessing import raw_files

__all__ = ["answer_score", "best_threshold", "combine", "example_score", "line", "metrics"]


def line(output, config):
    """The best answers in a window: dict for JSON, as `combine` takes it.

    Args:
        output: dict: `start`, `end`: float [L]; and the features of `features.make_features` for
            other than training.
        config: `SquadDecodingOptions`.
    Returns:
        dict: `id`, str; `null`, float, the sum of both logits of [CLS], for no answer; and `spans`,
        `spans.Span`s with characters of the whole context, as lists.
    """
    found = spans.spans_of_window(output, config.max_answer_length, config.n_best_size)
    null = float(np.ravel(output["start"])[0]) + float(np.ravel(output["end"])[0])
    return {"id": text_of(output["example_id"]), "null": null, "spans": [list(x) for x in found]}


def combine(lines, config):
    """The answers of questions, over all windows of each.

    Args:
        lines: iterable of results of `line`, in any order.
        config: `SquadConfig`.
    Returns:
        dict of id to dicts: `answer`, str, empty for no answer; and `nbest`, the best answers,
        dicts of `text`, `score` (the sum of both logits), `probability` among them, and `start` and
        `end`, characters of the context. With `version_2_with_negative`, also `null_odds`: the
        lowest score of no answer in a window, minus the best answer's.
    """
    found, nulls = collections.defaultdict(list), collections.defaultdict(list)
    for window in lines:
        found[window["id"]] += map(spans.Span._make, window["spans"])
        nulls[window["id"]].append(window["null"])
    return {key: _told(found[key], min(nulls[key]), config) for key in found}


def _told(found, null, config):
    best = {}
    for span in sorted(found, key=lambda x: (-x.logit, x.start, x.end)):
        text = span.text.strip()
        if text and len(best) < config.n_best_size:
            start = span.start + span.text.index(text)
            told = {"text": text, "score": span.logit, "start": start, "end": start + len(text)}
            best.setdefault(text, told)
    ranked = list(best.values())
    told = {"answer": ranked[0]["text"] if ranked else ""}
    if config.version_2_with_negative:
        odds = null - ranked[0]["score"] if ranked else 0.0
        told["null_odds"] = odds
        if odds > config.null_score_diff_threshold:
            told["answer"] = ""
        ranked.append({"text": "", "score": null})
        ranked.sort(key=lambda x: -x["score"])
    shares = metrics_lib.softmax([x["score"] for x in ranked]) if ranked else []
    pairs = zip(ranked, shares, strict=True)
    return {**told, "nbest": [{**one, "probability": float(share)} for one, share in pairs]}


# SQuAD's official metrics: exact match and F1, the best over all answers of the annotators.
#
# Source: Rajpurkar et al. 2016 (arXiv:1606.05250), section 6.1, Rajpurkar, Jia and Liang 2018
# (arXiv:1806.03822), and the official scripts `evaluate-v1.1.py` and `evaluate-v2.0.py`, whose
# numbers these are (in [0, 1], not percent).


def answer_score(prediction, answers, with_none=False):
    """(exact match, F1) of a predicted answer: floats in [0, 1].

    Args:
        prediction: str; empty for no answer.
        answers: sequence of str. The right ones.
        with_none: bool. As in version 2, where an empty answer is right if there is none, and
            annotators' answers without a word do not count.
    """
    told = normalize_answer(prediction)
    right = [normalize_answer(answer) for answer in answers]
    if with_none:
        right = [*filter(None, right)] or [""]
    f1 = max(metrics_lib.word_overlap(told.split(), x.split())[0] for x in right)
    if with_none and not (told and all(right)):
        f1 = float(told in right)
    return float(told in right), f1


def example_score(prediction, example, with_none=False):
    """`answer_score` of an example's answer; of HotpotQA's by its own script, with its yes and no.

    Args:
        prediction, with_none: see `answer_score`.
        example: `SquadExample`.
    """
    texts = [x.text for x in example.answers]
    if example.kind is None:
        return answer_score(prediction, texts, with_none)
    exact = normalize_answer(prediction) == normalize_answer(texts[0])
    return float(exact), metrics_lib.answer_overlap(prediction, texts[0])[0]


def _kinds(examples):
    """(prefix of metrics, kind): all, and HotpotQA's kinds."""
    kinds = sorted({x.kind for x in examples.values() if x.kind})
    return [("", None), *((f"{kind}_", kind) for kind in kinds)]


def metrics(gold, answers, odds=None, threshold=0.0):
    """The official metrics; a question without a prediction scores 0.

    Args:
        gold: iterable of `SquadExample` with answers.
        answers: dict of id to the predicted answer, str; with `odds`, to the best one that is not
            empty.
        odds: dict of id to float, how much the score of no answer exceeds that of the answer. None:
            an empty answer says that there is none.
        threshold: float. Odds above it say that there is none.
    Returns:
        dict of float. Version 1: `exact_match` and `f1`, of HotpotQA also those of each kind
        (`comparison_f1`, …). If questions have no answer, or with
        `odds`, those of version 2: `exact`, `f1`, `total`; the same of questions with an answer
        (`HasAns_exact`, …) and without one (`NoAns_exact`, …); and with `odds` `best_exact` and
        `best_f1`, those for the best threshold, and `best_exact_thresh` and `best_f1_thresh`, which
        that is.
    Raises:
        ValueError: if there is no question, one has no answers, or two have the same id.
    """
    examples = raw_files.by_id(gold)
    for key, example in examples.items():
        if example.answers is None:
            raise ValueError(
                f"example {key!r}: field `answers` is missing, and evaluation needs it. Give a "
                "gold file with answers."
            )
    if not examples:
        raise ValueError("There is no gold example to evaluate on.")
    is_v2 = odds is not None or not all(x.answers for x in examples.values())
    raw = {
        key: example_score(answers[key], example, is_v2) if key in answers else (0.0, 0.0)
        for key, example in examples.items()
    }
    if not is_v2:
        return {
            prefix + name: score
            for prefix, kind in _kinds(examples)
            for name, score in zip(
                ("exact_match", "f1"),
                _means(raw[key] for key, x in examples.items() if kind in (None, x.kind)),
                strict=True,
            )
        }
    has = {key: bool(example.answers) for key, example in examples.items()}
    rows = {
        key: (float(not has[key]),) * 2 if (odds or {}).get(key, threshold) > threshold else scores
        for key, scores in raw.items()
    }
    found = _by_kind(rows, has)
    keys = [key for key in odds or () if key in raw]
    for column, name in enumerate(_OF_V2[:2] if keys else ()):
        gains = [raw[key][column] if has[key] else -float(bool(answers[key])) for key in keys]
        without = sum(not has[key] for key in keys)
        best, place = best_threshold([odds[key] for key in keys], gains, without)
        found |= {f"best_{name}": best / len(raw), f"best_{name}_thresh": place}
    return found


_OF_V2 = ("exact", "f1", "total")


def _by_kind(rows, has):
    """The scores of version 2: of all questions, of those with an answer, and of the others."""
    found = {}
    for prefix, kinds in (("", (True, False)), ("HasAns_", (True,)), ("NoAns_", (False,))):
        if part := [row for key, row in rows.items() if has[key] in kinds]:
            scores = zip(_OF_V2, (*_means(part), float(len(part))), strict=True)
            found |= {f"{prefix}{name}": score for name, score in scores}
    return found


def _means(rows):
    return tuple(float(np.mean(column)) for column in zip(*rows, strict=True))


def best_threshold(odds, gains, without):
    """(the highest sum of scores, its threshold), of questions that are answered up to it.

    Args:
        odds: sequence of float, one for each question.
        gains: sequence of float. How much answering each adds to the sum.
        without: float. The sum of answering none, whose threshold counts as 0.
    """
    order = np.argsort(odds, kind="stable")
    sums = np.cumsum([without, *np.asarray(gains, np.float64)[order]])
    best = int(np.argmax(sums))
    return float(sums[best]), float(odds[order[best - 1]]) if best else 0.0
