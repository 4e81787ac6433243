"""Folders of LEDs: what they become, and what is written."""

import functools
import json
import shutil

import numpy as np
import pytest
import safetensors.numpy

import etcmodel
from etcmodel.models.led import LedForConditionalGeneration, LedForQuestionAnswering, LedModel
from tests.checkpoints.tensor_files import rewrite, tensors_of
from tests.models.led import models
from tests.reference import cases

TOPIC = "longformer"
IDS, LABELS = models.ids(2, 9), models.ids(2, 3, seed=1)


MODEL = functools.cache(models.model)  # It is only read.


@pytest.fixture
def folder(tmp_path):
    MODEL().save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def logits(model):
    return model(IDS, labels=LABELS)["logits"].numpy()


@pytest.mark.parametrize("kind", ["led/a_generate", "led/b_qa"])
def test_tensors_of_hugging_face_come_back_byte_by_byte(kind, tmp_path):
    folder = cases.topic_folder(TOPIC) / kind
    model = etcmodel.from_pretrained(folder)
    model.save_pretrained(tmp_path)
    wanted, found = tensors_of(folder), tensors_of(tmp_path)
    assert set(found) == set(wanted)
    for name, value in wanted.items():
        assert found[name].tobytes() == value.tobytes(), name
    with safetensors.safe_open(tmp_path / "model.safetensors", "numpy") as file:
        assert file.metadata() == {"format": "pt"}  # Others Hugging Face's library refuses.
    theirs, ours = (json.loads((x / "config.json").read_text()) for x in (folder, tmp_path))
    assert {name: theirs[name] for name in ours} == ours


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("made_by", [LedModel, LedForQuestionAnswering])
def test_a_folder_becomes_the_class_that_it_names(made_by, tmp_path):
    model = models.model(made_by)
    model.save_pretrained(tmp_path)
    again = etcmodel.from_pretrained(tmp_path)
    assert type(again) is made_by
    one, other = model(IDS), again(IDS)
    for name, value in one.items():
        np.testing.assert_array_equal(value, other[name])


def test_names_have_a_prefix_where_there_is_a_head(folder, tmp_path):
    model = LedModel.from_pretrained(folder)
    model.save_pretrained(tmp_path / "bare")
    bare, whole = tensors_of(tmp_path / "bare"), tensors_of(folder)
    assert set(whole) == {f"led.{name}" for name in bare} | {"final_logits_bias"}
    with pytest.raises(ValueError, match="holds a model of class LedModel. Wanted: EtcModel"):
        etcmodel.from_pretrained(tmp_path / "bare", as_class=etcmodel.EtcModel)
    again = LedForConditionalGeneration.from_pretrained(tmp_path / "bare")
    bias = whole["final_logits_bias"][0]
    np.testing.assert_allclose(logits(again) + bias, logits(MODEL()), atol=1e-5)


def test_another_head_begins_fresh(folder):
    model = LedForQuestionAnswering.from_pretrained(folder)
    table = model.get_token_embedding_table()
    np.testing.assert_array_equal(table, tensors_of(folder)["led.shared.weight"])
    assert not model.span.bias.numpy().any()


def test_a_head_that_there_is_not_is_never_another_one(folder):
    entries = json.loads((folder / "config.json").read_text())

    def name(architecture):
        text = json.dumps({**entries, "architectures": [architecture]})
        (folder / "config.json").write_text(text)

    name("LEDForSequenceClassification")
    message = "config.json: `architectures` names LEDForSequenceClassification, of which there is"
    with pytest.raises(ValueError, match=message):
        etcmodel.from_pretrained(folder)
    assert type(LedModel.from_pretrained(folder)) is LedModel
    name("TFLEDForQuestionAnswering")
    assert type(etcmodel.from_pretrained(folder, as_class=LedModel)) is LedModel
    for architecture in ("TFLEDForConditionalGeneration", "LEDModel"):
        name(architecture)
        assert type(etcmodel.from_pretrained(folder)).architecture in architecture


def test_embeddings_under_another_name_alone(folder):
    name = "led.encoder.embed_tokens.weight"
    rewrite(folder, lambda tensors: tensors.update({name: tensors.pop("led.shared.weight")}))
    np.testing.assert_array_equal(logits(etcmodel.from_pretrained(folder)), logits(MODEL()))


def test_the_bias_of_the_logits_may_be_missing(folder):
    bias = tensors_of(folder)["final_logits_bias"]
    wanted = logits(etcmodel.from_pretrained(folder)) - bias
    rewrite(folder, lambda tensors: tensors.pop("final_logits_bias"))
    np.testing.assert_allclose(logits(etcmodel.from_pretrained(folder)), wanted, atol=1e-5)


def test_another_window_at_load_time(folder):
    model = etcmodel.from_pretrained(folder, attention_window=8, global_positions=(0,))
    assert model.config.radii == (4, 4)
    assert np.abs(logits(model) - logits(MODEL())).max() > 1e-4


def test_the_tokenizer_comes_and_goes_with_the_model(tmp_path):
    folder = tmp_path / "model"
    models.model(vocab_size=2000).save_pretrained(folder)
    for name in ("vocab.json", "merges.txt"):
        shutil.copyfile(cases.resolve(TOPIC, f"tokenizer/{name}"), folder / name)
    model = etcmodel.from_pretrained(folder)
    assert model.processor.config.max_length == model.config.max_encoder_position_embeddings
    batch = model.processor(["A text.", "Another"])
    assert set(batch) == {"input_ids", "attention_mask"}  # `global_positions` say what is global.
    model.save_pretrained(tmp_path / "again")
    again = etcmodel.from_pretrained(tmp_path / "again").processor(["A text.", "Another"])
    for name, value in batch.items():
        np.testing.assert_array_equal(value, again[name])


def test_more_tokens_than_the_model_has_are_refused(folder):
    for name in ("vocab.json", "merges.txt"):
        shutil.copyfile(cases.resolve(TOPIC, f"tokenizer/{name}"), folder / name)
    with pytest.raises(ValueError, match="vocabulary has 2000 tokens, .* `vocab_size`, 30"):
        etcmodel.from_pretrained(folder)


def test_half_a_head_is_an_error(tmp_path):
    models.model(LedForQuestionAnswering).save_pretrained(tmp_path)
    rewrite(tmp_path, lambda tensors: tensors.pop("qa_outputs.bias"))
    with pytest.raises(ValueError, match="lacks weights of .*: qa_outputs.bias"):
        etcmodel.from_pretrained(tmp_path)


def test_what_does_not_fit_is_refused(folder):
    message = r"embed_positions.weight: \[60, 16\] in the file, \[62, 16\] in the model"
    with pytest.raises(ValueError, match=message):
        etcmodel.from_pretrained(folder, max_encoder_position_embeddings=62)
    with pytest.raises(ValueError, match="has no `local_radius`"):
        etcmodel.from_pretrained(folder, local_radius=9)
