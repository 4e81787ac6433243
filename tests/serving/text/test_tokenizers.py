"""Tokenizers in a graph give the pieces and the offsets of the Python tokenizers."""

import json
import types

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from etcmodel.serving.text import documents, text_module, tokenizers
from etcmodel.text import pieces, tokenization
from etcmodel.text.sentence_splitting import sentence_splitter
from tests.reference import cases
from tests.reference.small_files import strings_in

ROOT = cases.reference_root()
VOCAB = str(ROOT / "vocab" / "bert_uncased_vocab.txt")
MODEL = str(ROOT / "vocab" / "gpt2_sentencepiece.model")
COMMAS = str(ROOT / "tokenization" / "tiny_digit_comma.model")
KINDS = {
    "word pieces": {"vocab_file": VOCAB},
    "word pieces, cased": {"vocab_file": VOCAB, "do_lower_case": False},
    "sentence pieces": {"vocab_file": None, "spm_model_file": MODEL},
    "sentence pieces of words": {
        "vocab_file": None,
        "spm_model_file": MODEL,
        "split_punctuation": True,
    },
    "digits and commas": {"vocab_file": None, "spm_model_file": COMMAS},
}
# Letters, accents alone and composed, ideographs, all kinds of white space, what vanishes.
CHARS = "aAbBuUnNéÉßİΣσς\u0301\u0327\u0345ﬁ각水火,.-$ \t\n\r"
CHARS += "\x0b\x0c\x1c\x85\u2028\u3000\u200b\0\ufffd12😀"
HARD = [
    "ΑΣ ΑΣΑ Σ ΑΣ. Α.Σ ΑΣ\u0301 Α\u0301Σ ΑΣ\0Α ΑΣ水ΑΣ İΣ",
    *("a" * 199, "a" * 200, "a" * 201, "é" * 201, "水" * 300, "," * 300),
    "x 1,234, 5, 12,345,678, and",
    "\u0301a",
    "a",
    "\u0301",
    "",
    " ",
    "\0",
    "e\u0301\u0327\u0323 ﬁn \u1e9b\u0323",
]
# Of the SentencePiece model, in texts.
SYMBOLS = ("[CLS]", "[SEP]", "[MASK]", "<s>")
TEXTS = st.lists(
    st.text(st.one_of(st.sampled_from(CHARS), st.characters(codec="utf-8"))), max_size=5
)


@pytest.fixture(params=KINDS)
def check(request):
    """A function that compares a tokenizer and its graph on texts.

    For each test anew: seeding TensorFlow, before each, drops a SentencePiece model (see
    `make_tokenizer`).
    """
    return checker(tokenization.FullTokenizer(**KINDS[request.param]))


def checker(tokenizer):
    graph, splitter = tokenizers.make_tokenizer(tokenizer), pieces.Splitter(tokenizer)
    tokenize = tf.function(
        lambda texts: graph(tf.strings.unicode_decode(texts, "UTF-8")),
        input_signature=[tf.TensorSpec([None], tf.string)],
        autograph=False,
    )

    def check(texts):
        found = tokenize(tf.constant(texts, tf.string))
        expected = splitter.split(texts)
        np.testing.assert_array_equal(found.ids, expected.ids)
        owners = np.repeat(np.arange(len(texts)), expected.counts)
        np.testing.assert_array_equal(found.texts, owners[: len(expected.ids)])
        np.testing.assert_array_equal(found.starts, expected.starts)
        np.testing.assert_array_equal(found.ends, expected.ends)

    return check


def code_points():
    """Texts with each between letters, where it may join them or not."""
    chars = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    assigned = [char for char in chars if len(repr(char)) == 3 or ord(char) < 0x3100]
    return [f"a{char}Σ{char}b" for char in assigned[::7]]


def reference_texts():
    texts = []
    for path in sorted((ROOT / "tokenization").glob("*.json")):
        texts += strings_in(json.loads(path.read_text(encoding="utf-8")))
    texts = [text for text in dict.fromkeys(texts) if not any(x in text for x in SYMBOLS)]
    assert len(texts) > 100
    return texts


@pytest.mark.quick_cases(1)
def test_pieces_and_offsets_are_those_of_the_splitter(check):
    check(HARD)
    check(code_points())
    check(reference_texts())
    settings(max_examples=60)(given(texts=TEXTS)(check))()


