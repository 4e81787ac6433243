"""Folders of models with an encoder and a decoder: what they become, and what is written.

That tensors come and go byte by byte is in `test_hugging_face_files.py`.
"""

import functools
import json
import shutil
from typing import NamedTuple

import numpy as np
import pytest

import etcmodel
from etcmodel.models.led import LedForConditionalGeneration, LedForQuestionAnswering, LedModel
from etcmodel.models.pegasus_x import PegasusXForConditionalGeneration, PegasusXModel
from tests.checkpoints.tensor_files import rewrite, tensors_of
from tests.models.led import models as leds
from tests.models.longt5 import models as longt5s
from tests.models.pegasus_x import models as pegasus_xs
from tests.reference import cases


class System(NamedTuple):
    """What the tests know of one.

    Attributes:
        models: module that makes small ones.
        sizes: dict of entries of one with a layer.
        prefix: str, before the names of a model with a head.
        changes: dict of entries with which the same weights compute something else.
        unfit: dict of an entry with which they do not fit.
        told: str. What is then told.
    """

    models: object
    sizes: dict
    prefix: str
    changes: dict
    unfit: dict
    told: str


OF_ONE = {"encoder_layers": 1, "decoder_layers": 1}
SYSTEMS = {
    "longt5": System(
        longt5s,
        {"num_layers": 1},
        "",
        {"local_radius": 9, "dropout_rate": 0.2},
        {"d_ff": 25},
        r"wi_0.weight: \[24, 16\] in the file, \[25, 16\] in the model",
    ),
    "led": System(
        leds,
        {**OF_ONE, "attention_window": 4},
        "led.",
        {"attention_window": 8, "global_positions": (0,)},
        {"max_encoder_position_embeddings": 62},
        r"embed_positions.weight: \[60, 16\] in the file, \[62, 16\] in the model",
    ),
    "pegasus_x": System(
        pegasus_xs,
        OF_ONE,
        "model.",
        {"block_size": 6, "stagger_local_blocks": False},
        {"num_global_tokens": 4},
        r"embed_global.weight: \[3, 16\] in the file, \[4, 16\] in the model",
    ),
}


@functools.cache
def model_of(name):
    return SYSTEMS[name].models.model(**SYSTEMS[name].sizes)  # It is only read.


def outputs(name, model, **options):
    models = SYSTEMS[name].models
    return model(models.ids(2, 9), labels=models.ids(2, 3, seed=1), **options)


def logits(name, model):
    return outputs(name, model)["logits"].numpy()


@functools.cache
def wanted(name):
    return logits(name, model_of(name))


@pytest.fixture
def folder_of(tmp_path):
    """A function of a system's name to a model in a folder, as Hugging Face's."""

    def made(name):
        etcmodel.save_pretrained(model_of(name), tmp_path / "model")
        return tmp_path / "model"

    return made


def config_in(folder):
    return json.loads((folder / "config.json").read_text())


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("name", SYSTEMS)
def test_the_only_embeddings_may_have_another_name(name, folder_of):
    folder, prefix = folder_of(name), SYSTEMS[name].prefix

    def change(tensors):
        tensors[f"{prefix}decoder.embed_tokens.weight"] = tensors.pop(f"{prefix}shared.weight")

    rewrite(folder, change)
    model = etcmodel.from_pretrained(folder)
    assert type(model) is type(model_of(name))
    np.testing.assert_array_equal(logits(name, model), wanted(name))


