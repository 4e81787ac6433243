"""`tf_model.h5`: what Hugging Face's former TensorFlow classes wrote, and what is refused."""

import pathlib
import re
import shutil

import h5py
import numpy as np
import pytest

import etcmodel
from etcmodel.checkpoints import sources

FOLDER = pathlib.Path(__file__).parents[1] / "fixtures" / "keras_h5"
MODELS = pytest.mark.parametrize("name", ["longformer", "led"])


def logits_of(model, ids):
    if isinstance(model, etcmodel.LedForConditionalGeneration):
        return model(ids, decoder_input_ids=ids)["logits"]
    return model(ids)


@pytest.mark.quick_cases(1)
@MODELS
def test_outputs_are_those_of_the_classes_that_wrote_it_and_safetensors_keep_them(name, tmp_path):
    outputs = np.load(FOLDER / name / "outputs.npz")
    model = etcmodel.from_pretrained(FOLDER / name)
    found = logits_of(model, outputs["ids"])
    np.testing.assert_allclose(found, outputs["logits"], atol=2e-6)
    model.save_pretrained(tmp_path)
    assert not (tmp_path / "tf_model.h5").exists()
    again = etcmodel.from_pretrained(tmp_path)
    np.testing.assert_array_equal(logits_of(again, outputs["ids"]), found)


def test_names_are_pytorchs_and_matrices_are_transposed(tmp_path):
    arrays = {
        "tf_bert/bert/encoder/layer_._11/output/dense/kernel:0": np.arange(6.0).reshape(2, 3),
        "tf_bert/mlm___cls/predictions/transform/LayerNorm/gamma:0": np.ones(3),
        "tf_bert/bert/embeddings/position_embeddings/embeddings:0": np.zeros([5, 3]),
        "final_logits_bias:0": np.zeros([1, 3]),
    }
    source = sources.open_source(write(tmp_path, arrays))
    assert source.shapes == {
        "bert.embeddings.position_embeddings.weight": (5, 3),
        "bert.encoder.layer.11.output.dense.weight": (3, 2),
        "cls.predictions.transform.LayerNorm.weight": (3,),
        "final_logits_bias": (1, 3),
    }
    found = source.read("bert.encoder.layer.11.output.dense.weight")
    np.testing.assert_array_equal(found, [[0, 3], [1, 4], [2, 5]])


def write(tmp_path, arrays=(), names=None):
    """A file in Keras's form, with all arrays in one layer; the path."""
    path = tmp_path / "tf_model.h5"
    with h5py.File(path, "w") as file:
        file.attrs["layer_names"] = [b"layer"]
        layer = file.create_group("layer")
        layer.attrs["weight_names"] = [x.encode() for x in names or arrays]
        for name, array in dict(arrays).items():
            layer[name] = array
    return str(path)


def external_link(layer, tmp_path):
    with h5py.File(tmp_path / "other.h5", "w") as other:
        other["w"] = np.ones(3, np.float32)
    layer["w:0"] = h5py.ExternalLink(str(tmp_path / "other.h5"), "w")


def soft_link(layer, tmp_path):
    layer["w"] = np.ones(3, np.float32)
    layer["w:0"] = h5py.SoftLink("/layer/w")


def external_storage(layer, tmp_path):
    (tmp_path / "secret").write_bytes(bytes(12))
    layer.create_dataset("w:0", [3], "f4", external=[(str(tmp_path / "secret"), 0, 12)])


def virtual(layer, tmp_path):
    layout = h5py.VirtualLayout((3,), "f4")
    layout[:] = h5py.VirtualSource(str(tmp_path / "other.h5"), "w", (3,))
    layer.create_virtual_dataset("w:0", layout)


def integers(layer, tmp_path):
    layer["w:0"] = np.ones(3, np.int32)


def packed(layer, tmp_path):
    layer.create_dataset("w:0", [10**9], "f4", chunks=True, compression="gzip")


def group(layer, tmp_path):
    layer.create_group("w:0")


def nothing(layer, tmp_path):
    pass


def test_a_folder_in_its_place_is_told_in_one_line(tmp_path):
    (tmp_path / "tf_model.h5").mkdir()
    with pytest.raises(ValueError, match=r"tf_model.h5' is no HDF5 file, .*Errno 21.*") as error:
        sources.KerasFile(str(tmp_path / "tf_model.h5"))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "fill",
    [external_link, soft_link, external_storage, virtual, integers, packed, group, nothing],
)
def test_what_is_no_plain_array_is_refused(tmp_path, fill):
    path = write(tmp_path, names=["w:0"])
    with h5py.File(path, "a") as file:
        fill(file["layer"], tmp_path)
    with pytest.raises(ValueError, match=f"{re.escape(repr(path))}: 'w:0' is "):
        sources.open_source(path)


def test_a_damaged_file_is_named(tmp_path):
    shutil.copytree(FOLDER / "longformer", tmp_path, dirs_exist_ok=True)
    path = tmp_path / "tf_model.h5"
    content = path.read_bytes()
    for damaged in (b"", b"no HDF5", content[: len(content) // 2]):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"tf_model\.h5' is no HDF5 file, or not all of one"):
            etcmodel.from_pretrained(tmp_path)


def test_another_hdf5_file_is_refused(tmp_path):
    path = tmp_path / "tf_model.h5"
    h5py.File(path, "w").close()
    with pytest.raises(ValueError, match="has no weights of a Keras model"):
        sources.open_source(str(path))
