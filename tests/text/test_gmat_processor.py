"""Batches for GMAT: the tokens of BERT, their types, and the memory of a question."""

import dataclasses
import json
import pathlib

import numpy as np
import pytest

import etcmodel
from etcmodel import checkpoints
from etcmodel.text import tokenization
from etcmodel.text.gmat_processor import GmatProcessor
from tests import vocabularies
from tests.checkpoints import berts
from tests.models.gmat import small
from tests.reference import cases

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "river", "is", "long", "a", "##s", "."]
CLS, SEP, THE, RIVER, IS, LONG, S, DOT = 2, 3, 4, 5, 6, 7, 9, 10
EXAMPLES = [{"question": "Is the", "documents": ["The rivers.", "Long"]}, "The river is long."]
TOKENIZER = cases.topic_folder("longformer") / "tokenizer"
PAIRS = json.loads((TOKENIZER / "tokens.json").read_text(encoding="utf-8"))["pairs"]


@pytest.fixture
def vocab(tmp_path):
    return pathlib.Path(vocabularies.write(tmp_path, WORDS))


def test_rows_are_as_bert_has_them(vocab):
    batch = GmatProcessor(vocab)(EXAMPLES)
    row = [CLS, IS, THE, SEP, THE, RIVER, S, DOT, LONG, SEP]
    text = [CLS, THE, RIVER, IS, LONG, DOT, SEP]
    assert batch["input_ids"].tolist() == [row, [*text, 0, 0, 0]]
    assert batch["attention_mask"].tolist() == [[1] * 10, [1] * 7 + [0] * 3]
    assert batch["token_type_ids"].tolist() == [[0] * 4 + [1] * 6, [0] * 10]
    assert GmatProcessor(vocab).decode(row) == "is the the rivers . long"


def test_texts_have_the_word_pieces_of_the_reference():
    case = next(x for x in cases.load_cases("tokenization") if x["name"] == "wordpiece_cased")
    path = str(cases.resolve("tokenization", case["init"]["vocab_file"]))
    tokenizer = tokenization.FullTokenizer(path, do_lower_case=False)
    processor = GmatProcessor(tokenizer)
    assert not processor.config.do_lower_case
    entries = cases.load_json("tokenization", case["file"])[:20]
    for entry in (x for x in entries if x["wordpiece_cased_ids"]):
        first, *found, last = processor(entry["text"])["input_ids"][0]
        assert found == entry["wordpiece_cased_ids"], entry["text"]
        assert [first, last] == [tokenizer.vocab["[CLS]"], tokenizer.vocab["[SEP]"]]


def test_pairs_of_byte_level_bpe_have_the_ids_of_the_reference():
    processor = GmatProcessor.from_pretrained(TOKENIZER)
    for pair in PAIRS:
        if pair["a"].strip() and pair["b"].strip():
            batch = processor(question=pair["a"], documents=[pair["b"]])
            assert batch["input_ids"].tolist() == [pair["ids"]]
            assert set(batch) == {"input_ids", "attention_mask"}


def test_the_first_tokens_of_a_question_are_the_memory(vocab):
    processor = GmatProcessor(vocab, question_memory=3)
    batch = processor([EXAMPLES[0], {**EXAMPLES[0], "question": "Is the river long"}])
    assert batch["memory_ids"].tolist() == [[IS, THE, 0], [IS, THE, RIVER]]
    assert batch["memory_mask"].tolist() == [[1, 1, 0], [1, 1, 1]]
    with pytest.raises(ValueError, match=r"`examples\[1\]` has no question"):
        processor(EXAMPLES)
    model = small.model()
    hidden, memory = model(batch)
    other = model({**batch, "memory_ids": batch["memory_ids"] * [[1, 1, 0], [1, 1, 1]]})
    np.testing.assert_array_equal(memory, other[1])
    learned = {name: x for name, x in batch.items() if not name.startswith("memory")}
    assert np.abs(model(learned)[0] - hidden).max() > 1e-3


def test_windows_repeat_the_question(vocab):
    batch = GmatProcessor(vocab, max_length=8, stride=1, question_memory=1)(
        question="Is", documents=["the river is long the river is long"]
    )
    assert len(batch.windows(0)) == 3 and batch.long_shape[1] <= 8
    assert (batch["input_ids"][:, :3] == [CLS, IS, SEP]).all()
    assert batch["memory_ids"].tolist() == [[IS]] * 3


def test_a_lifted_bert_has_it_and_takes_it_along(tmp_path):
    folder = berts.write_folder(tmp_path / "bert", WORDS)
    (folder / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    model = checkpoints.lift_to_gmat(
        folder, num_memory_tokens=2, as_class=etcmodel.GmatForSequenceClassification
    )
    processor = model.processor
    assert isinstance(processor, etcmodel.GmatProcessor)
    assert processor.config.max_length == model.encoder.config.max_length == 6 * 64
    assert processor("The")["input_ids"].tolist() == [[CLS, 1, SEP]]
    of_question = etcmodel.GmatProcessor(processor, question_memory=2).config
    assert of_question == dataclasses.replace(processor.config, question_memory=2)
    batch = processor(["the river", "river"])
    model.save_pretrained(tmp_path / "gmat")
    again = etcmodel.from_pretrained(tmp_path / "gmat")
    assert again.processor.config == processor.config
    np.testing.assert_array_equal(again(again.processor(["the river", "river"])), model(batch))


def test_the_vocabulary_that_was_saved_is_read_whatever_lies_beside_it(vocab):
    processor = GmatProcessor.from_pretrained(TOKENIZER)
    processor.save_pretrained(vocab.parent)
    again = GmatProcessor.from_pretrained(vocab.parent)
    assert again.vocabulary == processor.vocabulary and again.config == processor.config