@pytest.mark.parametrize("name", SYSTEMS)
def test_entries_may_be_others_at_load_time_as_long_as_the_weights_fit(name, folder_of):
    folder, system = folder_of(name), SYSTEMS[name]
    model = etcmodel.from_pretrained(folder, **system.changes)
    assert np.abs(logits(name, model) - wanted(name)).max() > 1e-4
    for entry, value in system.changes.items():
        assert getattr(model.config, entry) in (value, (value,))
    with pytest.raises(ValueError, match=system.told) as error:
        etcmodel.from_pretrained(folder, **system.unfit)
    assert "\n" not in str(error.value)
    with pytest.raises(ValueError, match="has no `radius`"):
        etcmodel.from_pretrained(folder, radius=9)
    other = LedModel if name == "pegasus_x" else etcmodel.EtcModel
    with pytest.raises(ValueError, match=rf"of class \w+. Wanted: {other.__name__}"):
        etcmodel.from_pretrained(folder, as_class=other)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize(
    "name, bare_class, head_class, of_head",
    [
        ("led", LedModel, LedForConditionalGeneration, {"final_logits_bias"}),
        ("pegasus_x", PegasusXModel, PegasusXForConditionalGeneration, set()),
    ],
)
def test_names_have_a_prefix_where_there_is_a_head(
    name, bare_class, head_class, of_head, folder_of, tmp_path
):
    folder, bare = folder_of(name), tmp_path / "bare"
    etcmodel.from_pretrained(folder, as_class=bare_class).save_pretrained(bare)
    assert config_in(bare)["architectures"] == [bare_class.__name__.replace("Led", "LED")]
    whole, found = tensors_of(folder), tensors_of(bare)
    assert set(whole) == {SYSTEMS[name].prefix + x for x in found} | of_head
    for x, value in found.items():
        assert value.tobytes() == whole[SYSTEMS[name].prefix + x].tobytes()
    assert type(etcmodel.from_pretrained(bare)) is bare_class
    again = logits(name, head_class.from_pretrained(bare))
    if of_head:
        np.testing.assert_allclose(again + whole["final_logits_bias"][0], wanted(name), atol=1e-5)
    else:
        np.testing.assert_array_equal(again, wanted(name))


# LongT5.


def test_a_longt5_is_written_as_hugging_faces(folder_of):
    folder = folder_of("longt5")
    assert sorted(path.name for path in folder.iterdir()) == ["config.json", "model.safetensors"]
    entries = config_in(folder)
    assert entries["architectures"] == ["LongT5ForConditionalGeneration"]
    assert "scale_decoder_outputs" not in entries  # Hugging Face's would not scale with a None.
    assert etcmodel.from_pretrained(folder).config.scale_decoder_outputs is True
    query = "encoder.block.0.layer.0.TransientGlobalSelfAttention.q.weight"
    assert tensors_of(folder)[query].shape == (12, 16)


def test_a_file_of_an_older_version_may_have_strays(folder_of, tmp_path):
    folder = folder_of("longt5")
    names, stray = set(tensors_of(folder)), "decoder.block.0.layer.1.EncDecAttention"
    name = f"{stray}.relative_attention_bias.weight"
    rewrite(folder, lambda tensors: tensors.update({name: np.ones((8, 2), np.float32)}))
    etcmodel.save_pretrained(etcmodel.from_pretrained(folder), tmp_path / "again")
    assert set(tensors_of(tmp_path / "again")) == names


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("is_tied", [True, False])
def test_an_output_matrix_of_its_own_is_kept_whatever_the_config_says(folder_of, tmp_path, is_tied):
    folder = folder_of("longt5")
    config = {**config_in(folder), "tie_word_embeddings": is_tied}
    (folder / "config.json").write_text(json.dumps(config))
    head = np.random.default_rng(3).normal(size=(longt5s.VOCAB_SIZE, 16)).astype(np.float32)
    rewrite(folder, lambda tensors: tensors.update({"lm_head.weight": head}))
    model = etcmodel.from_pretrained(folder)
    assert not model.config.tie_word_embeddings
    found = outputs("longt5", model, output_hidden_states=True)
    hidden = found["decoder_hidden_states"][-1]
    scale = 16**-0.5 if is_tied else 1.0
    np.testing.assert_allclose(found["logits"], scale * hidden @ head.T, atol=1e-5)
    etcmodel.save_pretrained(model, tmp_path / "again")
    assert tensors_of(tmp_path / "again")["lm_head.weight"].tobytes() == head.tobytes()
    again = etcmodel.from_pretrained(tmp_path / "again")
    np.testing.assert_array_equal(logits("longt5", again), found["logits"])


def test_types_that_cannot_be_are_refused(folder_of):
    folder = folder_of("longt5")
    entries = {**longt5s.config().to_dict(), "model_type": "t6"}
    (folder / "config.json").write_text(json.dumps(entries))
    with pytest.raises(ValueError, match="holds another model: 'config.json'"):
        etcmodel.save_pretrained(model_of("longt5"), folder)
    for kind in (["longt5"], {"longt5": 1}, 5):
        (folder / "config.json").write_text(json.dumps({**entries, "model_type": kind}))
        with pytest.raises(ValueError, match="models of type .* cannot be read") as error:
            etcmodel.from_pretrained(folder)
        assert "\n" not in str(error.value)


