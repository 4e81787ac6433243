"""From spans to whole words in a graph: as `text.answers.widened`."""

import hypothesis
import tensorflow as tf
from hypothesis import strategies as st

from etcmodel.serving.text import documents, places
from etcmodel.text import answers

TEXTS = st.lists(st.text("ab1.,- \u00e9\u0301\u4e2d\u30a2", max_size=9), max_size=4)


@hypothesis.settings(max_examples=60)
@hypothesis.given(TEXTS, st.data())
def test_a_graph_widens_spans_as_python_does(texts, data):
    spans = [(-1, -1, -1)]
    for number, text in enumerate(texts):
        if text:
            start = data.draw(st.integers(0, len(text) - 1))
            spans.append((number, start, data.draw(st.integers(start + 1, len(text)))))
    given = places.Places(*(tf.constant(x, tf.int32) for x in zip(*spans, strict=True)))
    found = places.widened(documents.decode(tf.constant(texts, tf.string)), given)
    wanted = [(-1, -1)] + [answers.widened(texts[x], start, end) for x, start, end in spans[1:]]
    assert found.texts.numpy().tolist() == [x for x, _, _ in spans]
    assert list(zip(*(x.numpy().tolist() for x in found[1:]), strict=True)) == wanted
