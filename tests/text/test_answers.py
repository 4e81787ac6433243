"""The best answer of scores of tokens."""

import itertools
import math

import numpy as np
import pytest

from etcmodel.text.answers import best_answer, widened
from etcmodel.text.processor import EtcProcessor
from tests import vocabularies
from tests.text import processors

WORDS = ["emma", "is", "a", "novel", "by", "jane", "austen", ".", "who", "?"]
TEXT = "Emma is a novel by  Jane Austen. Emma."


processor = processors.fixture([*WORDS])


def slow(batch, begin, end, example, max_tokens):
    """(best score, its probability), span by span."""
    best, total = None, 1.0
    for x in batch.windows(example):
        null = begin[x.row, x.place] + end[x.row, x.place]
        tokens = range(x.place, x.place + len(x.token_ids))
        pairs = itertools.product(tokens, tokens)
        next(pairs)  # No answer.
        total += sum(math.exp(begin[x.row, i] + end[x.row, j] - null) for i, j in pairs)
        for first in range(x.place, x.place + len(x.token_ids)):
            for last in range(first, min(first + max_tokens, x.place + len(x.token_ids))):
                span = x.char_span(first, last)
                if span is None or x.document.text_names[span[0]].endswith("question"):
                    continue
                score = begin[x.row, first] + end[x.row, last] - null
                if best is None or score > best:
                    best = score
    return best, math.exp(best) / total


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("changes", [{}, {"max_long_len": 10, "stride": 2}, {"pack": True}])
def test_the_best_span_is_that_of_the_twin(processor, seed, changes):
    lengths = {"max_long_len": 40, "max_global_len": 12}
    examples = [{"question": "Who?", "text": TEXT}, {"documents": [TEXT, "Jane."]}, "Novel"]
    batch = processor(examples, settings={**lengths, **changes})
    rng = np.random.default_rng(seed)
    begin, end = rng.normal(size=[2, *batch["token_ids"].shape])
    for example in range(3):
        answer = best_answer(batch, begin, end, example, max_tokens=4)
        expected = slow(batch, begin, end, example, 4)
        np.testing.assert_allclose((answer.score, answer.probability), expected, rtol=1e-12)
        assert answer.last - answer.first < 4
        (window,) = (x for x in batch.windows(example) if x.row == answer.row)
        assert answer.content == window.text_of(answer.first, answer.last)
        text = window.document.texts[answer.text]
        assert text[answer.start : answer.end] == answer.content


def test_an_answer_has_the_text_as_it_was_given(processor):
    batch = processor(question="Who?", text=TEXT)
    begin, end = np.zeros([2, *batch["token_ids"].shape])
    begin[0, 9] = end[0, 10] = begin[0, 1] = 2.0
    begin[0, 1] = 9.0  # Of the question.
    answer = best_answer(batch, begin, end)
    assert (answer.content, answer.start, answer.end) == ("Jane Austen", 20, 31)
    assert (answer.score, answer.first, answer.last) == (4.0, 9, 10)


def test_of_one_window_it_is_the_product_of_two_softmaxes(processor):
    batch = processor(question="Who?", text=TEXT)
    begin, end = np.random.default_rng(0).normal(size=[2, *batch["token_ids"].shape])
    answer = best_answer(batch, begin, end)
    first, last = (np.exp(x) / np.exp(x).sum() for x in (begin[0], end[0]))
    expected = first[answer.first] * last[answer.last]
    np.testing.assert_allclose(answer.probability, expected, rtol=1e-12)


def test_a_windows_own_constant_changes_nothing(processor):
    batch = processor(question="Who?", text=TEXT, settings={"max_long_len": 10, "stride": 2})
    begin, end = np.random.default_rng(0).normal(size=[2, *batch["token_ids"].shape])
    assert len(begin) > 2
    expected = best_answer(batch, begin, end)
    for row in range(len(begin)):
        shift = np.zeros([len(begin), 1])
        shift[row] = 30.0  # Of raw sums, it would choose the window.
        found = best_answer(batch, begin + shift, end - 2 * shift)
        assert found[:4] == expected[:4]
        np.testing.assert_allclose(found[4:6], expected[4:6], rtol=1e-9)


