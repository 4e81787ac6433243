"""Rows of one vocabulary's table for the pieces of another."""

import json

import numpy as np
import pytest
import sentencepiece

from etcmodel import checkpoints
from tests.reference import cases

SENTENCEPIECE_MODEL = cases.resolve("vocab", "vocab/gpt2_sentencepiece.model")


def write_wordpiece(path, pieces):
    path.write_text("\n".join(pieces) + "\n", encoding="utf-8")
    return path


def write_roberta(path, pieces):
    path.write_text(json.dumps({piece: i for i, piece in enumerate(pieces)}), encoding="utf-8")
    return path


def test_the_same_vocabulary_in_another_order(tmp_path):
    source = write_wordpiece(tmp_path / "a.txt", ["[PAD]", "the", "##s", "[CLS]"])
    target = write_wordpiece(tmp_path / "b.txt", ["##s", "[CLS]", "new", "the", "s"])
    rows = checkpoints.token_rows(source, target)
    assert rows.tolist() == [2, 3, -1, 1, -1]


def test_robertas_bytes_are_read_as_text(tmp_path):
    pieces = ["<s>", "<pad>", "</s>", "<unk>", "Ġthe", "the", "Ã©", "Ġâĸ", "<mask>", "ĠÃ©t"]
    source = write_roberta(tmp_path / "vocab.json", pieces)
    target = write_wordpiece(
        tmp_path / "b.txt",
        ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "##the", "##é", "ét", "[unused0]"],
    )
    rows = checkpoints.token_rows(source, target)
    assert rows.tolist() == [1, 3, 0, 2, 8, 4, 5, 6, 9, -1]


def test_bytes_that_are_not_printable_have_letters_too(tmp_path):
    """A soft hyphen (C2 AD), an ellipsis (E2 80 A6), quotation marks (E2 80 9C)."""
    source = write_roberta(tmp_path / "vocab.json", ["ÂŃx", "âĢ¦", "ĠâĢľ"])
    target = write_wordpiece(tmp_path / "b.txt", ["“", "##…", "##\u00adx", "…"])
    assert checkpoints.token_rows(source, target).tolist() == [2, 1, 0, -1]


def test_a_sentencepiece_model_made_from_robertas_vocabulary(tmp_path):
    """It has text pieces, pieces that are RoBERTa's letters for bytes, and more special ones."""
    model = sentencepiece.SentencePieceProcessor(model_file=str(SENTENCEPIECE_MODEL))
    pieces = ["<s>", "<pad>", "</s>", "<unk>", "ing", "Ġthe", "Ã©", "Ł"]
    rows = checkpoints.token_rows(write_roberta(tmp_path / "v.json", pieces), SENTENCEPIECE_MODEL)
    assert len(rows) == model.get_piece_size()
    expected = {"[CLS]": 0, "<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "ing": 4, "▁the": 5}
    expected |= {"é": 6, "Ł": 7, "<length_0>": -1}
    assert {piece: rows[model.piece_to_id(piece)] for piece in expected} == expected


def test_a_sentencepiece_model_finds_itself():
    rows = checkpoints.token_rows(SENTENCEPIECE_MODEL, SENTENCEPIECE_MODEL)
    np.testing.assert_array_equal(rows, np.arange(len(rows)))


@pytest.mark.parametrize(
    "text, message",
    [
        ("{", "is not valid JSON"),
        ("[1]", "must hold a JSON object, not an array"),
        ('{"a": [0]}', "must map 1 pieces to the ids from 0"),
        ('{"a": 1}', "must map 1 pieces to the ids from 0"),
    ],
)
def test_a_file_that_is_no_vocabulary_is_named(tmp_path, text, message):
    (tmp_path / "vocab.json").write_text(text, encoding="utf-8")
    other = write_wordpiece(tmp_path / "b.txt", ["a"])
    with pytest.raises(ValueError, match=f"vocab.json'? .*{message}"):
        checkpoints.token_rows(tmp_path / "vocab.json", other)


def test_vocabularies_of_nothing_in_common_are_refused(tmp_path):
    first = write_wordpiece(tmp_path / "a.txt", ["a"])
    second = write_wordpiece(tmp_path / "b.txt", ["##a"])
    with pytest.raises(ValueError, match="a.txt' and .*b.txt' share no piece"):
        checkpoints.token_rows(first, second)
