"""What is read as weights, of every system and format: floats alone, and copies that are copies."""

import functools
import json
import math
import shutil

import h5py
import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from hypothesis import given
from hypothesis import strategies as st

import etcmodel
from etcmodel import checkpoints
from etcmodel.checkpoints import hugging_face, seq2seq, sources, strict
from etcmodel.layers import sublayers
from etcmodel.models import encoders
from etcmodel.models.longt5 import LongT5EncoderModel
from tests.checkpoints import berts, test_conversion, test_keras_h5
from tests.checkpoints.systems import SYSTEMS
from tests.checkpoints.tensor_files import rewrite, split, tensors_of

# Of these, others have the same code and a file of the same names.
SLOW = (
    "BigBird, the encoder",
    "Longformer, the encoder",
    "RoBERTa into ETC",
    "RoBERTa into GMAT",
    "RoBERTa into BigBird",
    "BERT into Longformer",
)
NAMES = [pytest.param(x, marks=[pytest.mark.slow] * (x in SLOW)) for x in SYSTEMS]
DTYPES = ("int8", "int32", "bool", "uint8")


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A function of a system's name to its folder, which is written once."""
    folder = tmp_path_factory.mktemp("systems")

    @functools.cache
    def made(write):
        path = folder / str(len([*folder.iterdir()]))
        write(path)
        return path

    return lambda name: made(SYSTEMS[name].write)


@pytest.fixture
def folder_of(written, tmp_path):
    """A function of a system's name to a new copy of its folder."""
    return lambda name: shutil.copytree(written(name), tmp_path / "model")


@pytest.fixture(scope="module")
def loaded(written):
    """A function of a system's name to the model of its folder."""
    return functools.cache(lambda name: SYSTEMS[name].load(written(name)))


def read(name, folder, model):
    """What the system's `load` does with a folder once the model is built."""
    if name.endswith(("into GMAT", "into LED")):  # They have no function for this part.
        SYSTEMS[name].load(folder)
    elif seq2seq.is_model(model):
        hugging_face.load(model, sources.open_source(str(folder)))
    else:
        checkpoints.initialize(model, str(folder))


def test_every_system_is_here():
    registered = {known.model_type for known in encoders.registered_types()}
    assert registered == {x.model_type for x in SYSTEMS.values()} - {None}


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize("name", SYSTEMS)
def test_equal_copies_are_taken(name, folder_of, loaded):
    system = SYSTEMS[name]
    folder, wanted = folder_of(name), loaded(name)
    names, copies = set(tensors_of(folder)), system.copies.items()
    rewrite(folder, lambda x: x.update({copy: x[original].copy() for copy, original in copies}))
    found = system.load(folder)
    assert type(found) is type(wanted)
    for one, other in zip(found.weights, wanted.weights, strict=True):
        if "memory" not in one.name:  # Lifted, it begins at random.
            np.testing.assert_array_equal(one, other)
    if system.model_type is not None:  # Else it is another system's by now.
        etcmodel.save_pretrained(found, folder.parent / "again")
        assert set(tensors_of(folder.parent / "again")) == names


def copies_that_are_others(system, tensors):
    """Yields (change of a file, what is told of it), of each copy: both names, the difference."""
    for copy, original in system.copies.items():
        other = tensors[original].copy()
        other.flat[5] += 0.5
        other.flat[7] -= 0.25
        names = f"({copy} is not {original}|{original} is not {copy})"
        told = rf"safetensors': {names}, but the model has one weight .*: they differ by up to 0.5"
        yield {copy: other}, told