def test_probabilities_of_large_logits_neither_overflow_nor_vanish(processor):
    batch = processor(question="Who?", text=TEXT, settings={"max_long_len": 10, "stride": 2})
    begin, end = np.zeros([2, *batch["token_ids"].shape], np.float32)
    begin[1, 5] = end[1, 6] = 1e4
    answer = best_answer(batch, begin, end)
    assert (answer.row, answer.first, answer.last, answer.score) == (1, 5, 6, 2e4)
    assert answer.probability == 1.0
    begin[:, 1:] = end[:, 1:] = -1e4
    assert best_answer(batch, begin, end).probability == 0.0
    assert best_answer(batch, begin, end).score == -2e4


def test_what_is_no_answer(processor):
    batch = processor([{"question": "Who?"}, "Emma"])
    zeros = np.zeros(batch["token_ids"].shape)
    assert best_answer(batch, zeros, zeros) is None
    assert best_answer(batch, zeros, zeros, example=1).content == "Emma"
    with pytest.raises(ValueError, match="The batch has no example 2"):
        best_answer(batch, zeros, zeros, example=2)
    with pytest.raises(
        ValueError, match=r"`end_logits` must have the shape \(2, 4\) of the token ids"
    ):
        best_answer(batch, zeros, zeros[:, 1:])
    with pytest.raises(ValueError, match="The logits of row 1 must be finite"):
        best_answer(batch, zeros + [[0.0], [np.nan]], zeros, example=1)


@pytest.mark.parametrize(
    ("text", "found", "whole"),
    [
        ("by Jane Austen.", "ane Aust", "Jane Austen"),
        ("by Jane Austen.", "Austen", "Austen"),
        ("by Jane Austen.", "n.", "Austen."),
        ("by Jane Austen.", " ", " "),
        ("Austen", "ust", "Austen"),
        ("Austen's well-known", "known", "known"),
        ("Austen's well-known", "sten", "Austen"),
        ("of 1,000.50 men, 3, 4", "0", "1,000.50"),
        ("of 1,000.50 men, 3, 4", "3", "3"),
        ("in the 1800s", "18", "1800s"),
        ("caf\u00e9 cafe\u0301s", "\u00e9", "caf\u00e9"),
        ("caf\u00e9 cafe\u0301s", "\u0301", "cafe\u0301s"),
        (
            "\u041c\u043e\u0441\u043a\u0432\u0430 \u0438",
            "\u0441\u043a",
            "\u041c\u043e\u0441\u043a\u0432\u0430",
        ),
        ("\u7b80\u5965\u65af\u6c40\u5199", "\u5965\u65af", "\u5965\u65af"),
        ("\u30b8\u30a7\u30fc\u30f3\u306f\u4f5c\u5bb6", "\u30a7\u30fc", "\u30a7\u30fc"),
        ("\u0e40\u0e08\u0e19 \u0e2d\u0e2d\u0e2a", "\u0e08", "\u0e08"),
    ],
)
def test_spans_become_whole_words_where_words_end_at_spaces(text, found, whole):
    start = text.index(found)
    start, end = widened(text, start, start + len(found))
    assert text[start:end] == whole


def test_an_answer_has_whole_words_unless_it_is_to_have_its_tokens_alone(tmp_path):
    pieces = [*vocabularies.SPECIAL, *["who", "?", "jane", "aus", "##ten", "wrote"]]
    processor = EtcProcessor(vocabularies.write(tmp_path, pieces))
    batch = processor(question="Who?", text="Jane Austen wrote")
    (row,) = batch["token_ids"]
    place = row.tolist().index(pieces.index("aus"))
    begin, end = np.zeros([2, *batch["token_ids"].shape])
    begin[0, place - 1] = end[0, place] = 5.0
    whole = best_answer(batch, begin, end)
    assert (whole.content, whole.start, whole.end) == ("Jane Austen", 0, 11)
    alone = best_answer(batch, begin, end, whole_words=False)
    assert (alone.content, alone.start, alone.end) == ("Jane Aus", 0, 8)
    assert whole[4:] == alone[4:] and alone.last == place  # Scores are those of the tokens.
