"""`EtcProcessor` over byte-level BPE: the tokens of the whole text, with their characters."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etcmodel.serving.text import tokenizers
from etcmodel.text.byte_bpe import ByteLevelTokenizer
from etcmodel.text.processor import EtcProcessor
from tests.reference import cases

FOLDER = cases.topic_folder("longformer") / "tokenizer"
CASES = json.loads((FOLDER / "tokens.json").read_text(encoding="utf-8"))
TEXT = "Emma is a novel. It was written by Jane Austen! Is it long? Yes, 500 pages."


@pytest.fixture(scope="module")
def tokenizer():
    return ByteLevelTokenizer.from_pretrained(FOLDER)


@pytest.fixture(scope="module")
def processor():
    return EtcProcessor(str(FOLDER / "vocab.json"))


def test_one_sentence_has_the_ids_and_characters_of_the_reference(processor):
    for case in CASES["single"]:
        if not case["text"].strip():
            continue  # White space alone is no sentence.
        source = processor.tokenize({"documents": [{"sentences": [case["text"]]}]})
        assert source.ids.tolist() == case["ids_bare"], case["text"]
        offsets = case["offsets"][1:-1]
        assert np.stack([source.starts, source.ends], 1).tolist() == offsets, case["text"]


def test_sentences_have_the_tokens_of_the_text_that_they_stand_in(processor, tokenizer):
    batch = processor(TEXT)
    (encoding,) = batch.encodings
    whole = tokenizer.encode(TEXT)
    assert batch["token_ids"][0].tolist() == whole.ids
    assert encoding.offsets.tolist()[1:-1] == list(map(list, whole.offsets[1:-1]))
    assert len(encoding.global_ids) == 5 and set(encoding.global_ids) == {tokenizer.vocab["<s>"]}
    assert encoding.links.tolist()[1] == 1 and encoding.links.tolist()[-2] == 4
    assert processor.decode(batch["token_ids"][0]) == TEXT


def test_a_question_and_documents(processor, tokenizer):
    batch = processor(question="Who wrote Emma?", documents=["Emma is a novel.", "Jane wrote it."])
    parts = ["Who wrote Emma?", "Emma is a novel.", "Jane wrote it."]
    question, first, second = (
        tokenizer.convert_tokens_to_ids(tokenizer.tokenize(x)) for x in parts
    )
    begin, end = tokenizer.vocab["<s>"], tokenizer.vocab["</s>"]
    assert batch["token_ids"][0].tolist() == [begin, *question, end, *first, *second, end]


@settings(max_examples=60)
@given(st.text("aé 水😀\n\t'.,s\u0301", max_size=12))
def test_characters_in_their_order_are_the_text(text):
    processor = EtcProcessor(ByteLevelTokenizer.from_pretrained(FOLDER))
    source = processor.tokenize({"documents": [{"sentences": [text]}]})
    assert (np.diff(source.starts) >= 0).all() and (source.starts <= source.ends).all()
    told = {i for a, b in zip(source.starts, source.ends, strict=True) for i in range(a, b)}
    stripped = [i for i, char in enumerate(text) if not char.isspace()]
    assert set(stripped) <= told


@pytest.mark.parametrize("settings", [{}, {"add_prefix_space": True}])
def test_saves_and_reads_it(tmp_path, settings):
    tokenizer = ByteLevelTokenizer.from_pretrained(FOLDER, **settings)
    processor = EtcProcessor(tokenizer, max_long_len=20, stride=4)
    processor.save_pretrained(tmp_path)
    loaded = EtcProcessor.from_pretrained(tmp_path)
    assert loaded.config == processor.config
    expected, found = processor(TEXT), loaded(TEXT)
    assert len(expected.encodings) > 1
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value)


def test_reads_a_whole_tokenizer(tmp_path, tokenizer, processor):
    path = tmp_path / "tokenizer.json"
    path.write_text(tokenizer._tokenizer.to_str(), encoding="utf-8")
    loaded = EtcProcessor.from_pretrained(tmp_path)
    np.testing.assert_array_equal(loaded(TEXT)["token_ids"], processor(TEXT)["token_ids"])
    loaded.save_pretrained(tmp_path / "saved")
    assert {x.name for x in (tmp_path / "saved").iterdir()} == {
        "tokenizer.json",
        "processor_config.json",
    }


def test_an_export_says_that_there_is_none_in_a_graph(tokenizer):
    with pytest.raises(ValueError, match="tensorflow-text has none for ByteLevelTokenizer"):
        tokenizers.make_tokenizer(tokenizer)
