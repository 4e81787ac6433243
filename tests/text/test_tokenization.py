"""What the tokenizers promise, on a small vocabulary."""

import pathlib
import pickle
import subprocess
import sys
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etcmodel.text import characters, tokenization

PIECES = ["[PAD]", "[UNK]", "un", "##aff", "##able", "a", "##a", "b", "##b", "##f", "é", ",", "東"]
VOCAB = {piece: index for index, piece in enumerate(PIECES)}

words = st.text(alphabet="abfun", min_size=1, max_size=12)
texts = st.text(alphabet=st.sampled_from("aAbBfF éÉ,.-$\t\n\r\x00\x1c\x85\u200b\u202f\u3000東ｆΣβ"))


SMALL_REFERENCE = pathlib.Path(__file__).resolve().parents[1] / "reference" / "small"
SENTENCEPIECE_MODEL = str(SMALL_REFERENCE / "vocab" / "gpt2_sentencepiece.model")
marked_texts = st.text(alphabet="ab 1,.'(\"-é日\u3000\u00a0\u2028\u200b\t\x00“")


def slow_basic_tokenize(text, do_lower_case):
    """The definition, character by character over the whole text."""
    cleaned = ""
    for char in text:
        category = unicodedata.category(char)
        if char in "\t\n\r" or category == "Zs":
            cleaned += " "
        elif char not in "\0\ufffd" and category not in ("Cc", "Cf"):
            is_ideograph = unicodedata.name(char, "").startswith("CJK UNIFIED IDEOGRAPH")
            cleaned += f" {char} " if is_ideograph else char
    spaced = ""
    for word in cleaned.split():
        if do_lower_case:
            word = unicodedata.normalize("NFD", word.lower())
            word = "".join(char for char in word if unicodedata.category(char) != "Mn")
        for char in word:
            is_symbol = char.isascii() and char.isprintable() and not char.isalnum()
            is_punctuation = is_symbol or unicodedata.category(char).startswith("P")
            spaced += f" {char} " if is_punctuation else char
        spaced += " "
    return spaced.split()


def slow_wordpieces(word, vocab):
    """The definition: the longest piece first, over all ends."""
    pieces, start = [], 0
    while start < len(word):
        prefix = "##" if start else ""
        ends = [end for end in range(start + 1, len(word) + 1) if prefix + word[start:end] in vocab]
        if not ends:
            return ["[UNK]"]
        pieces.append(prefix + word[start : ends[-1]])
        start = ends[-1]
    return pieces


@pytest.fixture
def vocab_file(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join(PIECES) + "\n", encoding="utf-8")
    return str(path)


@settings(max_examples=200)
@given(texts, st.booleans())
def test_basic_tokenizer_equals_its_definition(text, do_lower_case):
    tokens = tokenization.BasicTokenizer(do_lower_case).tokenize(text)
    assert tokens == slow_basic_tokenize(text, do_lower_case)


@settings(max_examples=200)
@given(words)
def test_wordpiece_tokenizer_equals_its_definition(word):
    assert tokenization.WordpieceTokenizer(VOCAB).tokenize(word) == slow_wordpieces(word, VOCAB)


@settings(max_examples=200)
@given(words)
def test_word_pieces_spell_their_word(word):
    pieces = tokenization.WordpieceTokenizer(VOCAB).tokenize(word)
    spelled = "".join(piece.removeprefix("##") for piece in pieces)
    assert pieces == ["[UNK]"] or spelled == word


@given(texts)
def test_cached_words_give_what_the_two_steps_give(text):
    tokenizer = tokenization.FullTokenizer.__new__(tokenization.FullTokenizer)
    tokenizer.sp_model = None
    tokenizer.basic_tokenizer = tokenization.BasicTokenizer()
    tokenizer.wordpiece_tokenizer = tokenization.WordpieceTokenizer(VOCAB)
    tokenizer._words = characters.Memo(tokenizer._split_word, max_entries=2)
    steps = slow_basic_tokenize(text, do_lower_case=True)
    expected = [piece for token in steps for piece in slow_wordpieces(token, VOCAB)]
    assert tokenizer.tokenize(text) == expected
    assert tokenizer.tokenize(text) == expected  # Now partly from the full cache.


def test_a_word_longer_than_the_limit_is_unknown():
    tokenizer = tokenization.WordpieceTokenizer(VOCAB, max_input_chars_per_word=3)
    assert tokenizer.tokenize("aaa aaaa") == ["a", "##a", "##a", "[UNK]"]


def test_full_tokenizer_lower_cases_and_strips_accents_by_default(vocab_file):
    assert tokenization.FullTokenizer(vocab_file).tokenize("Á,B") == ["a", ",", "b"]
    cased = tokenization.FullTokenizer(vocab_file, do_lower_case=False)
    assert cased.tokenize("Á,é") == ["[UNK]", ",", "é"]


def test_ids_and_tokens_are_inverse(vocab_file):
    tokenizer = tokenization.FullTokenizer(vocab_file)
    assert tokenizer.convert_tokens_to_ids(["un", "##aff", "##able"]) == [2, 3, 4]
    assert tokenizer.convert_ids_to_tokens([2, 3, 4]) == ["un", "##aff", "##able"]


def test_a_tokenizer_can_be_pickled(vocab_file):
    tokenizer = tokenization.FullTokenizer(vocab_file)
    tokenizer.tokenize("unaffable")
    assert pickle.loads(pickle.dumps(tokenizer)).tokenize("Unaffable") == ["un", "##aff", "##able"]


