"""Texts to the ids that models with an encoder and a decoder read, and back."""

import json
import pathlib
import shutil

import hypothesis
import pytest
import sentencepiece
from hypothesis import strategies

from etcmodel.text import processor_files, vocabulary_files
from etcmodel.text.seq2seq_tokenizer import Seq2SeqTokenizer
from tests.reference import cases
from tests.text import pieces_as_json

FOLDER = cases.topic_folder("longformer") / "tokenizer"
CASES = json.loads((FOLDER / "tokens.json").read_text(encoding="utf-8"))["single"]
VOCAB = str(FOLDER / "vocab.json")


def train_pieces(folder, eos_id=1):
    """The path of a SentencePiece model of words, with special pieces as T5 and PEGASUS have."""
    sentencepiece.SentencePieceTrainer.Train(
        sentence_iterator=iter(["rain fell", "rain fell on stone"]),
        model_prefix=str(folder / "spiece"),
        model_type="word",
        vocab_size=7 if eos_id >= 0 else 6,
        pad_id=0,
        eos_id=eos_id,
        unk_id=2 if eos_id >= 0 else 1,
        bos_id=-1,
        minloglevel=2,
    )
    return str(folder / "spiece.model")


@pytest.fixture(scope="module")
def pieces(tmp_path_factory):
    return train_pieces(tmp_path_factory.mktemp("pieces"))


def test_byte_level_texts_are_hugging_faces_of_the_same_files():
    tokenizer = Seq2SeqTokenizer(VOCAB)
    for case in CASES:
        assert tokenizer.encode(case["text"], 1000) == (case["ids"], 0), case["text"]
        assert tokenizer.decode(case["ids"]) == case["decoded_skip_special"].strip()
    assert (tokenizer.pad_id, tokenizer.eos_id) == (1, 2)
    assert tokenizer.decode([0, tokenizer.vocab_size + 3, 2]) == ""
    with pytest.raises(ValueError, match=r"`ids\[1\]` must be at least 0. Received: -100"):
        tokenizer.decode([0, -100])


def test_what_is_cut_is_counted_and_the_end_stays():
    tokenizer = Seq2SeqTokenizer(VOCAB)
    ids = next(case["ids"] for case in CASES if len(case["ids"]) > 6)
    text = next(case["text"] for case in CASES if case["ids"] == ids)
    assert tokenizer.encode(text, 5) == ([*ids[:4], 2], len(ids) - 5)
    assert tokenizer.encode(text, len(ids)) == (ids, 0)


def test_sentence_pieces_end_with_the_end_token(pieces):
    tokenizer = Seq2SeqTokenizer(spm_model_file=pieces)
    words = {word: tokenizer.vocab[f"▁{word}"] for word in ("rain", "fell", "on", "stone")}
    ids, left_out = tokenizer.encode("rain fell on  stone", 9)
    assert (ids, left_out) == ([*words.values(), 1], 0)
    assert tokenizer.decode([0, *ids, 0, 0]) == "rain fell on stone"
    assert tokenizer.encode("rain fell on stone", 3) == ([words["rain"], words["fell"], 1], 2)
    assert tokenizer.encode("snow", 9)[0] == [2, 1]


def test_pieces_of_pegasus_lie_behind_its_own_tokens(pieces):
    plain, shifted = (Seq2SeqTokenizer(spm_model_file=pieces, id_offset=x) for x in (0, 103))
    ids, _ = plain.encode("rain snow", 9)
    assert shifted.encode("rain snow", 9)[0] == [ids[0] + 103, 105, 1]
    assert shifted.decode([0, 2, 104, ids[0] + 103, 1]) == "rain"
    assert shifted.vocab_size == plain.vocab_size + 103
    assert shifted.decode([shifted.vocab_size]) == ""


def test_an_added_word_is_found_between_words_alone(pieces, tmp_path):
    shutil.copy(pieces, tmp_path / "spiece.model")
    made = Seq2SeqTokenizer(spm_model_file=str(pieces))
    size = made.vocab_size
    entries = {
        "added_tokens_decoder": {
            str(size): {"content": "Qux", "single_word": True},
            str(size + 1): {"content": "Zed"},
        }
    }
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(entries))
    added = Seq2SeqTokenizer(spm_model_file=str(tmp_path / "spiece.model"))
    assert size in added.encode("a Qux, b", None)[0]
    assert size + 1 in added.encode("Zeds", None)[0]
    for text in ("Quxx", "aQux", "Qux_"):
        assert added.encode(text, None) == made.encode(text, None)


def test_half_a_surrogate_pair_is_an_unknown_character(pieces):
    for tokenizer in (Seq2SeqTokenizer(VOCAB), Seq2SeqTokenizer(spm_model_file=pieces)):
        found = tokenizer.encode("rain \ud83d fell", 20)
        assert found == tokenizer.encode("rain \ufffd fell", 20)


