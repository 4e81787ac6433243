"""A vocabulary of the words of one's own texts."""

import re

import pytest

from etcmodel.text.processor import EtcProcessor
from etcmodel.text.word_vocabulary import build_vocabulary, write_vocabulary

TEXTS = ["The river rises. The Émile!", "the way"]


def test_frequent_words_come_first_and_equal_counts_by_the_alphabet():
    assert build_vocabulary(TEXTS)[-5:] == ["the", "emile", "rises", "river", "way"]


def test_words_are_those_of_the_tokenizer():
    texts = ["snake_case x_1", "5€ 5€", "a\u200bb \u4e2d\u6587", "\x00"]
    pieces = build_vocabulary(texts)
    assert pieces[-4:] == ["5€", "ab", "case", "snake"]
    assert {"_", "x", "1", "5", "##€", "\u4e2d", "\u6587"} <= {*pieces}


def test_the_file_is_a_processors_vocabulary_without_unknown_words(tmp_path):
    path = tmp_path / "new" / "vocab.txt"
    size = write_vocabulary(path, TEXTS)
    processor = EtcProcessor(path)
    assert size == len(processor.vocabulary)
    tokens = processor("The rivers rise at émile's.").encodings[0].tokens
    assert tokens[:4] == ["[CLS]", "the", "river", "##s"]
    assert tokens[-5:] == ["emile", "'", "s", ".", "[SEP]"]
    assert "[UNK]" not in tokens and processor.vocabulary[101] == "[CLS]"  # As in BERT's.


@pytest.mark.parametrize(
    "texts, message",
    [
        ("the river", "`texts` must be several texts, such as a list. Received: one str"),
        (["the river", None], "`texts[1]` must be a str. Received: NoneType"),
    ],
)
def test_what_are_no_texts_is_refused_and_leaves_no_file(tmp_path, texts, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        write_vocabulary(tmp_path / "vocab.txt", texts)
    assert not [*tmp_path.iterdir()]
