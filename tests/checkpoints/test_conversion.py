"""Converting checkpoints between the formats, without losing a bit."""

import dataclasses
import functools
import os
import shutil

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

from etcmodel import checkpoints
from etcmodel.checkpoints import coverage, sources
from etcmodel.models import modeling
from tests.checkpoints import berts, longformers
from tests.models.gmat import genbert
from tests.models.led import models as led_models

CONFIG = berts.ETC_CONFIG
FORMATS = ("released", "tf2", "safetensors")
HEADS = {"answer_type_output_weights": (3, 8), "answer_type_output_bias": (3,)}


def encoder_values():
    shapes, rng = coverage.encoder_shapes(CONFIG), np.random.default_rng(0)
    return {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


@pytest.fixture(scope="module")
def values():
    """A task's weights: some special numbers among them, which must survive bit by bit."""
    rng = np.random.default_rng(1)
    heads = {name: rng.normal(size=shape).astype(np.float32) for name, shape in HEADS.items()}
    heads["answer_type_output_bias"][:] = [np.nan, -0.0, 1e-42]
    return {**encoder_values(), **heads}


@pytest.fixture(scope="module")
def released(tmp_path_factory, values):
    """Path of a checkpoint as the authors' programs write it, with training state."""
    folder = tmp_path_factory.mktemp("released")
    (folder / "etc_config.json").write_text(CONFIG.to_json_string(), encoding="utf-8")
    state = {"global_step": np.int64(7), "answer_type_output_bias/adam_m": np.zeros(3, np.float32)}
    return berts.write_released(str(folder), {**values, **state})


@pytest.fixture(scope="module")
def converted(tmp_path_factory, released):
    """A function of a format to (path, report) of the same checkpoint in it."""
    folder = tmp_path_factory.mktemp("converted")
    return functools.cache(lambda x: checkpoints.convert(released, str(folder / x), x))


@pytest.mark.parametrize("has_config", [True, False])
def test_a_longformer_is_no_bert_although_it_has_its_names(tmp_path, has_config):
    folder = longformers.write(tmp_path / "longformer", longformers.masked_lm())
    if not has_config:
        (folder / "config.json").unlink()
    model = modeling.EtcModel(CONFIG)
    message = (
        "is of a model of type 'longformer', whose weights fit no other one. Lifted are .*bert"
    )
    for use in (
        lambda: checkpoints.initialize(model, folder / "model.safetensors"),
        lambda: checkpoints.lift_bert(model, folder / "model.safetensors"),
        lambda: checkpoints.convert(folder / "model.safetensors", str(tmp_path / "new"), "tf2"),
    ):
        with pytest.raises(ValueError, match=message):
            use()


def arrays_of(path):
    source = sources.open_source(path)
    return {name: source.read(name) for name in source.shapes}


def assert_same_bits(got, expected):
    assert set(got) == set(expected)
    for name, value in expected.items():
        assert got[name].dtype == value.dtype
        assert got[name].shape == value.shape
        assert got[name].tobytes() == value.tobytes(), name


@pytest.mark.parametrize("first", FORMATS)
def test_every_way_round_keeps_every_bit(tmp_path, converted, values, first):
    there, report = converted(first)
    assert_same_bits(arrays_of(there), values)
    assert report.training_state == ("answer_type_output_bias/adam_m", "global_step")
    assert "global_step" not in sources.open_source(there).training_state
    for second in FORMATS:
        and_on, report = checkpoints.convert(there, str(tmp_path / second), second)
        assert_same_bits(arrays_of(and_on), values)
        assert set(report.loaded) == set(values)
    assert sorted(path.name for path in (tmp_path / "released").iterdir()) == [
        "etc_config.json",
        "model.ckpt.data-00000-of-00001",
        "model.ckpt.index",
    ]


@pytest.mark.parametrize("output_format", FORMATS)
def test_what_is_written_is_a_pretrained_model(converted, values, output_format):
    path, _ = converted(output_format)
    model = checkpoints.load_pretrained(os.path.dirname(path))
    assert model.config == CONFIG
    assert_same_values(model, values)
    if output_format == "tf2":  # Which TensorFlow reads, too.
        for variable in model.weights:
            variable.assign(tf.zeros_like(variable))
        tf.train.Checkpoint(model=model).read(path).assert_existing_objects_matched()
        assert_same_values(model, values)


def assert_same_values(model, values):
    for name, variable in checkpoints.release_names(model).items():
        np.testing.assert_array_equal(variable, values[name], err_msg=name)


@pytest.mark.parametrize("make", [led_models.model, genbert.model])
def test_folders_of_encoder_decoders_have_one_format(tmp_path, make):
    checkpoints.save_pretrained(make(), tmp_path / "one")
    with pytest.raises(ValueError, match="config.json is of a model with an encoder and a decoder"):
        checkpoints.convert(str(tmp_path / "one"), str(tmp_path / "two"), sources.RELEASED)
    assert not (tmp_path / "two").exists()


def test_other_types_and_scalars_survive(tmp_path):
    values = {
        "half": np.array([1.5, -2.25], np.float16),
        "brain": np.array([[1.5]], ml_dtypes.bfloat16),
        "count": np.array(3, np.int64),
        "flags": np.array([True, False]),
    }
    path = berts.write_released(str(tmp_path), values)
    there, _ = checkpoints.convert(path, str(tmp_path / "a"), "safetensors")
    back, _ = checkpoints.convert(there, str(tmp_path / "b"), "released")
    assert_same_bits(arrays_of(back), values)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("output_format", FORMATS)
def test_bert_becomes_etc(tmp_path, output_format):
    weights = berts.hugging_face_weights()
    path = berts.write_safetensors(tmp_path, weights)
    new, report = checkpoints.convert(path, str(tmp_path / "new"), output_format, config=CONFIG)
    tables = arrays_of(new)
    np.testing.assert_array_equal(
        tables["etc_document_bert/token_emb_lookup/embedding_table"],
        weights["bert.embeddings.word_embeddings.weight"],
    )
    assert set(tables) == set(encoder_values())
    assert "bert.pooler.dense.bias" in report.unused


@pytest.mark.parametrize("output_format", FORMATS)
def test_nothing_is_replaced_unless_allowed(tmp_path, released, values, output_format):
    folder = tmp_path / "new"
    path, _ = checkpoints.convert(released, str(folder), output_format)
    changed = {name: value + 1 for name, value in values.items()}
    other = berts.write_released(str(tmp_path), changed, "other")
    before = {file: file.read_bytes() for file in folder.iterdir()}
    with pytest.raises(ValueError, match=f"'{path}.*' exists already.*--overwrite"):
        checkpoints.convert(other, str(folder), output_format, config=CONFIG)
    assert {file: file.read_bytes() for file in folder.iterdir()} == before
    checkpoints.convert(other, str(folder), output_format, config=CONFIG, overwrite=True)
    assert_same_bits(arrays_of(path), changed)
    assert set(folder.iterdir()) == set(before)


def test_another_config_is_not_replaced(released, converted):
    folder = os.path.dirname(converted("released")[0])
    other = dataclasses.replace(CONFIG, local_radius=3)
    with pytest.raises(ValueError, match="etc_config.json' exists already"):
        checkpoints.convert(released, folder, "tf2", config=other)


@pytest.mark.parametrize("output_format", FORMATS)
def test_a_failure_leaves_nothing(tmp_path, released, output_format, monkeypatch):
    def fail(*args, **kwargs):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        checkpoints.convert(released, str(tmp_path / "new"), output_format)
    assert list((tmp_path / "new").iterdir()) == []


WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "River", "moor"]


