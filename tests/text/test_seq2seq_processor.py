"""Batches for LongT5 and PEGASUS-X: Hugging Face's tokens, targets, and the way back."""

import json
import os
import pathlib
import shutil

import numpy as np
import pytest

import etcmodel
from etcmodel.checkpoints import processors
from etcmodel.text.seq2seq_processor import Seq2SeqProcessor
from tests.models.longt5 import models as longt5s
from tests.models.pegasus_x import models as pegasus_xs
from tests.text import pieces_as_json

# A SentencePiece model, and what version 4.49 of Hugging Face's library makes of texts with it.
FOLDER = pathlib.Path(__file__).parents[1] / "fixtures" / "sentence_pieces"
CASES = json.loads((FOLDER / "tokens.json").read_text(encoding="utf-8"))
SETTINGS = {"t5": {"extra_ids": 100}, "pegasus": {"id_offset": 103}}
MODELS = {"t5": (longt5s, 90 + 100), "pegasus": (pegasus_xs, 90 + 103)}
TEXTS = ["Rain fell on the stone bridge.", "river"]
VOCAB = FOLDER / "spiece.model"


@pytest.mark.parametrize("kind", SETTINGS)
def test_texts_have_hugging_faces_tokens_and_come_back_as_there(kind):
    processor = Seq2SeqProcessor(VOCAB, **SETTINGS[kind])
    for case in CASES[kind]:
        batch = processor(case["text"])
        assert batch["input_ids"].tolist() == [case["ids"]], case["text"]
        assert batch["attention_mask"].tolist() == [[1] * len(case["ids"])]
        # There unknown pieces and special tokens leave other white space behind.
        assert processor.decode(case["ids"]).split() == case["decoded"].split(), case["text"]


@pytest.mark.parametrize("kind", SETTINGS)
def test_a_folder_with_a_tokenizer_json_alone_has_a_processor(kind, tmp_path):
    """As Hugging Face's library, from version 5 on, writes it."""
    models, vocab_size = MODELS[kind]
    models.model(vocab_size=vocab_size).save_pretrained(tmp_path / "one")
    (tmp_path / "one" / "tokenizer_config.json").write_text('{"extra_ids": 7, "offset": 7}')
    pieces_as_json.write(VOCAB, tmp_path / "one" / "tokenizer.json", **SETTINGS[kind])
    processor = etcmodel.from_pretrained(tmp_path / "one").processor
    twin = Seq2SeqProcessor(VOCAB, **SETTINGS[kind])
    for case in CASES[kind]:
        # PEGASUS's is split at them first, where this model, which normalizes nothing, keeps them.
        if kind == "t5" or not {"\t", "\n"} & {*case["text"]}:
            assert processor(case["text"])["input_ids"].tolist() == [case["ids"]], case["text"]
        assert processor.decode(case["ids"]) == twin.decode(case["ids"])
    # A SentencePiece model that was there before is not taken for it.
    (tmp_path / "two").mkdir()
    shutil.copyfile(VOCAB, tmp_path / "two" / "spiece.model")
    processor.save_pretrained(tmp_path / "two")
    again = Seq2SeqProcessor.from_pretrained(tmp_path / "two")
    assert again.tokenizer.source_file.endswith("tokenizer.json")
    assert again(TEXTS)["input_ids"].tolist() == processor(TEXTS)["input_ids"].tolist()


@pytest.mark.parametrize(("entries", "offset"), [({"offset": 103}, 103), ({}, 0)])
def test_a_bigbird_pegasus_has_the_offset_that_its_folder_says(tmp_path, entries, offset):
    shutil.copyfile(VOCAB, tmp_path / "spiece.model")
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(entries))
    config = etcmodel.BigBirdPegasusConfig(vocab_size=5000)
    processor = processors.read_processor(str(tmp_path), config)
    assert processor.config.id_offset == offset
    for case in CASES["pegasus"] if offset else ():
        assert processor(case["text"])["input_ids"].tolist() == [case["ids"]], case["text"]


