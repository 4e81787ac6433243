"""Folders of PEGASUS-X: what they become, and what is written."""

import functools
import json

import numpy as np
import pytest
import tensorflow as tf

import etcmodel
from etcmodel.models.longt5 import LongT5Model
from etcmodel.models.pegasus_x import PegasusXForConditionalGeneration, PegasusXModel
from tests.checkpoints.tensor_files import rewrite, tensors_of
from tests.models.pegasus_x import models
from tests.reference import cases

TABLES = (
    "lm_head.weight",
    "model.encoder.embed_tokens.weight",
    "model.decoder.embed_tokens.weight",
)


MODEL = functools.cache(models.model)  # It is only read.


@pytest.fixture
def folder(tmp_path):
    """A model in a folder; its file is as Hugging Face's: names, and transposed matrices."""
    etcmodel.save_pretrained(MODEL(), tmp_path / "model")
    return tmp_path / "model"


def logits(model):
    arguments = (tf.constant(models.ids(2, 9)), None, tf.constant(models.ids(2, 3)))
    return model(*arguments)["logits"].numpy()


def test_what_is_written_is_read_again_bit_by_bit(folder, tmp_path):
    model = etcmodel.load_pretrained(folder)
    assert type(model) is PegasusXForConditionalGeneration
    np.testing.assert_array_equal(logits(model), logits(MODEL()))
    etcmodel.save_pretrained(model, tmp_path / "again")
    for name in ("model.safetensors", "config.json"):
        assert (folder / name).read_bytes() == (tmp_path / "again" / name).read_bytes()
    shapes = {name: x.shape for name, x in tensors_of(folder).items()}
    assert shapes["model.shared.weight"] == (30, 16)
    assert shapes["model.encoder.embed_global.weight"] == (3, 16)
    assert shapes["model.decoder.layers.1.fc1.weight"] == (20, 16)
    assert "model.encoder.layers.0.self_attn.q_proj.bias" not in shapes
    assert len(shapes) == 70
    entries = json.loads((folder / "config.json").read_text())
    assert entries["architectures"] == ["PegasusXForConditionalGeneration"]
    assert entries["model_type"] == "pegasus_x"


@pytest.mark.parametrize("kind", ["a_generate", "b_lm", "c_lm"])
def test_a_folder_of_hugging_face_goes_back_byte_by_byte(kind, tmp_path):
    folder = cases.topic_folder("t5") / "pegasus_x" / kind
    etcmodel.load_pretrained(folder).save_pretrained(tmp_path)
    found, wanted = tensors_of(tmp_path), tensors_of(folder)
    wanted = {name: x for name, x in wanted.items() if name not in TABLES}  # Copies in old files.
    assert set(found) == set(wanted)
    assert all(found[name].tobytes() == x.tobytes() for name, x in wanted.items())
    old, new = (json.loads((x / "config.json").read_text()) for x in (folder, tmp_path))
    assert {name: old[name] for name in new if name in old} == {x: new[x] for x in new if x in old}


def test_the_model_without_logits_has_names_without_a_prefix(folder, tmp_path):
    model = etcmodel.load_pretrained(folder, as_class=PegasusXModel)
    assert type(model) is PegasusXModel
    etcmodel.save_pretrained(model, tmp_path / "plain")
    entries = json.loads((tmp_path / "plain" / "config.json").read_text())
    assert entries["architectures"] == ["PegasusXModel"]
    wanted = {name.removeprefix("model."): x for name, x in tensors_of(folder).items()}
    found = tensors_of(tmp_path / "plain")
    assert set(found) == set(wanted)
    assert all(found[name].tobytes() == x.tobytes() for name, x in wanted.items())
    assert type(etcmodel.load_pretrained(tmp_path / "plain")) is PegasusXModel
    kind = PegasusXForConditionalGeneration
    again = etcmodel.load_pretrained(tmp_path / "plain", as_class=kind)
    np.testing.assert_array_equal(logits(again), logits(MODEL()))


def test_embeddings_under_another_name_alone(folder):
    wanted = logits(etcmodel.load_pretrained(folder))
    rewrite(folder, lambda x: x.update({TABLES[2]: x.pop("model.shared.weight")}))
    np.testing.assert_array_equal(logits(etcmodel.load_pretrained(folder)), wanted)


def test_other_blocks_at_load_time(folder):
    model = etcmodel.load_pretrained(folder, block_size=6, stagger_local_blocks=False)
    assert model.config.block_size == 6 and not model.config.stagger_local_blocks
    assert np.abs(logits(model) - logits(MODEL())).max() > 1e-4


def test_what_cannot_be_is_refused(folder):
    message = r"embed_global.weight: \[3, 16\] in the file, \[4, 16\] in the model"
    with pytest.raises(ValueError, match=message):
        etcmodel.load_pretrained(folder, num_global_tokens=4)
    with pytest.raises(ValueError, match="Wanted: LongT5Model"):
        etcmodel.load_pretrained(folder, as_class=LongT5Model)


def test_the_files_of_its_vocabulary_stay_with_it(folder, tmp_path):
    content = {"spiece.model": b"pieces", "tokenizer_config.json": b'{"offset": 103}'}
    for name, value in content.items():
        (folder / name).write_bytes(value)
    model = etcmodel.load_pretrained(folder)
    with pytest.raises(ValueError, match="has no processor: .* is no SentencePiece model"):
        model.processor("A text.")
    model.save_pretrained(tmp_path / "again")
    for name, value in content.items():
        assert (tmp_path / "again" / name).read_bytes() == value