# LED.


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("made_by", [LedModel, LedForQuestionAnswering])
def test_a_folder_becomes_the_class_that_it_names(made_by, tmp_path):
    model, ids = leds.model(made_by, **SYSTEMS["led"].sizes), leds.ids(2, 9)
    model.save_pretrained(tmp_path)
    again = etcmodel.from_pretrained(tmp_path)
    assert type(again) is made_by
    one, other = model(ids), again(ids)
    for name, value in one.items():
        np.testing.assert_array_equal(value, other[name])


def test_another_head_begins_fresh(folder_of):
    folder = folder_of("led")
    model = LedForQuestionAnswering.from_pretrained(folder)
    table = model.get_token_embedding_table()
    np.testing.assert_array_equal(table, tensors_of(folder)["led.shared.weight"])
    assert not model.span.bias.numpy().any()


def test_a_head_that_there_is_not_is_never_another_one(folder_of):
    folder = folder_of("led")
    entries = config_in(folder)

    def name(architecture):
        text = json.dumps({**entries, "architectures": [architecture]})
        (folder / "config.json").write_text(text)

    name("LEDForSequenceClassification")
    message = "config.json: `architectures` names LEDForSequenceClassification, of which there is"
    with pytest.raises(ValueError, match=message):
        etcmodel.from_pretrained(folder)
    assert type(LedModel.from_pretrained(folder)) is LedModel
    for architecture in ("TFLEDForConditionalGeneration", "LEDModel"):
        name(architecture)
        assert type(etcmodel.from_pretrained(folder)).architecture in architecture


def test_the_bias_of_the_logits_may_be_missing(folder_of):
    folder = folder_of("led")
    expected = wanted("led") - tensors_of(folder)["final_logits_bias"]
    rewrite(folder, lambda tensors: tensors.pop("final_logits_bias"))
    found = logits("led", etcmodel.from_pretrained(folder))
    np.testing.assert_allclose(found, expected, atol=1e-5)


def with_tokenizer(folder):
    for name in ("vocab.json", "merges.txt"):
        shutil.copyfile(cases.resolve("longformer", f"tokenizer/{name}"), folder / name)
    return folder


def test_the_tokenizer_comes_and_goes_with_the_model(tmp_path):
    leds.model(vocab_size=2000).save_pretrained(tmp_path / "model")
    model = etcmodel.from_pretrained(with_tokenizer(tmp_path / "model"))
    assert model.processor.config.max_length == model.config.max_encoder_position_embeddings
    batch = model.processor(["A text.", "Another"])
    assert set(batch) == {"input_ids", "attention_mask"}  # `global_positions` say what is global.
    model.save_pretrained(tmp_path / "again")
    again = etcmodel.from_pretrained(tmp_path / "again").processor(["A text.", "Another"])
    for name, value in batch.items():
        np.testing.assert_array_equal(value, again[name])


def test_more_tokens_than_the_model_has_are_refused(folder_of):
    folder = with_tokenizer(folder_of("led"))
    with pytest.raises(ValueError, match="vocabulary has 2000 tokens, .* `vocab_size`, 30"):
        etcmodel.from_pretrained(folder)


def test_half_a_head_is_an_error(tmp_path):
    leds.model(LedForQuestionAnswering).save_pretrained(tmp_path)
    rewrite(tmp_path, lambda tensors: tensors.pop("qa_outputs.bias"))
    with pytest.raises(ValueError, match="lacks weights of .*: qa_outputs.bias"):
        etcmodel.from_pretrained(tmp_path)


# PEGASUS-X.


def test_the_files_of_a_vocabulary_that_cannot_be_read_stay_with_the_model(folder_of, tmp_path):
    folder = folder_of("pegasus_x")
    content = {"spiece.model": b"pieces", "tokenizer_config.json": b'{"offset": 103}'}
    for name, value in content.items():
        (folder / name).write_bytes(value)
    model = etcmodel.load_pretrained(folder)
    with pytest.raises(ValueError, match="has no processor: .* is no SentencePiece model"):
        model.processor("A text.")
    model.save_pretrained(tmp_path / "again")
    for name, value in content.items():
        assert (tmp_path / "again" / name).read_bytes() == value
