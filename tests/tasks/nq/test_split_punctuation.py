"""Pages whose words are split at punctuation before SentencePiece: tokens know their words."""

import pathlib

import pytest

from etcmodel.tasks.nq import examples, features
from etcmodel.tasks.nq.config import NqInputConfig
from etcmodel.text import tokenization
from tests.tasks.nq.raw_examples import annotation, raw_example

REFERENCE = pathlib.Path(__file__).resolve().parents[2] / "reference" / "small"
MODEL = str(REFERENCE / "vocab" / "gpt2_sentencepiece.model")
# Words of Natural Questions hold marks where its own tokenizer leaves them: within.
TEXT = "<P> O'Neil 's U.S.A. ( 1,990 ) “near” St. . </P>"
QUESTION = "where 's the U.S. ?"


@pytest.fixture(scope="module")
def converted():
    """The tokenizer, and the page's one window."""
    tokenizer = tokenization.FullTokenizer(None, spm_model_file=MODEL, split_punctuation=True)
    config = NqInputConfig.for_tokenizer(
        tokenizer, long_seq_length=64, global_seq_length=24, question_len=16, stride=32
    )
    raw = raw_example(
        document_text=TEXT,
        question_text=QUESTION,
        long_answer_candidates=[{"start_token": 0, "end_token": 11, "top_level": True}],
        annotations=[annotation((0, 11), ((3, 6),))],
    )
    word_ids = features.make_word_tokenizer(tokenizer)
    (window,) = features.make_windows(examples.parse_example(raw), config, word_ids).windows
    return tokenizer, window


def test_each_word_is_split_and_each_token_knows_its_word(converted):
    tokenizer, window = converted
    pairs = list(zip(window["token_ids"], window["token_pos"], strict=True))
    for number, word in enumerate(TEXT.split()[1:-1], start=1):
        split = tokenization.BasicTokenizer(do_lower_case=False).tokenize(word)
        tokens = [piece for part in split for piece in tokenizer.tokenize(part)]
        assert "".join(tokens).replace("▁", "") == word
        own = [token_id for token_id, place in pairs if place == number]
        assert own == tokenizer.convert_tokens_to_ids(tokens)
    assert tokenizer.vocab["."] not in window["token_ids"]
    assert window["token_ids"].count(tokenizer.vocab["▁."]) == (TEXT + QUESTION).count(".")


def test_answers_reach_from_the_first_token_of_a_word_to_the_last(converted):
    tokenizer, window = converted
    tokens = tokenizer.convert_ids_to_tokens(window["token_ids"])
    (start,), (end,) = window["sa_start"], window["sa_end"]
    assert tokens[start : end + 1] == [
        *("▁U", "▁.", "▁S", "▁.", "▁A", "▁.", "▁(", "▁1", "▁,", "▁9", "90")
    ]


def test_the_question_is_split_too(converted):
    tokenizer, window = converted
    ids = [i for i in window["question_ids"] if i > 0]
    assert tokenizer.convert_ids_to_tokens(ids) == tokenizer.tokenize("where ' s the U . S . ?")