def test_what_is_no_vocabulary_of_summaries_is_refused(tmp_path):
    with pytest.raises(ValueError, match="must be byte-level BPE, .* Received: 'vocab.txt'"):
        Seq2SeqTokenizer(str(tmp_path / "vocab.txt"))
    with pytest.raises(ValueError, match="`piece_id_offset` is for sentence pieces .*: 103"):
        Seq2SeqTokenizer(VOCAB, id_offset=103)
    with pytest.raises(ValueError, match="spiece.model' has no end token"):
        Seq2SeqTokenizer(spm_model_file=train_pieces(tmp_path, eos_id=-1))


def test_files_and_digest_are_those_of_the_whole_vocabulary(tmp_path, pieces):
    names = ("vocab.json", "merges.txt", "tokenizer_config.json")
    assert processor_files.vocabulary_files("a/vocab.txt") == {"vocab.txt": "a/vocab.txt"}
    assert processor_files.vocabulary_files("x", pieces) == {"spiece.model": pieces}
    for name in names[:2]:
        (tmp_path / name).write_bytes((FOLDER / name).read_bytes())
    vocab = str(tmp_path / names[0])
    assert processor_files.vocabulary_files(vocab) == {x: str(tmp_path / x) for x in names[:2]}
    digest = Seq2SeqTokenizer(vocab).source_sha256()
    assert vocabulary_files.sha256(vocab) == digest
    (tmp_path / names[2]).write_text('{"add_prefix_space": true}')
    assert list(processor_files.vocabulary_files(vocab)) == list(names)
    merges = tmp_path / names[1]
    merges.write_bytes(merges.read_bytes() + b"\n")
    assert vocabulary_files.sha256(vocab) != digest


WORDS = "the rain fell on stone; nobody (1,000 men) crossed it. "
LETTERS = "abe onR1,.;(é☃ﬁ½\u3000\u00a0\t\n  "
SPECIAL = ["</s>", "<pad>", "<unk>", "<extra_id_0>", "<extra_id_2>", "<mask_1>", "<unk_3>"]


@pytest.fixture(scope="module", params=[{"extra_ids": 3}, {"id_offset": 5}], ids=["t5", "pegasus"])
def twins(request, tmp_path_factory):
    """The tokenizers of a model with T5's normalization, and of its `tokenizer.json`."""
    folder = tmp_path_factory.mktemp("twins")
    sentencepiece.SentencePieceTrainer.Train(
        sentence_iterator=iter([WORDS * 3, *WORDS.split()]),
        model_prefix=str(folder / "spiece"),
        vocab_size=40,
        pad_id=0,
        eos_id=1,
        unk_id=2,
        bos_id=-1,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    spm_file = str(folder / "spiece.model")
    path = pieces_as_json.write(spm_file, folder / "tokenizer.json", **request.param)
    return Seq2SeqTokenizer(spm_model_file=spm_file, **request.param), Seq2SeqTokenizer(path)


def test_a_tokenizer_json_of_pieces_has_the_tokens_of_the_model_that_it_is_made_of(twins):
    one, other = twins
    for name in ("pad_id", "eos_id", "vocab_size", "num_around"):
        assert getattr(one, name) == getattr(other, name)
    ids = range(one.vocab_size + 2)
    assert [one.token(x) for x in ids] == [other.token(x) for x in ids]


@hypothesis.settings(max_examples=100)
@hypothesis.given(
    strategies.lists(strategies.sampled_from([*LETTERS, *WORDS.split(), *SPECIAL])).map("".join),
    strategies.lists(strategies.integers(0, 60)),
)
def test_a_tokenizer_json_of_pieces_reads_and_writes_what_the_model_does(twins, text, ids):
    one, other = twins
    assert one.encode(text, None) == other.encode(text, None)
    assert one.encode(text, 3) == other.encode(text, 3)
    assert one.decode(ids) == other.decode(ids)


def test_a_tokenizer_json_without_an_end_gets_one_and_one_without_its_token_is_refused(
    twins, tmp_path
):
    _, other = twins
    content = json.loads(pathlib.Path(other.source_file).read_text(encoding="utf-8"))
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps({**content, "post_processor": None}))
    assert Seq2SeqTokenizer(str(path)).encode("rain", None) == other.encode("rain", None)
    path.write_text(json.dumps(content).replace("</s>", "</t>"))
    with pytest.raises(ValueError, match="tokenizer.json' lacks the tokens </s>"):
        Seq2SeqTokenizer(str(path))
    with pytest.raises(ValueError, match="`piece_id_offset` is for sentence pieces"):
        Seq2SeqTokenizer(other.source_file, extra_ids=100)
