"""Folders of models with an encoder and a decoder: what they become, and what is written."""

import functools
import json

import numpy as np
import pytest
import safetensors.numpy
import tensorflow as tf

import etcmodel
from etcmodel.models.longt5 import LongT5Model
from etcmodel.models.modeling import EtcModel
from tests.checkpoints.tensor_files import rewrite, tensors_of
from tests.models.longt5 import models

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
    model = etcmodel.from_pretrained(folder)
    assert isinstance(model, LongT5Model) and model.config.scale_decoder_outputs is True
    np.testing.assert_array_equal(logits(model), logits(MODEL()))
    etcmodel.save_pretrained(model, tmp_path / "again")
    one, other = (path / "model.safetensors" for path in (folder, tmp_path / "again"))
    assert one.read_bytes() == other.read_bytes()
    with safetensors.safe_open(one, "numpy") as file:
        assert file.metadata() == {"format": "pt"}  # Others Hugging Face's library refuses.
        name = "encoder.block.1.layer.0.TransientGlobalSelfAttention.q.weight"
        assert file.get_slice(name).get_shape() == [12, 16]
    entries = json.loads((folder / "config.json").read_text())
    assert entries["architectures"] == ["LongT5ForConditionalGeneration"]
    assert "scale_decoder_outputs" not in entries  # Hugging Face's would not scale with a None.
    assert sorted(path.name for path in folder.iterdir()) == ["config.json", "model.safetensors"]


def test_a_file_of_an_older_version_may_have_strays(folder, tmp_path):
    wanted, stray = tensors_of(folder), "decoder.block.0.layer.1.EncDecAttention"
    name = f"{stray}.relative_attention_bias.weight"
    rewrite(folder, lambda tensors: tensors.update({name: np.ones((8, 2), np.float32)}))
    etcmodel.save_pretrained(etcmodel.from_pretrained(folder), tmp_path / "again")
    assert set(tensors_of(tmp_path / "again")) == set(wanted)


@pytest.mark.parametrize("is_tied", [True, False])
def test_an_output_matrix_of_its_own_is_kept_whatever_the_config_says(folder, tmp_path, is_tied):
    config = {**models.config().to_dict(), "tie_word_embeddings": is_tied}
    (folder / "config.json").write_text(json.dumps(config))
    head = np.random.default_rng(3).normal(size=(models.VOCAB_SIZE, 16)).astype(np.float32)
    rewrite(folder, lambda tensors: tensors.update({"lm_head.weight": head}))
    model = etcmodel.from_pretrained(folder)
    assert not model.config.tie_word_embeddings
    arguments = (tf.constant(models.ids(2, 9)), None, tf.constant(models.ids(2, 3)))
    hidden = model(*arguments, output_hidden_states=True)["decoder_hidden_states"][-1]
    scale = 16**-0.5 if is_tied else 1.0
    np.testing.assert_allclose(logits(model), scale * hidden @ head.T, atol=1e-5)
    etcmodel.save_pretrained(model, tmp_path / "again")
    assert tensors_of(tmp_path / "again")["lm_head.weight"].tobytes() == head.tobytes()
    again = etcmodel.from_pretrained(tmp_path / "again")
    np.testing.assert_array_equal(logits(again), logits(model))


def test_embeddings_under_another_name_alone(folder):
    wanted = logits(etcmodel.from_pretrained(folder))

    def change(tensors):
        tensors["decoder.embed_tokens.weight"] = tensors.pop("shared.weight")
        tensors["lm_head.weight"] = np.zeros_like(tensors["decoder.embed_tokens.weight"])

    rewrite(folder, change)
    assert not logits(etcmodel.from_pretrained(folder)).any()
    rewrite(folder, lambda tensors: tensors.pop("lm_head.weight"))
    np.testing.assert_array_equal(logits(etcmodel.from_pretrained(folder)), wanted)


def test_another_window_at_load_time(folder):
    model = etcmodel.from_pretrained(folder, local_radius=9, dropout_rate=0.2)
    assert model.config.local_radius == 9 and model.config.dropout_rate == 0.2
    assert np.abs(logits(model) - logits(MODEL())).max() > 1e-4


def test_weights_of_another_shape_are_named_with_both_shapes(folder):
    message = r"wi_0.weight: \[24, 16\] in the file, \[25, 16\] in the model"
    with pytest.raises(ValueError, match=message) as error:
        etcmodel.from_pretrained(folder, d_ff=25)
    assert "\n" not in str(error.value) and str(error.value).endswith(" more")


def test_what_cannot_be_is_refused(folder):
    with pytest.raises(ValueError, match="has no `local_radios`"):
        etcmodel.from_pretrained(folder, local_radios=9)
    with pytest.raises(ValueError, match="class LongT5Model. Wanted: EtcModel"):
        etcmodel.from_pretrained(folder, as_class=EtcModel)
    entries = {**models.config().to_dict(), "model_type": "t6"}
    (folder / "config.json").write_text(json.dumps(entries))
    with pytest.raises(ValueError, match="holds another model: 'config.json'"):
        etcmodel.save_pretrained(MODEL(), folder)
    for kind in (["longt5"], {"longt5": 1}, 5):
        (folder / "config.json").write_text(json.dumps({**entries, "model_type": kind}))
        with pytest.raises(ValueError, match="models of type .* cannot be read") as error:
            etcmodel.from_pretrained(folder)
        assert "\n" not in str(error.value)
