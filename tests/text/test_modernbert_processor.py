"""ModernBERT's `tokenizer.json` against what Hugging Face's tokenizers gave; the processor."""

import json
import shutil

import numpy as np
import pytest

import etcmodel
from etcmodel.text.byte_bpe import ByteLevelTokenizer
from tests.models import etcs
from tests.reference import cases

FOLDER = cases.topic_folder("modernbert") / "tokenizer"
CASES = json.loads((FOLDER / "tokens.json").read_text(encoding="utf-8"))
TEXT = "Emma  is a novel.\nIt was written by [MASK] Austen!"


@pytest.fixture(scope="module")
def tokenizer():
    return ByteLevelTokenizer.from_pretrained(FOLDER)


@pytest.fixture(scope="module")
def processor():
    return etcmodel.ModernBertProcessor(str(FOLDER / "tokenizer.json"))


def test_special_ids(tokenizer):
    found = {name: tokenizer.vocab[name] for name in CASES["special_ids"]}
    assert found == CASES["special_ids"]


def test_batches(tokenizer, processor):
    for case in CASES["batches"]:
        made = processor(case["texts"])
        assert made["input_ids"].tolist() == case["ids"]
        assert made["attention_mask"].tolist() == case["attention_mask"]
        eights = tokenizer(case["texts"], multiple_of=8)
        assert eights["input_ids"].tolist() == case["multiple_of_8"]


def test_a_question_with_a_document_has_the_tokens_of_the_pair(processor, tokenizer):
    for pair in CASES["pairs"]:
        batch = processor(question=pair["a"], documents=[pair["b"]])
        assert batch["input_ids"][0].tolist() == pair["ids"]
    batch = processor(TEXT)
    assert batch["input_ids"][0].tolist() == tokenizer.encode(TEXT).ids
    assert processor.decode(batch["input_ids"][0]) == TEXT.replace(" [MASK]", "[MASK]")


def test_characters_of_pieces_begin_behind_the_space(processor):
    (encoding,) = processor(TEXT).encodings
    pieces = [TEXT[start:end] for start, end in encoding.offsets.tolist()[1:-1]]
    assert all(piece == piece.lstrip() or not piece.strip() for piece in pieces), pieces
    kept = [piece for piece in pieces if piece.strip()]
    assert "".join(kept) == "".join(TEXT.split())


def test_a_folder_keeps_the_file(processor, tmp_path):
    processor.save_pretrained(tmp_path)
    assert (tmp_path / "tokenizer.json").read_bytes() == (FOLDER / "tokenizer.json").read_bytes()
    again = etcmodel.ModernBertProcessor.from_pretrained(tmp_path)
    np.testing.assert_array_equal(again(TEXT)["input_ids"], processor(TEXT)["input_ids"])


@pytest.mark.parametrize("limit", [512, 10**30])
def test_a_models_folder_has_its_processor(limit, tmp_path):
    shutil.copy(FOLDER / "tokenizer.json", tmp_path)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"model_max_length": limit}))
    config = etcmodel.ModernBertConfig(
        vocab_size=1439, **etcs.sizes(num_hidden_layers=2, intermediate_size=8), pad_token_id=1429
    )
    etcmodel.ModernBertForMaskedLM(config).save_pretrained(tmp_path)
    model = etcmodel.from_pretrained(tmp_path)
    assert type(model.processor) is etcmodel.ModernBertProcessor
    assert model.processor.config.max_length == min(limit, config.max_position_embeddings)
    assert model(["Emma is a novel."]).shape[2] == 1439


def test_the_explanation_says_which_layers_see_a_pair(processor):
    config = etcmodel.ModernBertConfig(num_hidden_layers=3, local_attention=4)
    explained = processor.explain(processor(TEXT), config=config)
    assert explained.why(3, 5).endswith("2 places apart, within the window of 2 on each side.")
    assert explained.why(3, 6).endswith("only in the layers of full attention.")
    config = etcmodel.ModernBertConfig(
        num_hidden_layers=1, layer_types=["sliding_attention"], local_attention=4
    )
    explained = processor.explain(processor(TEXT), config=config)
    assert "does not attend" in explained.why(3, 6)