def weights_that_are_no_floats(system, tensors):
    """The same, of each dtype; and of four bits, whose dtype is told, and not their shape."""
    weight = system.weight
    for dtype in DTYPES:
        told = rf"has no floats where weights are wanted: {weight} \({dtype}\)"
        yield {weight: np.ones_like(tensors[weight], dtype)}, told
    packed = np.ones([tensors[weight].size // 2, 1], np.uint8)
    yield {weight: packed}, rf"weights are wanted: {weight} \(uint8\)\. Packed"


@pytest.mark.parametrize("name", NAMES)
def test_what_is_no_weight_is_refused_by_name_and_nothing_is_loaded(name, folder_of, loaded):
    """Whatever stands before it in the file."""
    system, folder, model = SYSTEMS[name], folder_of(name), loaded(name)
    wanted = [x.numpy() for x in model.weights]
    others = {x: np.full_like(value, 0.125) for x, value in tensors_of(folder).items()}
    copies = [*copies_that_are_others(system, others)]
    floats = [*weights_that_are_no_floats(system, others)]
    is_lifted = name.endswith(("into GMAT", "into LED"))
    if is_lifted:  # Each of them needs another model.
        copies, floats = copies[:1], floats[-1:]
    for change, told in (*copies, *floats):
        rewrite(folder, lambda x, change=change: (x.clear(), x.update({**others, **change})))
        with pytest.raises(ValueError, match=told) as error:
            read(name, folder, model)
        assert "\n" not in str(error.value)
    for one, other in () if is_lifted else zip(model.weights, wanted, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_config_of_quantized_weights_is_refused(name, folder_of):
    folder = folder_of(name)
    entries = json.loads((folder / "config.json").read_text())
    entries["quantization_config"] = {"load_in_8bit": True, "x": "y" * 1000}
    (folder / "config.json").write_text(json.dumps(entries))
    message = r"config.json: `quantization_config` says that weights are quantized.*load_in_8bit"
    with pytest.raises(ValueError, match=message) as error:
        SYSTEMS[name].load(folder)
    assert len(str(error.value)) < 500


def test_int8_weights_with_scales_are_refused_without_a_word_in_the_config(folder_of, loaded):
    """As bitsandbytes writes them."""
    folder = folder_of("LongT5")

    def quantize(tensors):
        for name, value in list(tensors.items()):
            if "DenseReluDense" in name:
                scales = np.abs(value).max(axis=1)
                tensors[name] = np.round(127 * value / scales[:, np.newaxis]).astype(np.int8)
                tensors[f"{name.removesuffix('weight')}SCB"] = scales

    rewrite(folder, quantize)
    with pytest.raises(ValueError, match=r"DenseReluDense.*\(int8\), .* and 7 more. Packed or"):
        read("LongT5", folder, loaded("LongT5"))


def test_logits_of_their_own_are_no_copy_for_longt5(folder_of, loaded):
    """In T5 1.1 they are another matrix; the encoder alone has none."""
    folder = folder_of("LongT5")
    rewrite(folder, lambda x: x.update({"lm_head.weight": x["shared.weight"] + 1}))
    assert etcmodel.from_pretrained(folder).lm_head is not None
    table = LongT5EncoderModel.from_pretrained(folder).get_token_embedding_table()
    np.testing.assert_array_equal(table, tensors_of(folder)["shared.weight"])
    with pytest.raises(ValueError, match="lm_head.weight is not shared.weight, but .* up to 1"):
        read("LongT5", folder, loaded("LongT5"))


def etc_checkpoint(folder, kind, dtype):
    """An ETC of which one weight is of that dtype, in a format of TensorFlow; (path, name)."""
    name = SYSTEMS["ETC"].weight
    values = test_conversion.encoder_values()
    values[name] = np.ones_like(values[name], dtype)
    folder.mkdir()
    (folder / "etc_config.json").write_text(test_conversion.CONFIG.to_json_string())
    if kind == sources.RELEASED:
        return berts.write_released(str(folder), values), name
    made = {x: tf.Variable(value, name=x) for x, value in values.items()}
    return tf.train.Checkpoint(**{f"x{i}": x for i, x in enumerate(made.values())}).write(
        str(folder / "ckpt")
    ), name


@pytest.mark.parametrize("kind", [sources.RELEASED, sources.OBJECTS])
def test_tensorflows_checkpoints_are_read_as_strictly_and_floats_of_any_size_are_taken(
    kind, tmp_path
):
    model = etcmodel.EtcModel(test_conversion.CONFIG)
    sublayers.build_sublayer(model, None)
    weight = checkpoints.release_names(model)[SYSTEMS["ETC"].weight]
    for dtype in DTYPES:
        path, name = etc_checkpoint(tmp_path / dtype, kind, dtype)
        message = rf"has no floats where weights are wanted: {name} \({dtype}\)"
        with pytest.raises(ValueError, match=message):
            checkpoints.initialize(model, path)
    with pytest.raises(ValueError, match=message):
        checkpoints.convert(path, str(tmp_path / "new"), sources.SAFETENSORS)
    assert not (tmp_path / "new").exists()
    for dtype in (np.float16, np.float64, ml_dtypes.bfloat16):
        path, _ = etc_checkpoint(tmp_path / np.dtype(dtype).name, kind, dtype)
        weight.assign(tf.zeros(8))
        checkpoints.initialize(model, path)
        np.testing.assert_array_equal(weight, np.ones(8))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["longformer", "led"])
def test_hdf5_is_read_as_strictly(name, dtype, tmp_path):
    shutil.copytree(test_keras_h5.FOLDER / name, tmp_path, dirs_exist_ok=True)
    with h5py.File(tmp_path / "tf_model.h5", "a") as file:
        layer = file[file.attrs["layer_names"][-1]]
        place = layer.attrs["weight_names"][-1]
        value = layer[place][()]
        del layer[place]
        layer[place] = np.ones_like(value, dtype)
    with pytest.raises(ValueError, match=rf"tf_model.h5': '.*:0' is an array of {dtype}, and"):
        etcmodel.from_pretrained(tmp_path)


def test_a_copy_in_hdf5_is_compared(tmp_path):
    shutil.copytree(test_keras_h5.FOLDER / "led", tmp_path, dirs_exist_ok=True)
    with h5py.File(tmp_path / "tf_model.h5", "a") as file:
        layer = file["led"]
        names = list(layer.attrs["weight_names"])
        table = next(x for x in names if "shared" in x)
        layer["x/led/decoder/embed_tokens/weight:0"] = layer[table][()] + 2
        layer.attrs["weight_names"] = [*names, "x/led/decoder/embed_tokens/weight:0"]
    with pytest.raises(ValueError, match="decoder.embed_tokens.weight is not .*differ by up to 2"):
        etcmodel.from_pretrained(tmp_path)


def test_what_keras_wrote_for_two_layers_is_compared(tmp_path):
    """The embeddings are of the encoder and, tied, of the head."""
    shutil.copytree(test_keras_h5.FOLDER / "longformer", tmp_path, dirs_exist_ok=True)
    place = "tf_longformer_for_masked_lm/longformer/embeddings/LayerNorm/beta:0"
    with h5py.File(tmp_path / "tf_model.h5", "a") as file:
        file["lm_head"][place][2] += 0.5
    message = f"lm_head/{place} is not longformer/{place}, but .*: they differ by up to 0.5"
    with pytest.raises(ValueError, match=message):
        etcmodel.from_pretrained(tmp_path)


def test_several_files_are_read_as_strictly(folder_of, loaded):
    folder, system = folder_of("LED"), SYSTEMS["LED"]
    copy, table = next(iter(system.copies.items()))
    rewrite(folder, lambda x: x.update({copy: x[table] + 1}))
    split(folder)
    with pytest.raises(ValueError, match=f"{copy} is not {table}.*differ by up to 1"):
        read("LED", folder, loaded("LED"))


def test_floats_of_eight_bits_are_none(folder_of, loaded):
    folder, weight = folder_of("Longformer"), SYSTEMS["Longformer"].weight
    rewrite(folder, lambda x: x.update({weight: x[weight].astype(ml_dtypes.float8_e4m3fn)}))
    with pytest.raises(ValueError, match=r"weights are wanted: .* \(F8_E4M3\)"):
        read("Longformer", folder, loaded("Longformer"))


def source_of(arrays):
    return sources.Source(
        path="file",
        format=sources.SAFETENSORS,
        shapes={name: x.shape for name, x in arrays.items()},
        dtypes={name: x.dtype.name for name, x in arrays.items()},
        training_state=(),
        read=arrays.__getitem__,
    )


FLOATS = st.floats(width=16)


@given(st.lists(FLOATS, min_size=1), st.lists(FLOATS, min_size=1), st.sampled_from(strict.FLOATS))
def test_the_difference_is_that_of_a_slow_twin(one, other, dtype):
    one, other = (np.array(x) for x in (one, other))
    values = {"a": one, "b": other.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)}
    values["a"] = values["a"].astype(np.float32)
    one, other = (x.astype(float).tolist() for x in values.values())
    pairs = list(zip(one, other, strict=False))
    is_same = [x == y or (x != x and y != y) for x, y in pairs]
    if len(one) == len(other) and all(is_same):
        strict.check(source_of(values), [], {"a": "b"})
        return
    with pytest.raises(ValueError, match="a is not b, but the model has one weight") as error:
        strict.check(source_of(values), [], {"a": "b"})
    if len(one) != len(other):
        assert f"their shapes are [{len(one)}] and [{len(other)}]" in str(error.value)
    else:
        gaps = [abs(x - y) for (x, y), same in zip(pairs, is_same, strict=True) if not same]
        largest = math.nan if any(x != x for x in gaps) else max(gaps)
        assert f"they differ by up to {largest:.3g}. Take" in str(error.value)


def test_the_largest_difference_of_a_long_table_is_found():
    table = np.zeros([9000, 2], np.float32)
    other = table.copy()
    other[[5, 4500, 8999], 1] = [1, -7, 2]
    with pytest.raises(ValueError, match="differ by up to 7. Take"):
        strict.check(source_of({"a": table, "b": other}), [], {"a": "b"})


def test_where_an_original_is_missing_its_copies_are_compared():
    copies = {"head": "m.table", "m.one": "m.table", "m.two": "m.table"}
    found = strict.copies_in(["one", "m.two", "head", "other"], copies, "m.")
    assert found == {"one": "head", "m.two": "head"}
    both = strict.copies_in(["m.table", "table", "m.one"], copies, "m.")
    assert both == {"table": "m.table", "m.one": "m.table"}
    assert not strict.copies_in(["other", "m.two"], copies, "m.")


def test_a_variable_that_is_no_float_takes_its_own_dtype_alone():
    count = tf.Variable(3, dtype=tf.int64)
    source = source_of({"count": np.array(5, np.int64)})
    strict.assign(source, {"count": (count, False)})
    assert count.numpy() == 5
    source = source_of({"count": np.array(5.5, np.float32)})
    with pytest.raises(ValueError, match="count is of float32. Wanted: int64"):
        strict.assign(source, {"count": (count, False)})


@pytest.mark.parametrize("second", ["other", "score"])
def test_layers_of_one_name_are_refused_not_merged(second):
    model = tf_keras.layers.Layer(name="model")
    model.parts = [tf_keras.layers.Dense(3, name=name) for name in ("score", second)]
    for part in model.parts:
        part.build([None, 2])
    if second == "score":
        with pytest.raises(ValueError, match="Two variables are called 'score/kernel' in"):
            checkpoints.release_names(model)
    else:
        parts = ("kernel", "bias")
        expected = [f"{name}/{part}" for name in ("score", "other") for part in parts]
        assert list(checkpoints.release_names(model)) == expected
