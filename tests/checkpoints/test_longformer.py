"""Longformer's folders: read from Hugging Face's, written as theirs, with all that may be there."""

import json

import numpy as np
import pytest
import tensorflow as tf
from safetensors.numpy import load_file

import etcmodel
from etcmodel import checkpoints
from etcmodel.models import longformer
from tests.checkpoints import longformers
from tests.models.longformer import small
from tests.reference import cases

IDS = small.ids(9)


@pytest.fixture(scope="module")
def model():
    return longformers.masked_lm()


@pytest.fixture
def folder(tmp_path, model):
    return longformers.write(tmp_path / "theirs", model)


def config_in(folder):
    return json.loads((folder / "config.json").read_text())


def assert_same_weights(one, other):
    assert len(one.weights) == len(other.weights)
    for x, y in zip(one.weights, other.weights, strict=True):
        np.testing.assert_array_equal(x, y)


def test_an_encoder_of_a_models_folder_and_a_head_of_an_encoders(folder, tmp_path, model):
    encoder = etcmodel.from_pretrained(folder, as_class=longformer.LongformerModel)
    assert encoder.pooler is None  # The head has none.
    np.testing.assert_array_equal(encoder(IDS)[0], model.encoder(IDS)[0])
    etcmodel.save_pretrained(encoder, tmp_path / "encoder")
    names = load_file(tmp_path / "encoder" / "model.safetensors")
    assert "embeddings.word_embeddings.weight" in names
    kind = longformer.LongformerForTokenClassification
    tagger = etcmodel.from_pretrained(tmp_path / "encoder", as_class=kind, num_labels=3)
    assert tagger(IDS).shape == [1, 9, 3]
    np.testing.assert_array_equal(tagger.encoder(IDS)[0], encoder(IDS)[0])


def test_copies_of_tied_weights_are_no_weights(tmp_path, model):
    weights = longformers.tensors(model)
    table = weights["longformer.embeddings.word_embeddings.weight"]
    extra = {
        "lm_head.decoder.weight": table.copy(),
        "lm_head.decoder.bias": weights["lm_head.bias"].copy(),
        "longformer.embeddings.position_ids": np.arange(40)[np.newaxis],
    }
    folder = longformers.write(tmp_path / "old", model, {**weights, **extra})
    read = etcmodel.from_pretrained(folder)
    assert_same_weights(read, model)
    report = checkpoints.initialize(read, str(folder))
    assert not report.unused
    assert len(report.notes) == len(extra)
    etcmodel.save_pretrained(read, tmp_path / "new")
    assert set(load_file(tmp_path / "new" / "model.safetensors")) == set(weights)


LABELLED = {
    "sequence": longformer.LongformerForSequenceClassification,
    "token": longformer.LongformerForTokenClassification,
}


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("kind", LABELLED)
def test_the_names_of_labels_go_along(tmp_path, kind):
    names = {"0": "neg", "1": "neutral", "2": "pos"}
    theirs = LABELLED[kind](small.config(), num_labels=3)
    label2id = {name: int(number) for number, name in names.items()}
    folder = longformers.write(tmp_path / "a", theirs, id2label=names, label2id=label2id)
    model = etcmodel.load_pretrained(folder)
    assert tuple(model.label_names) == ("neg", "neutral", "pos")
    model.save_pretrained(tmp_path / "b")
    etcmodel.load_pretrained(tmp_path / "b").save_pretrained(tmp_path / "c")
    for name in ("b", "c"):
        written = config_in(tmp_path / name)
        assert (written["id2label"], written["label2id"]) == (names, label2id)
    other = type(model).from_pretrained(folder, label_names=["a", "b", "c"])
    other.label_names = [*other.labels[:2], "d"]  # The earlier name.
    assert other.labels == other.label_names == ("a", "b", "d")
    again = type(model).from_config(model.get_config())
    assert again.settings() == model.settings()
    assert again.settings()["labels"] == ["neg", "neutral", "pos"]


