"""The best spans of a window, against a search through all spans."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from etcmodel.finetuning import spans

logits = st.floats(-4, 4, width=16)
tokens = st.lists(st.tuples(logits, logits, st.booleans()), min_size=1, max_size=9)


def slow_spans(rows, max_length):
    """(logit, probability, first, last) of all spans, the best first, then in the text's order."""
    inside = [place for place, (*_, is_text) in enumerate(rows) if is_text]
    totals = [sum(math.exp(rows[place][end]) for place in inside) for end in (0, 1)]
    found = [
        (rows[i][0] + rows[j][1], i, j)
        for i, j in itertools.product(inside, inside)
        if 0 <= j - i < max_length
    ]
    return [
        (logit, math.exp(logit) / totals[0] / totals[1], i, j)
        for logit, i, j in sorted(found, key=lambda x: (-x[0], x[1:]))
    ]


@given(tokens, st.integers(1, 4))
def test_all_spans_are_found_where_all_ends_are_considered(rows, max_length):
    text = "".join(chr(97 + place) for place in range(len(rows)))
    starts = [place if is_text else -1 for place, (*_, is_text) in enumerate(rows)]
    ends = [place + 1 if place >= 0 else -1 for place in starts]
    begin, end, _ = zip(*rows, strict=True)
    found = spans.best_spans(
        begin, end, (np.array(starts), np.array(ends)), text, max_length=max_length, num_best=100
    )
    wanted = slow_spans(rows, max_length)
    assert [x.text for x in found] == [text[i : j + 1] for *_, i, j in wanted]
    assert [(x.start, x.end - 1) for x in found] == [tuple(x[2:]) for x in wanted]
    assert [x.logit for x in found] == pytest.approx([x[0] for x in wanted])
    assert [x.probability for x in found] == pytest.approx([x[1] for x in wanted])


def test_few_ends_still_give_a_span():
    places = np.array([[0, 1, 2], [1, 2, 3]])
    (span,) = spans.best_spans([0, 0, 9], [9, 0, 1], places, "abc", num_best=1)
    assert (span.text, span.logit) == ("c", 10.0)  # The best end is before the best start.