ADDED = ["[ent]", "[ent", "ent]x", "aa", "é!"]
PARTS = st.lists(st.sampled_from([*ADDED, *"aEx é!\0\u0301水", "[ENT]", "É"]), max_size=8)


@pytest.mark.slow
@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize("kind", ["word pieces", "sentence pieces", "sentence pieces of words"])
def test_added_tokens_are_not_split(kind, special):
    tokenizer = tokenization.FullTokenizer(**KINDS[kind])
    tokenizer.add_tokens(ADDED[:3], special_tokens=special)
    tokenizer.add_tokens(ADDED[3:], special_tokens=not special)
    check = checker(tokenizer)
    check([])
    check(["", "[ent]", "[ent][ent]a [ent", "", "xE[ent]x aaa"])
    parts = st.lists(PARTS.map("".join), max_size=4)
    settings(max_examples=60)(given(texts=parts)(check))()


def test_added_tokens_that_a_graph_cannot_find_are_refused():
    tokenizer = tokenization.FullTokenizer(VOCAB)
    tokenizer.add_tokens("new york", special_tokens=True)
    tokenizers.make_tokenizer(tokenizer)
    tokenizer.add_tokens("new jersey")
    with pytest.raises(ValueError, match="cannot find the added token 'new jersey', which has whi"):
        tokenizers.make_tokenizer(tokenizer)


def test_symbols_of_a_sentencepiece_model_are_spelled_out():
    """A limit: what a text says is never a special token; to the Python tokenizer it is."""
    tokenizer = tokenization.FullTokenizer(**KINDS["sentence pieces"])
    found = tokenizers.make_tokenizer(tokenizer)(tf.strings.unicode_decode(SYMBOLS, "UTF-8"))
    spelled = np.array(tokenizer.convert_ids_to_tokens(found.ids.numpy()))
    for number, symbol in enumerate(SYMBOLS):
        assert symbol in tokenizer.tokenize(symbol)
        own = spelled[found.texts.numpy() == number].tolist()
        assert symbol not in own and "".join(own).removeprefix("▁") == symbol


def test_spacing_marks_keep_the_order_that_they_are_given_in(tmp_path):
    """A limit: of these few, such as tone marks of Hangul, NFD changes the order."""
    path = tmp_path / "vocab.txt"
    path.write_text("[UNK]\na\n##\u302e\n##\u1b44", encoding="utf-8")
    tokenizer = tokenization.FullTokenizer(str(path))
    graph = tokenizers.make_tokenizer(tokenizer)
    text = "a\u302e\u1b44"
    found = graph(tf.strings.unicode_decode([text], "UTF-8"))
    assert tokenizer.tokenize(text) == ["a", "##\u1b44", "##\u302e"]
    assert found.ids.numpy().tolist() == [1, 2, 3]


def test_refuses_tokenizers_that_tensorflow_text_does_not_have():
    with pytest.raises(ValueError, match="tensorflow-text has none for SimpleNamespace"):
        tokenizers.make_tokenizer(types.SimpleNamespace())


@pytest.mark.slow
@settings(max_examples=200)
@given(
    texts=st.lists(st.text(' .!?ab水。！？」）"।\n\x0b\x85\u2028\u00a0'), max_size=4),
    splitter=st.sampled_from(documents.SPLITTERS),
)
def test_sentences_are_those_of_the_splitter_that_the_export_names(texts, splitter):
    code_points = tf.strings.unicode_decode(tf.constant(texts, tf.string), "UTF-8")
    found = documents.split(code_points, splitter)
    split = sentence_splitter(splitter)
    expected = [(number, one) for number, text in enumerate(texts) for one in split(text)]
    strings = tf.strings.unicode_encode(found.code_points, "UTF-8").numpy()
    spelled = [string.decode() for string in strings]
    assert [*zip(found.texts.numpy().tolist(), spelled, strict=True)] == expected
    for (number, one), start in zip(expected, found.starts.numpy(), strict=True):
        assert texts[number][start : start + len(one)] == one


def test_what_neither_tokenizes_nor_answers_is_refused():
    for base, method in (
        (tokenizers.GraphTokenizer, "__call__"),
        (text_module.TextModule, "functions"),
    ):
        with pytest.raises(
            TypeError, match=f"abstract class Nothing .* abstract method '?{method}"
        ):
            type("Nothing", (base,), {})()
