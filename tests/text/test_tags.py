"""Labelled spans of characters become tags of tokens, and tags become spans again."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from etcmodel import EtcProcessor, GmatProcessor
from etcmodel.text import tags
from tests import vocabularies

WORDS = ["emma", "novel", "by", "jane", "aus", "##ten", ".", "who", "?", "a"]
LABELS = ["O", "B-PER", "I-PER", "B-BOOK", "I-BOOK", "time"]
TEXT = "Emma by  Jane Austen. 1816"
SPANS = [
    {"start": 9, "end": 20, "label": "PER"},
    {"start": 0, "end": 4, "label": "BOOK"},
    {"start": 22, "end": 26, "label": "time"},
]


vocab = vocabularies.fixture([*vocabularies.SPECIAL, *WORDS], vocabularies.write, "vocab")


def example(spans=SPANS, **fields):
    return {**(fields or {"text": TEXT}), "extra": {"spans": spans}}


def one_hot(targets):
    """Logits that say the targets; where nothing is told they say anything."""
    return np.where(targets[..., np.newaxis] == np.arange(len(LABELS)), 5.0, 0.0)


@pytest.mark.parametrize(
    ("processor_class", "nothing"), [(EtcProcessor, -1), (GmatProcessor, -100)]
)
def test_tokens_of_a_span_have_its_label_and_what_is_no_text_has_none(
    vocab, processor_class, nothing
):
    batch = processor_class(vocab)([example(), example([], text="A novel")])
    assert batch.encodings[0].tokens[1:-1] == ["emma", "by", "jane", "aus", "##ten", ".", "[UNK]"]
    found = tags.tag_targets(batch, LABELS)
    assert found.dtype == np.int32
    assert found.tolist() == [
        [nothing, 3, 0, 1, 2, 2, 0, 5, nothing],
        [nothing, 0, 0, *[nothing] * 6],
    ]
    assert tags.tagged_spans(batch, one_hot(found), LABELS) == [
        ("Emma", "BOOK", 0, 0, 4),
        ("Jane Austen", "PER", 0, 9, 20),
        ("1816", "time", 0, 22, 26),
    ]
    assert tags.tagged_spans(batch, one_hot(found), LABELS, example=1) == []


def test_a_question_has_no_tags_and_other_texts_are_named(vocab):
    given = example(
        [{"start": 0, "end": 4, "label": "BOOK", "text": "documents[1].text"}],
        question="Who?",
        documents=["Jane.", "Emma."],
    )
    batch = EtcProcessor(vocab)(given)
    found = tags.tag_targets(batch, LABELS)
    assert batch.encodings[0].tokens == [
        *("[CLS]", "who", "?", "[SEP]", "jane", ".", "emma", ".", "[SEP]")
    ]
    assert found.tolist() == [[-1, -1, -1, -1, 0, 0, 3, 0, -1]]
    (span,) = tags.tagged_spans(batch, one_hot(found), LABELS)
    assert span[:2] == ("Emma", "BOOK")
    assert batch.encodings[0].document.texts[span.text][span.start : span.end] == "Emma"


def test_a_word_has_the_tag_of_its_first_token(vocab):
    batch = EtcProcessor(vocab)(text="Austen Emma")
    logits = one_hot(np.array([[-1, 1, 4, 2, -1]]))
    assert tags.tagged_spans(batch, logits, LABELS) == [("Austen Emma", "PER", 0, 0, 11)]


def test_words_next_to_each_other_with_a_label_without_letters_are_one_span(vocab):
    batch = EtcProcessor(vocab)(text="Emma Jane a Emma")
    labels = ["O", "name", "article"]
    logits = np.eye(3)[[[0, 1, 1, 2, 1, 0]]]
    found = [(x.content, x.label) for x in tags.tagged_spans(batch, logits, labels)]
    assert found == [("Emma Jane", "name"), ("a", "article"), ("Emma", "name")]


@given(data=st.data())
def test_spans_of_words_come_back_from_any_windows(vocab, data):
    words = data.draw(st.lists(st.sampled_from(["Emma", "Austen", "by", "Jane"]), min_size=1))
    ends = np.cumsum([len(x) + 1 for x in words]) - 1
    spans, place = [], 0
    while place < len(words):
        length = data.draw(st.integers(1, 3))
        label = data.draw(st.sampled_from(["PER", "BOOK", None]))
        last = min(place + length, len(words)) - 1
        if label:
            start = int(ends[place]) - len(words[place])
            spans.append({"start": start, "end": int(ends[last]), "label": label})
        place = last + 1
    text = " ".join(words)
    settings = {
        "max_long_len": data.draw(st.integers(7, 12)),
        "stride": data.draw(st.integers(0, 3)),
    }
    batch = EtcProcessor(vocab)(example(spans, text=text), settings=settings)
    logits = one_hot(tags.tag_targets(batch, LABELS))
    found = tags.tagged_spans(batch, logits, LABELS)
    wanted = [(text[x["start"] : x["end"]], x["label"], 0, x["start"], x["end"]) for x in spans]
    assert found == wanted


def test_where_windows_overlap_the_one_that_shows_more_around_a_token_counts(vocab):
    batch = EtcProcessor(vocab)(
        text="by Emma by Jane by by", settings={"max_long_len": 6, "stride": 2}
    )
    shown = [x.tokens for x in batch.encodings]
    assert [x.count("jane") for x in shown][:2] == [1, 1]
    logits = np.zeros((*batch.long_shape, len(LABELS)))
    for row, tokens in enumerate(shown):  # Each window has another opinion.
        logits[row, tokens.index("jane") if "jane" in tokens else 0, (1, 3, 0)[row]] = 9.0
    depths = [min(x.index("jane"), len(x) - 1 - x.index("jane")) for x in shown if "jane" in x]
    (span,) = tags.tagged_spans(batch, logits, LABELS)
    assert span[:2] == ("Jane", ("PER", "BOOK")[int(np.argmax(depths))])


@pytest.mark.parametrize(
    ("spans", "message"),
    [
        (None, "`spans` of Example 0 of the batch must be a list of dicts of start, end, label"),
        ([{"start": 0, "end": 4}], "must be a list of dicts .* Received: {'end': 4, 'start': 0}"),
        ([{**SPANS[0], "end": 99}], "must have 0 <= start < end <= 26, .* start=9, end=99"),
        (
            [{**SPANS[0], "label": "RIVER"}],
            r"have one of the labels \['O', .* 'RIVER' of 'Jane Aus",
        ),
        ([{**SPANS[0], "label": "O"}], "must have one of the labels"),
        ([{"start": 7, "end": 9, "label": "PER"}], "must have a token. Received: 'PER' of '  '"),
        (
            [SPANS[0], {"start": 17, "end": 20, "label": "BOOK"}],
            r"share no token with another one. Received: 'BOOK' of 'ten', \[17, 20\)",
        ),
    ],
)
def test_a_span_that_is_none_is_named(vocab, spans, message):
    batch = EtcProcessor(vocab)(example(spans))
    with pytest.raises(ValueError, match=message):
        tags.tag_targets(batch, LABELS)


def test_what_does_not_fit_is_refused(vocab):
    batch = EtcProcessor(vocab)(example())
    with pytest.raises(ValueError, match=r"`labels` must have 'O'. Received: \['B-PER'\]"):
        tags.tag_targets(batch, ["B-PER"])
    with pytest.raises(ValueError, match=re.escape("must have the shape (1, 9, 6), of the token")):
        tags.tagged_spans(batch, np.zeros([1, 9, 5]), LABELS)
    with pytest.raises(ValueError, match="no example 1"):
        tags.tagged_spans(batch, np.zeros([1, 9, 6]), LABELS, example=1)
    with pytest.raises(ValueError, match="The logits of row 0 must be finite"):
        tags.tagged_spans(batch, np.full([1, 9, 6], np.nan), LABELS)
