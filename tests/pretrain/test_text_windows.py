"""Windows of text alone: nothing is lost, and words are told."""

import json

import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from etcmodel.pretrain import config, features, masking, preprocess
from etcmodel.text import vocabulary_files
from etcmodel.text.byte_bpe import ByteLevelTokenizer
from tests.models.longformer import small
from tests.pretrain import windows
from tests.reference import cases

BYTES = cases.topic_folder("longformer") / "tokenizer" / "vocab.json"
CLS, SEP = (windows.VOCAB.index(token) for token in ("[CLS]", "[SEP]"))


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return windows.make_tokenizer(tmp_path_factory.mktemp("vocab"))


@pytest.fixture(scope="module")
def of_bytes():
    return ByteLevelTokenizer.of_file(str(BYTES))


def make(texts, tokenizer, length=8):
    documents = [{"id": str(n), "text": text} for n, text in enumerate(texts)]
    config = windows.input_config(windows="text", long_seq_length=length)
    return features.make_text_windows(documents, config, tokenizer)


def tokens_of(window):
    return [windows.VOCAB[index] for index in window["long_token_ids"]]


def test_documents_follow_each_other_in_full_windows(tokenizer):
    found = make(["The rose is red.", " \n", "Tulips\ngrow."], tokenizer)
    assert [tokens_of(window) for window in found.features] == [
        ["[CLS]", "the", "rose", "is", "red", ".", "[SEP]", "[SEP]"],
        ["[CLS]", "tulip", "##s", "grow", ".", "[SEP]", "[PAD]", "[PAD]"],
    ]
    assert found.features[1]["long_word_starts"] == [1, 1, 0, 1, 1, 1, 0, 0]
    assert found.features[1]["sentence_ids"] == [0] * 6 + [-1] * 2
    assert found.counts == {"documents": 3, "documents_too_short": 1, "long_tokens": 14}


def test_the_rest_of_a_word_that_is_cut_is_a_word(tokenizer):
    first, second = make(["tulips"], tokenizer, length=3).features
    assert tokens_of(first)[1] == "tulip" and tokens_of(second)[1] == "##s"
    assert second["long_word_starts"] == [1, 1, 1]


TEXTS = st.lists(st.lists(st.sampled_from(["The rose.", "tulips", "growing", ""]), max_size=6))


@given(TEXTS, st.integers(3, 9))
@settings(max_examples=40)
def test_no_token_is_lost(tokenizer, parts, length):
    texts = [" ".join(part) for part in parts]
    found = make(texts, tokenizer, length).features
    together = [x for text in texts if (x := tokenizer.tokenize(text))]
    expected = [token for n, part in enumerate(together) for token in ["[SEP]"] * (n > 0) + part]
    read = []
    for number, window in enumerate(found):
        size = window["sentence_ids"].count(0)
        tokens = tokens_of(window)[:size]
        assert (tokens[0], tokens[-1]) == ("[CLS]", "[SEP]")
        assert size == length or number == len(found) - 1
        assert all(len(values) == length for values in window.values())
        read += tokens[1:-1]
    assert read == expected


def test_words_of_bytes_are_what_the_pattern_cuts(of_bytes):
    text = "The miller's wife, it's 1815!"
    ids, starts = features.tokenize(text, of_bytes)
    tokens = of_bytes.convert_ids_to_tokens(ids)
    found = []
    for token, start in zip(tokens, starts, strict=True):
        found[len(found) - 1 + start :] = [token if start else found[-1] + token]
    assert found == ["The", "Ġmiller", "'s", "Ġwife", ",", "Ġit", "'s", "Ġ1815", "!"]
    assert ids == of_bytes.convert_tokens_to_ids(of_bytes.tokenize(text))
    assert features.end_token_ids(of_bytes) == (0, 2)
    assert features.tokenize("", of_bytes) == ([], [])


def test_the_ends_of_a_window_and_padding_are_never_masked(of_bytes):
    text = " ".join(windows.SENTENCES)
    window = make([text], of_bytes, length=200).features[0]
    config = windows.masking_config(of_bytes, long_seq_length=200, cpc_share=0.0, mlm_share=1.0)
    masked = masking.mask_window(windows.tensors(window), tf.constant([1, 2]), config)
    ids, before = masked["long_token_ids"].numpy(), window["long_token_ids"]
    size = window["sentence_ids"].count(0)
    assert size < 200 and masked["mlm_mask"].numpy().sum() == size - 2
    assert (ids[0], ids[size - 1]) == (0, 2) and ids[size:].tolist() == before[size:]
    assert (ids[1 : size - 1] == 1999).mean() > 0.5  # Masked.


def factory(vocab_file, **fields):
    return features.ConverterFactory(
        vocab_file=str(vocab_file), spm_model_file="", do_lower_case=True, fields=fields
    )


def test_the_settings_of_records_tell_the_kind_of_vocabulary(tmp_path):
    settings = factory(BYTES, windows="text").settings()
    assert settings["tokenizer"] == "byte_level_bpe" and settings["windows"] == "text"
    assert settings["vocab_size"] == 2000 and settings["do_lower_case"] is False
    assert settings["vocab_sha256"] == vocabulary_files.sha256(str(BYTES))
    settings = factory(windows.write_vocab(tmp_path)).settings()
    assert (settings["tokenizer"], settings["do_lower_case"]) == ("wordpiece", True)


def test_what_cannot_be_is_refused(tmp_path):
    vocab = tmp_path / "vocab.txt"
    vocab.write_text("[PAD]\n[UNK]\n[CLS]\na\n")
    with pytest.raises(ValueError, match=r"none of the tokens \[SEP\], </s>, <sep>, which stand"):
        factory(vocab, windows="text").settings()
    with pytest.raises(ValueError, match="`long_seq_length` must be at least 3"):
        factory(BYTES, windows="text", long_seq_length=2).settings()
    with pytest.raises(ValueError, match="`split_punctuation` is for SentencePiece"):
        vocabulary_files.open_tokenizer(str(BYTES), split_punctuation=True)
    with pytest.raises(ValueError, match="--cpc_weight=0.2: contrastive predictive coding"):
        config.PretrainConfig(encoder_config=small.config(), windows="text")
    with pytest.raises(ValueError, match="type 'longformer' needs records made with --windows=t"):
        config.PretrainConfig(encoder_config=small.config(), cpc_weight=0.0)
    with pytest.raises(ValueError, match="type 'etc' needs records made with --windows=sent"):
        config.PretrainConfig(encoder_config=windows.etc_config(), windows="text")


def test_windows_of_sentences_for_a_model_without_are_refused_before_the_work(tmp_path):
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n")
    given = {"input_pattern": "x", "output_prefix": "y", "vocab_file": f"{tmp_path}/vocab.txt"}
    given["init_checkpoint"] = str(tmp_path)
    for model_type, is_refused in {"longformer": True, "gmat": True, "etc": False}.items():
        (tmp_path / "config.json").write_text(json.dumps({"model_type": model_type}))
        if is_refused:
            message = f"type '{model_type}' has no global tokens of sentences. Give --windows=text."
            with pytest.raises(ValueError, match=message):
                preprocess.PreprocessOptions(**given)
        else:
            preprocess.PreprocessOptions(**given)
        assert preprocess.PreprocessOptions(**given, windows="text").windows == "text"
