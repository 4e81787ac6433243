"""Answers over windows and documents."""

import json

import numpy as np
import pytest

from etcmodel.tasks.triviaqa import config, metrics

TEXT = "Red king. The red KING, green"
PLACES = [(0, 3), (4, 8), (8, 9), (10, 13), (14, 17), (18, 22), (22, 23), (24, 29)]


def window(best, question="q", document="a.txt", shift=0.0, text_start=0):
    """An output whose starts and ends have the logits of `best`, by place; 0 elsewhere."""
    output = {"question_id": question.encode(), "document": document, "text": TEXT.encode()}
    output["text_start"] = np.array(text_start)
    starts, ends = zip(*PLACES, strict=True)
    output |= {"token_starts": np.array([-1, *starts]), "token_ends": np.array([-1, *ends])}
    for name, logits in zip(("start", "end"), best, strict=True):
        row = np.zeros(len(PLACES) + 1, np.float32) + shift
        row[0] = 99  # Of a token that is not of the text.
        for place, logit in logits.items():
            row[place + 1] += logit
        output[name] = row
    return output


def decoded(*windows, **fields):
    options = config.TriviaQaDecodingOptions(**fields)
    lines = [json.dumps(metrics.answers_of_window(one, options)) for one in windows]
    return metrics.combine(map(json.loads, lines), options)


def test_the_best_span_is_told_as_it_is_written():
    told = decoded(window(({4: 5}, {5: 5, 3: 9})))
    assert told["q"]["answer"] == "red KING" and told["q"]["score"] == 10
    assert told["q"]["document"] == "a.txt"
    # "Red king. The" has 9, too, and is the same answer.
    assert told["q"]["others"][0] == {"answer": "king. The", "score": 9}
    assert len(told["q"]["others"]) == 4


def test_answers_are_not_longer_than_they_may_be():
    long = window(({0: 5, 6: 2}, {7: 5}))
    assert decoded(long)["q"]["answer"] == TEXT
    assert decoded(long, max_answer_length=2)["q"]["answer"] == ", green"


def test_windows_of_all_documents_compete_whatever_their_order():
    windows = [
        window(({0: 3}, {1: 3})),
        window(({7: 8}, {7: 1}), document="b.txt"),
        window(({4: 1}, {4: 1}), question="other"),
    ]
    for order in (windows, windows[::-1]):
        told = decoded(*order)
        assert (told["q"]["answer"], told["q"]["document"]) == ("green", "b.txt")
        assert told["other"]["answer"] == "red"


def probability_of_red_king(output):
    """That of all spans that differ from it in case, punctuation and articles alone."""
    begin, end = (np.exp(output[name][1:].astype(float)) for name in ("start", "end"))
    spans = [(0, 1), (0, 2), (3, 5), (3, 6), (4, 5), (4, 6), (0, 3), (2, 5), (2, 6)]
    return sum(begin[i] * end[j] for i, j in spans) / begin.sum() / end.sum()


def test_equal_answers_add_up_if_sums_are_asked_for():
    windows = [
        window(({7: 9}, {7: 9})),  # "green": nearly certain.
        window(({0: 8}, {1: 8}), document="b.txt"),
        window(({4: 7}, {5: 7}), document="c.txt"),
    ]
    assert decoded(*windows)["q"]["answer"] == "green"
    told = decoded(*windows, answer_score="sum")["q"]
    assert (told["answer"], told["document"]) == ("Red king", "b.txt")

    assert told["score"] == pytest.approx(sum(map(probability_of_red_king, windows)), rel=1e-5)
    # Only the differences of a window's logits count.
    two = [window(({0: 8}, {0: 8}), shift=50, text_start=place) for place in (40, 80)]
    assert decoded(windows[0], *two, answer_score="sum")["q"]["answer"] == "Red"


def test_a_span_in_two_windows_counts_once_in_a_sum():
    green = ({7: 9}, {7: 9})
    less, more, elsewhere = (
        window(({0: logit}, {1: logit}), text_start=place)
        for logit, place in ((7, 40), (8, 40), (8, 80))
    )
    for windows in ([less, more], [more, less]):
        told = decoded(window(green), *windows, answer_score="sum")["q"]
        assert told["answer"] == "green"
        red = told["others"][0]
        assert red["answer"] == "Red king"
        single = decoded(window(green), more, answer_score="sum")["q"]["others"][0]
        assert red["score"] == pytest.approx(single["score"], abs=0.01)  # Not twice.
    told = decoded(window(green), more, elsewhere, answer_score="sum")["q"]
    assert told["answer"] == "Red king"  # In two places.


def test_an_article_alone_is_no_answer_if_there_is_another():
    told = decoded(window(({3: 9}, {3: 9, 4: 1})))["q"]
    assert (told["answer"], told["score"]) == ("The red", 10)


def test_equally_good_answers_come_by_their_words_whatever_the_order_of_windows():
    windows = [window(({place: 4}, {place: 4})) for place in (1, 7, 0)]
    for order in (windows, windows[::-1]):
        told = decoded(*order)["q"]
        found = [told["answer"], *(other["answer"] for other in told["others"][:2])]
        assert found == ["green", "king", "Red"]


def test_by_document_each_document_has_an_answer():
    windows = [
        window(({7: 9}, {7: 9})),
        window(({0: 8}, {1: 8}), document="b.txt"),
        window(({0: 9}, {0: 8}), document="b.txt"),
    ]
    told = decoded(*windows, by_document=True)
    answers = {key: one["answer"] for key, one in told.items()}
    assert answers == {"q--a.txt": "green", "q--b.txt": "Red"}
