"""Where strings lie in tokenized texts."""

import pathlib
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etcmodel.text import alignment, tokenization
from tests import vocabularies

PIECES = ["[PAD]", "[UNK]", "op", "##era", "##s", "tea", "and", "the", "##i", "##r", ",", "4", ".5"]


tokenizer = vocabularies.fixture(PIECES)


@settings(max_examples=200)
@given(st.text(alphabet="ab \t\n\u202f\u00a0"))
def test_split_words_are_where_their_indices_say(text):
    unigrams, starts, chars_to_unigrams = alignment.whitespace_split_with_indices(text)
    assert len(chars_to_unigrams) == len(text)
    for index, (unigram, start) in enumerate(zip(unigrams, starts, strict=True)):
        assert text[start : start + len(unigram)] == unigram
        assert set(chars_to_unigrams[start : start + len(unigram)]) == {index}
    assert "".join(unigrams) == "".join(char for char in text if char not in " \t\n\u202f")


@given(text=st.lists(st.sampled_from(["operas", "tea,", "their", "x", " ", "4.5"])).map("".join))
def test_every_word_piece_belongs_to_the_unigram_that_it_spells(tokenizer, text):
    aligned = alignment.get_wordpiece_tokenized_text(text, tokenizer)
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
    assert alignment.find_word_spans(text, substring) == spans


FORMS = ("NFC", "NFD")


@pytest.mark.parametrize("text_form", FORMS)
@pytest.mark.parametrize("answer_form", FORMS)
def test_accents_may_be_written_in_either_way(text_form, answer_form):
    find = alignment.in_any_form(alignment.find_word_spans)
    text = unicodedata.normalize(text_form, "Å. Zoë  Čapek, 한국")
    for answer in ("Å", "Zoë Čapek", "한국"):
        ((first, last),) = find(text, unicodedata.normalize(answer_form, answer))
        assert unicodedata.normalize("NFC", text[first : last + 1]).split() == answer.split()
    assert find(text, "Zoe") == find(text, "A") == []  # Of which the text has other letters.


@settings(max_examples=300)
@given(
    st.lists(st.sampled_from(["é", "e", "\u0301", "å", "x", " ", "ế", "한", "하", "\u11ab"])),
    st.text(alphabet="éex ", min_size=1, max_size=3),
)
def test_what_is_found_does_not_depend_on_how_accents_are_written(parts, substring):
    text, form = "".join(parts), unicodedata.normalize("NFC", "".join(parts))
    find = alignment.in_any_form(alignment.find_char_spans)
    wanted = alignment.find_char_spans(form, substring)
    for name in FORMS:
        assert find(form, unicodedata.normalize(name, substring)) == wanted
    for other in (text, unicodedata.normalize("NFD", text)):
        spans = find(other, substring)
        found = [unicodedata.normalize("NFC", other[first : last + 1]) for first, last in spans]
        assert found == [substring] * len(wanted)
        before = [unicodedata.normalize("NFC", other[:first]) for first, _ in spans]
        assert before == [form[:first] for first, _ in wanted]


def test_answer_spans_narrow_to_the_answers_own_pieces(tokenizer):
    text = alignment.get_wordpiece_tokenized_text("tea, operas", tokenizer)
    assert text.tokens == ["tea", ",", "op", "##era", "##s"]
    assert alignment.find_answer_spans(text, "tea", tokenizer) == [(0, 0)]
    assert alignment.find_answer_spans(text, "opera", tokenizer) == [(2, 3)]


def test_an_answer_whose_pieces_differ_gets_its_whole_words(tokenizer):
    text = alignment.get_wordpiece_tokenized_text("tea operas", tokenizer)
    assert alignment.find_answer_spans(text, "per", tokenizer) == [(1, 3)]


def test_a_string_without_tokens_has_no_span(tokenizer):
    text = alignment.get_wordpiece_tokenized_text("tea \u200b and", tokenizer)
    assert alignment.find_answer_spans(text, "\u200b", tokenizer) == []


FINDERS = [alignment.find_char_spans, alignment.find_word_spans]
SMALL_REFERENCE = pathlib.Path(__file__).resolve().parents[1] / "reference" / "small"
align = alignment.get_sentencepiece_tokenized_text


@pytest.fixture(scope="module")
def split_tokenizer():
    model = str(SMALL_REFERENCE / "vocab" / "gpt2_sentencepiece.model")
    return tokenization.FullTokenizer(None, spm_model_file=model, split_punctuation=True)


class TestSplitSentencePieces:
    """Pieces of words that were split at punctuation, in the text as it was."""

    def test_marks_stand_where_they_stood(self, split_tokenizer):
        text = align(" It's  in the U.S. (1990).", split_tokenizer)
        assert text.tokens[:8] == ["▁It", "▁'", "▁s", "▁in", "▁the", "▁U", "▁.", "▁S"]
        assert text.tokens == split_tokenizer.tokenize(" It's  in the U.S. (1990).")
        assert text.text == "It's in the U.S. (1990)."
        assert text.chars_to_tokens[:16] == [0, 0, 1, 2, 3, 3, 3, 4, 4, 4, 4, 5, 5, 6, 7, 8]

    @pytest.mark.parametrize(
        ("answer", "pieces"),
        [
            ("U.S.", "▁U ▁. ▁S ▁."),
            ("It's", "▁It ▁' ▁s"),
            ("(1990)", "▁( ▁19 90 ▁)"),
            ("U", "▁U"),
            ("1990", "▁19 90"),
        ],
    )
    @pytest.mark.parametrize("find", FINDERS)
    def test_answers_with_marks_are_found(self, split_tokenizer, answer, pieces, find):
        text = align("It's in the U.S. (1990).", split_tokenizer)
        ((first, last),) = alignment.find_answer_spans(text, answer, split_tokenizer, find)
        assert text.tokens[first : last + 1] == pieces.split()

    @settings(max_examples=200)
    @given(
        st.lists(st.sampled_from(["Ab", "a.b.", "1,000", "(x)", "it's", "é", "“q”"]), min_size=1),
        st.sampled_from([" ", "  ", "\n"]),
    )
    def test_every_piece_is_where_its_letters_are(self, split_tokenizer, words, space):
        text = align(space.join(words), split_tokenizer)
        assert text.text == " ".join(words)
        assert text.tokens == split_tokenizer.tokenize(" ".join(words))
        letters = [""] * len(text.tokens)
        for char, token in zip(text.text, text.chars_to_tokens, strict=True):
            letters[token] += char.strip()
        assert letters == [token.replace("▁", "") for token in text.tokens]
        assert text.chars_to_tokens == sorted(text.chars_to_tokens)