def test_targets_become_labels_and_what_is_cut_is_counted(monkeypatch):
    processor = Seq2SeqProcessor(VOCAB, max_length=6, max_target_length=3, pad_to_multiple_of=4)
    batch = processor(TEXTS, targets=["river fell", "rain"])
    first, second = (case["ids"] for case in (CASES["t5"][0], {"ids": [15, 1]}))
    rows = [[*first[:5], 1, 0, 0], [*second, *[0] * 6]]
    assert batch["input_ids"].tolist() == rows
    assert batch["attention_mask"].sum(axis=1).tolist() == [6, 2]
    assert batch["labels"].tolist() == [[15, 10, 1, -100], [7, 1, -100, -100]]
    assert (batch.num_cut, batch.num_target_cut) == ((5, 0), (0, 0))
    assert all(x.dtype == np.int32 for x in batch.values())
    assert processor(TEXTS, targets=["river fell long", "rain"]).num_target_cut == (1, 0)


@pytest.mark.slow
@pytest.mark.parametrize("kind", SETTINGS)
def test_a_folder_of_hugging_face_makes_it_and_it_is_saved_with_the_model(kind, tmp_path):
    models, vocab_size = MODELS[kind]
    models.model(vocab_size=vocab_size).save_pretrained(tmp_path / "one")
    shutil.copyfile(VOCAB, tmp_path / "one" / "spiece.model")
    (tmp_path / "one" / "special_tokens_map.json").write_text('{"eos_token": "</s>"}')
    model = etcmodel.from_pretrained(tmp_path / "one")
    assert isinstance(model.processor, etcmodel.Seq2SeqProcessor)
    for case in CASES[kind][:5]:
        assert model.processor(case["text"])["input_ids"].tolist() == [case["ids"]]
    batch = model.processor(TEXTS, targets=["long", "a"])
    loss = model(batch)["loss"].numpy()
    found = model.generate(batch, max_length=5)["sequences"]
    model.save_pretrained(tmp_path / "two")
    assert (tmp_path / "two" / "spiece.model").read_bytes() == VOCAB.read_bytes()
    assert {"special_tokens_map.json", "processor_config.json"} <= {*os.listdir(tmp_path / "two")}
    again = etcmodel.from_pretrained(tmp_path / "two")
    assert again.processor.config == model.processor.config
    assert again(again.processor(TEXTS, targets=["long", "a"]))["loss"].numpy() == loss
    texts = [again.processor.decode(row) for row in found.numpy()]
    assert [model.processor.decode(row) for row in found.numpy()] == texts


def test_a_vocabulary_beyond_the_models_is_kept_and_says_so(tmp_path):
    longt5s.model().save_pretrained(tmp_path / "one")
    shutil.copyfile(VOCAB, tmp_path / "one" / "spiece.model")
    model = etcmodel.from_pretrained(tmp_path / "one")
    with pytest.raises(ValueError, match=r"no processor: .* are 190 tokens, more than the model's"):
        model.processor(TEXTS)
    (tmp_path / "one" / "tokenizer_config.json").write_text('{"extra_ids": 0}')
    model = etcmodel.from_pretrained(tmp_path / "one")
    with pytest.raises(ValueError, match="and 0 tokens of its own .* 90 tokens"):
        model.processor(TEXTS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([],), "`texts` must be a text or a list of texts"),
        ((["a", 3],), r"`texts\[1\]` must be a str. Received: 3"),
        ((TEXTS, ["a"]), "There are 2 `texts` and 1 `targets`"),
        (({"text": "a"},), "`texts` must be a text or a list"),
    ],
)
def test_what_are_no_texts_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Seq2SeqProcessor(VOCAB)(*arguments)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"max_len": 3}', "processor_config.json: unknown settings of a processor: max_len"),
        ('{"max_length": 0}', "processor_config.json: `max_length` must be an int of at least 1"),
        (
            '{"pad_to_multiple_of": 65537}',
            "`pad_to_multiple_of` must be at most 65536. Received: 65537",
        ),
        (
            '{"extra_ids": 9223372036854775808}',
            "`extra_ids` must be at most 1048576. Received: 9223",
        ),
        ('{"id_offset": null}', "`id_offset` must be an int of at least 0. Received: None"),
    ],
)
def test_damaged_settings_are_refused(tmp_path, content, message):
    shutil.copyfile(VOCAB, tmp_path / "spiece.model")
    (tmp_path / "processor_config.json").write_text(content)
    with pytest.raises(ValueError, match=message):
        Seq2SeqProcessor.from_pretrained(tmp_path)


def test_a_folder_without_a_vocabulary_is_refused(tmp_path):
    with pytest.raises(ValueError, match="holds none of spiece.model, tokenizer.json"):
        Seq2SeqProcessor.from_pretrained(tmp_path)