def write_vocabulary(folder, words=WORDS):
    """Word pieces of cased text, with the settings of Hugging Face's tokenizer."""
    (folder / "vocab.txt").write_text("\n".join(words), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text('{"do_lower_case": false}')


class TestVocabulary:
    @pytest.fixture
    def source(self, tmp_path, released):
        folder = shutil.copytree(os.path.dirname(released), tmp_path / "source")
        write_vocabulary(folder)
        return folder

    @pytest.mark.parametrize("output_format", FORMATS)
    def test_it_goes_along_with_the_settings_of_its_tokenizer(
        self, tmp_path, source, output_format
    ):
        first, second = tmp_path / "first", tmp_path / "second"
        checkpoints.convert(str(source), str(first), output_format)
        checkpoints.convert(str(first), str(second), "released")
        for folder in (first, second):
            processor = checkpoints.load_pretrained(folder).processor
            tokens = processor(["River moor river"]).encodings[0].tokens
            assert tokens == ["[CLS]", "River", "moor", "[UNK]", "[SEP]"]  # Cased.

    def test_a_given_one_is_written_instead(self, tmp_path, source):
        (tmp_path / "mine.txt").write_text("\n".join(WORDS[::-1]), encoding="utf-8")
        new, given = tmp_path / "new", str(tmp_path / "mine.txt")
        with pytest.raises(ValueError, match="There is no vocabulary 'gone.txt'"):
            checkpoints.convert(str(source), str(new), "released", vocab_file="gone.txt")
        checkpoints.convert(str(source), str(new), "released", vocab_file=given)
        assert (new / "vocab.txt").read_text() == "\n".join(WORDS[::-1])
        assert not (new / "tokenizer_config.json").exists()

    def test_another_one_is_replaced_only_if_allowed_and_then_as_a_whole(self, tmp_path, source):
        new = tmp_path / "new"
        new.mkdir()
        (new / "spiece.model").write_bytes(b"another")
        with pytest.raises(ValueError, match="new/spiece.model' exists already"):
            checkpoints.convert(str(source), str(new), "released")
        assert [path.name for path in new.iterdir()] == ["spiece.model"]
        checkpoints.convert(str(source), str(new), "released", overwrite=True)
        assert not (new / "spiece.model").exists()
        assert (new / "vocab.txt").read_text() == "\n".join(WORDS)

    def test_a_second_format_goes_into_the_same_folder(self, source):
        checkpoints.convert(str(source), str(source), "safetensors")
        assert (source / "vocab.txt").read_text() == "\n".join(WORDS)
        assert {"model.ckpt.index", "model.safetensors"} < {x.name for x in source.iterdir()}


class TestRefusals:
    def test_objects_need_a_config(self, tmp_path, values):
        path = berts.write_released(str(tmp_path), values)
        with pytest.raises(ValueError, match="An object checkpoint needs the model's config"):
            checkpoints.convert(path, str(tmp_path / "new"), "tf2")

    def test_bert_needs_a_config(self, tmp_path):
        path = berts.write_safetensors(tmp_path, berts.hugging_face_weights())
        with pytest.raises(ValueError, match="Lifting BERT needs the config"):
            checkpoints.convert(path, str(tmp_path / "new"), "released")

    def test_objects_must_fit_the_config(self, tmp_path, values):
        table = "etc_document_bert/token_emb_lookup/embedding_table"
        bias = "etc_document_bert/long_emb_layer_norm/beta"
        kept = {name: value for name, value in values.items() if name != bias}
        path = berts.write_released(str(tmp_path), {**kept, table: np.zeros([9, 8], np.float32)})
        with pytest.raises(ValueError) as error:
            checkpoints.convert(path, str(tmp_path / "new"), "tf2", config=CONFIG)
        assert f"{table}: [11, 8] by the config, [9, 8] in the checkpoint" in str(error.value)
        assert f"{bias}: [8] by the config, not there" in str(error.value)

    def test_vocabularies_are_mapped_for_bert_only(self, tmp_path, released):
        with pytest.raises(ValueError, match="mapped for BERT only, and .* is of ETC"):
            checkpoints.convert(released, str(tmp_path / "new"), "tf2", token_rows=[0])

    def test_safetensors_are_written_to_disks(self, released):
        with pytest.raises(ValueError, match="written to local disks only"):
            checkpoints.convert(released, "ram://new", "safetensors")
