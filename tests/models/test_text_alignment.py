"""Where strings lie in tokenized texts."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etcmodel.models import text_alignment, tokenization

PIECES = ["[PAD]", "[UNK]", "op", "##era", "##s", "tea", "and", "the", "##i", "##r", ",", "4", ".5"]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    path = tmp_path_factory.mktemp("vocab") / "vocab.txt"
    path.write_text("\n".join(PIECES), encoding="utf-8")
    return tokenization.FullTokenizer(str(path))


@settings(derandomize=True, deadline=None, max_examples=200)
@given(st.text(alphabet="ab \t\n\u202f\u00a0"))
def test_split_words_are_where_their_indices_say(text):
    unigrams, starts, chars_to_unigrams = text_alignment.whitespace_split_with_indices(text)
    assert len(chars_to_unigrams) == len(text)
    for index, (unigram, start) in enumerate(zip(unigrams, starts, strict=True)):
        assert text[start : start + len(unigram)] == unigram
        assert set(chars_to_unigrams[start : start + len(unigram)]) == {index}
    assert "".join(unigrams) == "".join(char for char in text if char not in " \t\n\u202f")


@settings(derandomize=True, deadline=None, max_examples=100)
@given(text=st.lists(st.sampled_from(["operas", "tea,", "their", "x", " ", "4.5"])).map("".join))
def test_every_word_piece_belongs_to_the_unigram_that_it_spells(tokenizer, text):
    aligned = text_alignment.get_wordpiece_tokenized_text(text, tokenizer)
    for index, unigram in enumerate(aligned.unigrams):
        own = [
            t for t, u in zip(aligned.tokens, aligned.tokens_to_unigrams, strict=True) if u == index
        ]
        assert own == tokenizer.tokenize(unigram)
        assert aligned.tokens_to_unigrams[aligned.unigrams_to_tokens[index]] == index


@pytest.mark.parametrize(
    ("text", "substring", "spans"),
    [
        ("no, North and no.", "no", [(0, 1), (14, 15)]),
        ("operas", "opera", []),
        ("two  \n words", "two words", [(0, 11)]),
        ("(1895-1943)", "1895", [(1, 4)]),
        ("costs $5 or $50", "$5", [(6, 7)]),
        ("C++, C", "C++", [(0, 2)]),
        ("anything", "  ", []),
    ],
)
def test_word_spans_are_whole_words_with_any_white_space(text, substring, spans):
    assert text_alignment.find_word_spans(text, substring) == spans


def test_answer_spans_narrow_to_the_answers_own_pieces(tokenizer):
    text = text_alignment.get_wordpiece_tokenized_text("tea, operas", tokenizer)
    assert text.tokens == ["tea", ",", "op", "##era", "##s"]
    assert text_alignment.find_answer_spans(text, "tea", tokenizer) == [(0, 0)]
    assert text_alignment.find_answer_spans(text, "opera", tokenizer) == [(2, 3)]


def test_an_answer_whose_pieces_differ_gets_its_whole_words(tokenizer):
    text = text_alignment.get_wordpiece_tokenized_text("tea operas", tokenizer)
    assert text_alignment.find_answer_spans(text, "per", tokenizer) == [(1, 3)]


def test_a_string_without_tokens_has_no_span(tokenizer):
    text = text_alignment.get_wordpiece_tokenized_text("tea \u200b and", tokenizer)
    assert text_alignment.find_answer_spans(text, "\u200b", tokenizer) == []