def test_labels_without_names_have_hugging_faces(tmp_path):
    theirs = LABELLED["sequence"](small.config(), num_labels=3)
    for number, id2label in enumerate(
        ({"0": "LABEL_0", "1": "LABEL_1", "2": "LABEL_2"}, {"0": "a", "1": "b", "7": "c"})
    ):
        folder = longformers.write(tmp_path / f"a{number}", theirs, id2label=id2label)
        model = etcmodel.load_pretrained(folder)
        assert model.num_labels == 3 and "labels" not in model.settings()
        model.save_pretrained(tmp_path / f"b{number}")
        written = config_in(tmp_path / f"b{number}")
        assert written["id2label"] == {"0": "LABEL_0", "1": "LABEL_1", "2": "LABEL_2"}
    with pytest.raises(ValueError, match=r"as many as `num_labels`, 3. Received: \['a', 'b'\]"):
        LABELLED["sequence"](small.config(), num_labels=3, label_names=["a", "b"])


def test_the_names_of_the_authors_tarballs_are_refused(tmp_path, model):
    weights = longformers.tensors(model)
    weights = {name.replace("longformer.", "roberta."): x for name, x in weights.items()}
    folder = longformers.write(tmp_path / "authors", model, weights)
    with pytest.raises(ValueError, match="lacks weights of .*word_embeddings.weight"):
        etcmodel.from_pretrained(folder)


def with_tokenizer(folder):
    for name in ("vocab.json", "merges.txt"):
        content = (cases.topic_folder("longformer") / "tokenizer" / name).read_bytes()
        (folder / name).write_bytes(content)
    return folder


def test_a_processor_is_made_of_the_tokenizer_beside_it_and_goes_along(tmp_path):
    model = longformers.masked_lm(vocab_size=2000)
    folder = with_tokenizer(longformers.write(tmp_path / "theirs", model))
    model = etcmodel.from_pretrained(folder)
    assert isinstance(model.processor, etcmodel.LongformerProcessor)
    batch = model.processor(["Emma was good.", "She desired nothing better herself."])
    assert model(batch).shape == [2, batch["input_ids"].shape[1], 2000]
    limit = model.encoder.config.max_position_embeddings - 2  # Those of ids begin at 2.
    long = model.processor("Emma was good. " * limit)
    assert long["input_ids"].shape == (1, limit)
    assert model(long).shape[1] == limit
    model.save_pretrained(tmp_path / "ours")
    again = etcmodel.from_pretrained(tmp_path / "ours").processor
    assert again.config == model.processor.config
    np.testing.assert_array_equal(
        again(["Emma"])["input_ids"], model.processor(["Emma"])["input_ids"]
    )


def test_of_such_a_processor_each_head_has_its_own_global_tokens(tmp_path):
    """A batch does not say it: what is global is as the head's class has it."""
    folder = with_tokenizer(longformers.write(tmp_path, longformers.masked_lm(vocab_size=2000)))
    fields = {"question": "Who?", "documents": ["Emma was good."]}
    for head in (etcmodel.LongformerForQuestionAnswering, etcmodel.LongformerForMaskedLM):
        model = head.from_pretrained(folder)
        batch = dict(model.processor(**fields))
        number = int(np.argmax(batch["input_ids"][0] == 2))  # All before the first separator.
        number *= head is etcmodel.LongformerForQuestionAnswering
        mask = (np.arange(batch["input_ids"].shape[1]) < number)[np.newaxis].astype(np.int32)
        found, wanted = model(batch), model({**batch, "global_attention_mask": mask})
        for one, other in zip(tf.nest.flatten(found), tf.nest.flatten(wanted), strict=True):
            np.testing.assert_allclose(one, other, atol=1e-5)


def test_a_processor_goes_along_with_its_settings(tmp_path):
    model = etcmodel.LongformerForQuestionAnswering(longformers.masked_lm(vocab_size=2000).encoder)
    vocab = cases.topic_folder("longformer") / "tokenizer" / "vocab.json"
    processor = etcmodel.LongformerProcessor(str(vocab), max_length=16, stride=4)
    model.save_pretrained(tmp_path / "ours", processor)
    again = etcmodel.from_pretrained(tmp_path / "ours")
    assert again.processor.config == processor.config
    batch = again.processor(question="Who?", documents=["Emma was good."])
    expected = model(processor(question="Who?", documents=["Emma was good."]))
    np.testing.assert_allclose(again(batch)["start"], expected["start"], atol=1e-6)
