"""`pytorch_model.bin` is read without PyTorch, and what is in it is never run."""

import json
import os
import pathlib
import pickle
import shutil
import zipfile

import hypothesis
import hypothesis.extra.numpy as arrays
import hypothesis.strategies as st
import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy

import etcmodel
from etcmodel.checkpoints.torch_files import TorchFile
from tests.checkpoints import longformers, torch_writer
from tests.models.led import models as leds
from tests.models.longformer import small

# Written by `torch.save` of PyTorch 2.13.
FIXTURES = pathlib.Path(__file__).parents[1] / "fixtures" / "pytorch"
PLAIN = np.arange(12, dtype="float32").reshape(3, 4)
WANTED = {
    "bfloat16.weight": np.array([3, 0.1], ml_dtypes.bfloat16),
    "double": np.array(2.25),
    "empty": np.zeros((0, 3), "float32"),
    "half.weight": np.array([[1.5, -2]], "float16"),
    "parameter.bias": np.array([0.5, -1.5], "float32"),
    "plain.weight": PLAIN,
    "position_ids": np.arange(4)[np.newaxis],
    "rows.weight": PLAIN[1:],  # A part of a storage,
    "tied.weight": PLAIN,  # the same one again,
    "transposed.weight": PLAIN.T,  # and in another order.
}


def test_every_tensor_of_pytorch_is_read_as_it_is():
    file = TorchFile(FIXTURES / "weights.bin")
    assert file.shapes == {name: x.shape for name, x in WANTED.items()}
    assert file.dtypes == {name: x.dtype.name for name, x in WANTED.items()}
    for name, wanted in WANTED.items():
        found = file.read(name)
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)


@hypothesis.given(
    st.dictionaries(
        st.text("abc.ü", min_size=1),
        st.sampled_from(("float32", "float16", "float64", "int64")).flatmap(
            lambda dtype: arrays.arrays(dtype, arrays.array_shapes(min_dims=0, min_side=0))
        ),
        max_size=4,
    )
)
@hypothesis.settings(
    max_examples=30, suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture]
)
def test_any_tensors_come_back(tmp_path, tensors):
    path = tmp_path / "weights.bin"
    torch_writer.write(path, tensors)
    file = TorchFile(path)
    assert set(file.shapes) == set(tensors)
    for name, wanted in tensors.items():
        np.testing.assert_array_equal(file.read(name), wanted)


def as_pytorch(folder):
    """A folder with `pytorch_model.bin` in place of its safetensors."""
    tensors = safetensors.numpy.load_file(folder / "model.safetensors")
    torch_writer.write(folder / "pytorch_model.bin", tensors)
    (folder / "model.safetensors").unlink()
    return tensors


@pytest.mark.parametrize("kind", ["longformer", "led"])
def test_a_model_is_loaded_from_it(tmp_path, kind):
    model = leds.model() if kind == "led" else longformers.masked_lm()
    etcmodel.save_pretrained(model, tmp_path / "model")
    tensors = as_pytorch(tmp_path / "model")
    etcmodel.from_pretrained(tmp_path / "model").save_pretrained(tmp_path / "again")
    again = safetensors.numpy.load_file(tmp_path / "again" / "model.safetensors")
    assert set(again) == set(tensors)
    for name, wanted in tensors.items():
        np.testing.assert_array_equal(again[name], wanted)


def test_the_parts_of_a_large_model_are_read(tmp_path):
    etcmodel.save_pretrained(longformers.masked_lm(), tmp_path)
    tensors = as_pytorch(tmp_path)
    (tmp_path / "pytorch_model.bin").unlink()
    names = list(tensors)
    files = {"a.bin": names[:5], "b.bin": names[5:]}
    for file, inside in files.items():
        torch_writer.write(tmp_path / file, {name: tensors[name] for name in inside})
    places = ", ".join(f'"{name}": "{file}"' for file in files for name in files[file])
    (tmp_path / "pytorch_model.bin.index.json").write_text(f'{{"weight_map": {{{places}}}}}')
    model = etcmodel.from_pretrained(tmp_path)
    np.testing.assert_array_equal(
        model.encoder.get_token_embedding_table(),
        tensors["longformer.embeddings.word_embeddings.weight"],
    )


