"""Pieces with the characters that they are from."""

import random
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etcmodel.text import pieces, tokenization
from tests import vocabularies
from tests.reference import cases

VOCAB = cases.reference_root() / "vocab" / "bert_uncased_vocab.txt"
MODEL = cases.reference_root() / "vocab" / "gpt2_sentencepiece.model"
SMALL = [
    *("[UNK]", "un", "##aff", "##able", "élan", "elan", "a"),
    *("##b", ",", ".", "σ", "ς", "水", "b"),
]

# Letters, accents alone and composed, ideographs, all kinds of white space, what vanishes.
CHARS = "aAbBuUnNéÉßİΣσς\u0301\u0327ﬁ각水火,.-$ \t\n\r\x0b\x0c\x1c\x85\u2028\u3000\u200b\0\ufffd1😀"
TEXTS = st.lists(st.text(st.one_of(st.sampled_from(CHARS), st.characters(codec="utf-8"))))


@pytest.fixture(scope="module", params=[True, False], ids=["lower case", "cased"])
def tokenizer(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("vocab")
    return vocabularies.tokenizer(folder, SMALL, do_lower_case=request.param)


def splitters():
    """Those of the public vocabularies, where they are there."""
    if not VOCAB.exists():
        pytest.skip("needs the whole reference folder")
    return [
        pieces.Splitter(tokenization.FullTokenizer(str(VOCAB))),
        pieces.Splitter(tokenization.FullTokenizer(None, spm_model_file=str(MODEL))),
        pieces.Splitter(
            tokenization.FullTokenizer(None, spm_model_file=str(MODEL), split_punctuation=True)
        ),
    ]


def spans_of(splitter, text):
    found = splitter.split([text])
    return [text[start:end] for start, end in zip(found.starts, found.ends, strict=True)]


def normalized(text, tokenizer):
    tokens = tokenizer.basic_tokenizer.tokenize(text)
    return "".join(tokens).replace("ς", "σ")  # Its place in the word decides which one it is.


@settings(max_examples=300)
@given(texts=TEXTS)
def test_pieces_are_the_tokenizers_and_their_characters_normalize_to_them(tokenizer, texts):
    found = pieces.Splitter(tokenizer).split(texts)
    expected = [tokenizer.tokenize(text) for text in texts]
    assert found.counts.tolist() == [len(tokens) for tokens in expected]
    tokens = [token for tokens in expected for token in tokens]
    assert found.ids.tolist() == tokenizer.convert_tokens_to_ids(tokens)
    owners = [text for text, tokens in zip(texts, expected, strict=True) for _ in tokens]
    for text, token, start, end in zip(owners, tokens, found.starts, found.ends, strict=True):
        assert 0 <= start < end <= len(text)
        if token != "[UNK]":
            spelled = normalized(text[start:end], tokenizer)
            assert spelled == token.removeprefix("##").replace("ς", "σ")


def test_words_of_one_text_do_not_depend_on_the_other_texts(tokenizer):
    splitter = pieces.Splitter(tokenizer)
    together = splitter.split(["unaffable a", "", " ab ", "b"])
    assert together.counts.tolist() == [4, 0, 2, 1]
    assert list(zip(together.starts.tolist(), together.ends.tolist(), strict=True)) == [
        *[(0, 2), (2, 5), (5, 9), (10, 11)],
        *[(1, 2), (2, 3)],
        (0, 1),
    ]


def test_accents_belong_to_their_letter_and_punctuation_to_itself(tmp_path):
    splitter = pieces.Splitter(vocabularies.tokenizer(tmp_path, SMALL))
    assert spans_of(splitter, "Élan, E\u0301lan. A\u200bB") == [
        *("Élan", ",", "E\u0301lan", ".", "A", "B")
    ]
    assert spans_of(splitter, "水a水") == ["水", "a", "水"]
    assert spans_of(splitter, "quixotic-un") == ["quixotic", "-", "un"]


def test_each_character_has_as_many_places_as_its_normalized_form():
    basic = tokenization.BasicTokenizer(do_lower_case=True)
    for code in range(0, sys.maxunicode + 1, 17):
        char = chr(code)
        expected = len("".join(basic.tokenize(char)))
        assert len(pieces._places(char, True)) == expected, hex(code)


@pytest.mark.parametrize("seed", range(3))
def test_public_vocabularies_on_mixed_text(seed):
    rng = random.Random(seed)
    words = [
        *("Emma,", "1,980,", "20,", "naïve", "ﬁne", "Ⅷ", "水", "don't", "  ", "\n"),
        *("e\u0301.", "Σας"),
    ]
    text = " ".join(rng.choices(words, k=60))
    for splitter in splitters():
        tokenizer = splitter.tokenizer
        found = splitter.split([text, "", text[:40]])
        assert found.ids[: found.counts[0]].tolist() == tokenizer.convert_tokens_to_ids(
            tokenizer.tokenize(text)
        )
        assert found.counts[1] == 0 and (found.starts <= found.ends).all()


def test_sentence_pieces_have_the_characters_without_the_space_before():
    _, whole, by_word = splitters()
    text = "In 1980, 20,000 cafés."
    tokens = [token.removeprefix("▁") for token in whole.tokenizer.tokenize(text)]
    assert spans_of(whole, text) == tokens
    for splitter in (whole, by_word):
        assert "".join(spans_of(splitter, text)) == text.replace(" ", "")


def test_lone_surrogates_are_unknown_and_no_error():
    for splitter in splitters():
        assert "a" in spans_of(splitter, "a \ud800 b")
        found = splitter.tokenizer.tokenize("a \ud800 b")
        assert len(splitter.tokenizer.convert_tokens_to_ids(found)) >= 2
    _, whole, _ = splitters()
    assert whole.tokenizer.tokenize("a \ud800 b") == whole.tokenizer.tokenize("a \ufffd b")


def test_the_memory_of_words_is_bounded(tokenizer, monkeypatch):
    monkeypatch.setattr(pieces, "_MOST_REMEMBERED", 20)
    splitter = pieces.Splitter(tokenizer)
    for start in range(0, 200, 10):
        texts = [f"a{number}" for number in range(start, start + 10)]
        found = splitter.split(texts)
        assert found.starts.tolist() == [0] * 10
    assert splitter._words.size <= 20 + 10 * 8