def test_load_vocab_gives_a_repeated_line_no_second_id(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_text("a\r\nb\na\n  c \n", encoding="utf-8")
    assert tokenization.load_vocab(str(path)) == {"a": 0, "b": 1, "c": 2}


def test_a_byte_order_mark_is_no_token_and_other_encodings_are_refused(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_text("[PAD]\nб\n", encoding="utf-8-sig")
    assert tokenization.load_vocab(str(path)) == {"[PAD]": 0, "б": 1}
    path.write_bytes(b"[PAD]\n[UNK]\nb\xff\n")
    with pytest.raises(ValueError, match=r"vocab\.txt, line 3: the vocabulary is not UTF-8\."):
        tokenization.load_vocab(str(path))


def test_an_empty_vocabulary_is_an_error_that_names_the_file(tmp_path):
    path = tmp_path / "vocab.txt"
    path.touch()
    with pytest.raises(ValueError, match=r"vocab\.txt' is empty"):
        tokenization.FullTokenizer(str(path))


def test_a_broken_sentencepiece_model_is_an_error_that_names_the_file(tmp_path):
    for content in (b"", b"not a model"):
        path = tmp_path / "broken.model"
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"broken\.model' is no SentencePiece model"):
            tokenization.FullTokenizer(None, spm_model_file=str(path))


def test_a_tokenizer_needs_a_file():
    with pytest.raises(ValueError, match="`vocab_file` or `spm_model_file`"):
        tokenization.FullTokenizer(None)


def test_missing_special_tokens_are_named_with_the_file(vocab_file):
    tokenizer = tokenization.FullTokenizer(vocab_file)
    tokenizer.require_tokens(["[PAD]"])
    with pytest.raises(ValueError, match=r"vocab\.txt' lacks the tokens \[CLS\], \[SEP\]"):
        tokenizer.require_tokens(["[PAD]", "[CLS]", "[SEP]"])


def test_text_that_is_neither_str_nor_bytes_is_an_error():
    with pytest.raises(ValueError, match="Received: int"):
        tokenization.convert_to_unicode(3)


def test_importing_the_tokenizers_does_not_import_tensorflow():
    program = "import sys, etcmodel.text.tokenization; sys.exit('tensorflow' in sys.modules)"
    root = pathlib.Path(__file__).resolve().parents[2]
    assert subprocess.run([sys.executable, "-c", program], cwd=root, check=False).returncode == 0


@pytest.fixture(scope="module")
def split_tokenizer():
    return tokenization.FullTokenizer(
        None, spm_model_file=SENTENCEPIECE_MODEL, split_punctuation=True
    )


class TestSplitPunctuation:
    """Text for a SentencePiece model that was trained on words split by `BasicTokenizer`."""

    def test_every_mark_is_a_word_of_its_own_case(self, split_tokenizer):
        assert split_tokenizer.tokenize("The end.") == ["▁The", "▁e", "nd", "▁."]
        plain = tokenization.FullTokenizer(None, spm_model_file=SENTENCEPIECE_MODEL)
        assert plain.tokenize("The end.") == ["▁The", "▁e", "nd", "."]
        assert plain.tokenize("The end .") == split_tokenizer.tokenize("The end.")

    @settings(max_examples=200)
    @given(marked_texts)
    def test_the_pieces_are_those_of_the_split_text(self, split_tokenizer, text):
        words = tokenization.BasicTokenizer(do_lower_case=False).tokenize(text)
        expected = tokenization.encode_pieces(split_tokenizer.sp_model, " ".join(words))
        assert split_tokenizer.tokenize(text) == expected
        assert split_tokenizer.tokenize(text) == expected  # Now from the cache.

    @settings(max_examples=200)
    @given(marked_texts)
    def test_the_tokens_of_words_are_those_of_the_text(self, text):
        basic = tokenization.BasicTokenizer(do_lower_case=False)
        words = basic.tokenize_words(text)
        assert [token for word in words for token in word] == basic.tokenize(text)
        visible = text.replace("\u200b", "").replace("\x00", "")
        assert ["".join(word) for word in words] == visible.split()

    def test_it_is_a_choice_for_sentence_pieces(self, vocab_file):
        with pytest.raises(
            ValueError, match=r"is for SentencePiece.*Leave it out for '.*vocab.txt"
        ):
            tokenization.FullTokenizer(vocab_file, split_punctuation=True)

    def test_the_vocabulary_stays_the_same(self, split_tokenizer):
        plain = tokenization.FullTokenizer(None, spm_model_file=SENTENCEPIECE_MODEL)
        assert split_tokenizer.source_sha256() == plain.source_sha256()
        assert split_tokenizer.vocab == plain.vocab


@pytest.mark.parametrize("word", ["Ab,", "ÉB", "a b", "b\u200bf", "東東", "(a.b)", "\t", "a\x0bb"])
def test_a_remembered_word_has_the_pieces_and_ids_of_its_text(vocab_file, word):
    tokenizer = tokenization.FullTokenizer(vocab_file)
    for _ in range(2):
        tokens, ids = tokenizer.pieces_of_word(word)
        assert list(tokens) == tokenizer.tokenize(word)
        assert list(ids) == tokenizer.convert_tokens_to_ids(tokenizer.tokenize(word))