class Evil:
    """A pickle of it would leave a file behind wherever it is loaded."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_what_is_in_it_is_never_run(tmp_path):
    path, trace = tmp_path / "weights.bin", tmp_path / "trace"
    torch_writer.write_raw(path, pickle.dumps({"weight": Evil(trace)}, protocol=2), {})
    with pytest.raises(ValueError, match=r"weights.bin' asks for `posix.mkdir`, unlike weights"):
        TorchFile(path)
    assert not trace.exists()
    torch_writer.write_raw(path, pickle.dumps({"weight": Evil(trace)}, protocol=4), {})
    with pytest.raises(ValueError, match="has an instruction .*, unlike weights"):
        TorchFile(path)
    assert not trace.exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x: x.replace(b"_rebuild_tensor_v2", b"_rebuild_tensor_v9"), "asks for `torch._ut"),
        (lambda x: x.replace(b"FloatStorage", b"HugerStorage"), "asks for `torch.HugerStorage`"),
        (lambda x: x.replace(torch_writer._int(3), torch_writer._int(4)), "beyond its storage"),
        (lambda x: x.replace(torch_writer._int(0), torch_writer._int(1)), "beyond its storage"),
        (lambda x: x.replace(torch_writer._int(4), torch_writer._int(-4)), "beyond its storage"),
        (lambda x: x[:-20], "is no file of PyTorch's weights, or not all of one"),
        (lambda x: b"\x80\x02}.", "lacks weights"),
        (lambda x: pickle.dumps([1, 2], protocol=2), "something else than tensors by name"),
        (lambda x: pickle.dumps({"epoch": 3}, protocol=2), "something else than tensors by name"),
    ],
)
def test_what_is_wrong_with_a_description_is_told(tmp_path, change, message):
    config = json.dumps(small.config().to_dict())
    (tmp_path / "config.json").write_text(config, encoding="utf-8")
    path = tmp_path / "pytorch_model.bin"
    torch_writer.write(path, {"weight": PLAIN})
    with zipfile.ZipFile(path) as archive:
        pickled = archive.read("archive/data.pkl")
    torch_writer.write_raw(path, change(pickled), {0: PLAIN})
    with pytest.raises(ValueError, match=f"pytorch_model.bin' .*{message}") as error:
        etcmodel.from_pretrained(tmp_path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("as_call", [False, True])
@pytest.mark.parametrize("deeper", [b"\x85", b"q\x00h\x00\x86"])  # Nested; doubled at each step.
def test_what_would_take_for_ever_to_compare_is_no_name(tmp_path, deeper, as_call):
    name = b")" + 100_000 * deeper
    items = b"}(" + name + b"K\x01u."
    if as_call:
        items = (
            torch_writer._global("collections", "OrderedDict") + b"](" + name + b"K\x01\x86e\x85R."
        )
    path = tmp_path / "weights.bin"
    torch_writer.write_raw(path, b"\x80\x02" + items, {})
    with pytest.raises(ValueError, match="is no file of PyTorch's weights"):
        TorchFile(path)


def test_other_kinds_of_files_are_told(tmp_path):
    with pytest.raises(ValueError, match=r"before 2020.*safetensors.torch.save_file"):
        TorchFile(FIXTURES / "older_form.bin")
    path = tmp_path / "weights.bin"
    path.write_bytes(b"PK")
    with pytest.raises(ValueError, match="is no file of PyTorch's weights"):
        TorchFile(path)
    torch_writer.write(path, {"weight": PLAIN}, zipfile.ZIP_DEFLATED)
    with pytest.raises(ValueError, match="has no plain storage '0'"):
        TorchFile(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "")
    with pytest.raises(ValueError, match="is a zip, but not of PyTorch's weights"):
        TorchFile(path)


@hypothesis.given(st.data())
@hypothesis.settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
)
def test_damage_is_an_error_that_names_the_file_or_changes_values_alone(tmp_path, data):
    content = bytearray((FIXTURES / "weights.bin").read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path / "weights.bin"
    path.write_bytes(content[: data.draw(st.integers(len(content) - 40, len(content)))])
    try:
        file = TorchFile(path)
        for name, shape in file.shapes.items():
            assert file.read(name).shape == shape
    except ValueError as error:
        assert "weights.bin'" in str(error) and "\n" not in str(error)


def test_a_file_of_this_form_may_have_another_name(tmp_path):
    shutil.copy(FIXTURES / "weights.bin", tmp_path / "model.pt")
    source = etcmodel.checkpoints.sources.open_source(str(tmp_path / "model.pt"))
    np.testing.assert_array_equal(source.read("plain.weight"), PLAIN)
