"""Which encoder a config means, and a system of one's own, as the page on extending adds it."""

import dataclasses
import json

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

import etcmodel
from etcmodel import checkpoints
from etcmodel.checkpoints import conversion, release_names, sources, writing
from etcmodel.models import encoders, initialization, input_utils, modeling, systems
from etcmodel.models.heads import base as heads_base
from etcmodel.tasks.hotpotqa.model import HotpotQaModel
from tests import page
from tests.checkpoints import berts
from tests.models import etcs

ETC = etcs.entries(relative_pos_max_distance=1, relative_vocab_size=6)
OWN = {
    "model_type": "window_bert",
    "vocab_size": 11,
    **etcs.sizes(num_hidden_layers=2),
    "radius": 1,
}
IDS = np.array([[1, 2, 3, 4, 5], [6, 7, 8, 9, 10]])


@pytest.fixture(scope="module")
def defined():
    """What the code blocks of the page define, run one after the other."""
    names, before = {"__name__": "page"}, dict(systems._SYSTEMS)
    heads_before = dict(heads_base._HEADS)
    for block in page.code("Add a head", "Add a system"):
        exec(compile(block, str(page.PAGE), "exec"), names)
    yield names
    for registry, kept in ((systems._SYSTEMS, before), (heads_base._HEADS, heads_before)):
        registry.clear()
        registry.update(kept)


def test_a_config_without_a_type_is_of_etc(tmp_path):
    file = tmp_path / "etc_config.json"
    file.write_text(json.dumps(ETC))
    config = encoders.read_config(str(file))
    assert config == modeling.EtcConfig(**ETC)
    assert isinstance(encoders.make_encoder(config), modeling.EtcModel)
    assert encoders.config_from_dict({**ETC, "model_type": "etc"}) == config
    # The release's reader gets no entry that it does not know.
    assert "model_type" not in json.loads(config.to_json_string())


def test_an_unknown_type_is_refused_in_a_line_that_names_the_file_and_the_known_types(tmp_path):
    file = tmp_path / "etc_config.json"
    file.write_text(json.dumps({**ETC, "model_type": "reformer"}))
    message = f"^{file}: There is no encoder of `model_type` 'reformer'; the known types are"
    for read in (
        lambda: encoders.read_config(str(file)),
        lambda: etcmodel.load_pretrained(str(tmp_path)),
    ):
        with pytest.raises(ValueError, match=message) as raised:
            read()
        assert "\n" not in str(raised.value)


@pytest.mark.parametrize("text, message", [("[]", "must hold a JSON object"), ("{", "not valid")])
def test_what_is_no_config_is_refused_by_name(tmp_path, text, message):
    file = tmp_path / "some.json"
    file.write_text(text)
    with pytest.raises(ValueError, match=f"^{file} .*{message}"):
        encoders.read_config(str(file))


def test_two_systems_cannot_have_one_type():
    known = encoders.encoder_type("etc")
    encoders.register(known)
    with pytest.raises(ValueError, match="There is another encoder of `model_type` 'etc'"):
        encoders.register(dataclasses.replace(known, scope="other"))


def test_a_config_is_replaced_entry_by_entry():
    config = modeling.EtcConfig(**ETC)
    assert encoders.replace(config, local_radius=5).local_radius == 5
    assert config.local_radius == 2
    with pytest.raises(ValueError, match="A config of type 'etc' has no `radius`"):
        encoders.replace(config, radius=5)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"radius": 0}, "some.json: `radius` must be at least 1. Received: 0"),
        ({"radius": "1"}, "some.json: `radius` must be of type int. Received: '1'"),
        ({"dilation": 2}, "some.json: unknown settings, .*: dilation=2. Remove"),
        ({"vocab_size": None}, "some.json: The config has no `vocab_size`. It has: "),
    ],
)
def test_a_frozen_config_is_checked_when_it_is_read(defined, changes, message):
    entries = {name: v for name, v in {**OWN, **changes}.items() if v is not None}
    with pytest.raises(ValueError, match=message):
        encoders.config_from_dict(entries, "some.json")


def test_the_config_of_a_system_says_its_type(defined):
    config = encoders.config_from_dict(OWN)
    assert isinstance(config, defined["WindowBertConfig"])
    assert json.loads(config.to_json_string())["model_type"] == "window_bert"
    assert encoders.config_from_json_string(config.to_json_string()) == config
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.radius = 3


@pytest.mark.parametrize(
    "first, second", [(sources.RELEASED, sources.SAFETENSORS), (sources.OBJECTS, sources.RELEASED)]
)
def test_weights_of_a_system_go_through_every_format(defined, tmp_path, first, second):
    config = encoders.config_from_dict({**OWN, "grad_checkpointing_period": 1})
    model = encoders.build_encoder(config)
    expected = model(IDS)
    values = {name: variable.numpy() for name, variable in release_names(model).items()}
    assert all(name.startswith("window_bert/") for name in values)
    writing.write(values, str(tmp_path / "one"), first, config=config)
    path, report = conversion.convert(str(tmp_path / "one"), str(tmp_path / "two"), second)
    assert len(report.loaded) == len(values) == len(model.weights) and path.startswith(
        str(tmp_path / "two")
    )
    loaded = etcmodel.load_pretrained(str(tmp_path / "two"))
    assert isinstance(loaded, defined["WindowBert"]) and loaded.config == config
    np.testing.assert_array_equal(loaded(IDS), expected)


def test_tasks_refuse_an_encoder_without_global_tokens(defined):
    config = encoders.config_from_dict(OWN)
    message = (
        "needs an encoder of a long and a global input, of `model_type` 'etc' or 'etc_modernbert'. "
        "Received a "
    )
    with pytest.raises(ValueError, match=f"{message}config of type 'window_bert'"):
        encoders.make_global_local_encoder(config)
    with pytest.raises(ValueError, match=message):
        HotpotQaModel(config)


def test_what_is_of_etc_alone_says_so_to_other_systems(defined, tmp_path):
    model = encoders.build_encoder(encoders.config_from_dict(OWN))
    with pytest.raises(ValueError, match="is for ETC's attention. .* of type 'window_bert'"):
        initialization.mimetic_initialization(model)
    path = berts.write_safetensors(tmp_path, berts.hugging_face_weights())
    with pytest.raises(ValueError, match="lifted into ETC only. The model is of type 'window_bert"):
        checkpoints.lift_bert(model, path)


def test_tokens_of_the_page_s_system_see_as_far_as_its_layers_reach(defined):
    model = encoders.build_encoder(encoders.config_from_dict(OWN))
    rng = np.random.default_rng(0)
    model.set_weights([rng.normal(scale=0.5, size=w.shape) for w in model.get_weights()])
    changed = IDS.copy()
    changed[0, 0] = 9
    is_other = np.abs(model(IDS) - model(changed)).max(-1) > 1e-6
    # Two layers of radius 1.
    np.testing.assert_array_equal(is_other, [[1, 1, 1, 0, 0], [0, 0, 0, 0, 0]])


def test_the_page_s_heads_are_those_of_either_kind(defined):
    model = defined["SentenceRanker"](modeling.EtcConfig(**ETC))
    links = np.array([[0, 0, 1, 1, 2]] * 2)
    outputs = model({"token_ids": IDS, "global_token_ids": IDS[:, :3], "sentence_ids": links})
    structure = input_utils.make_structure_from_example_ids(
        np.ones([2, 5], int), np.ones([2, 3], int), links, ETC["relative_pos_max_distance"]
    )
    long_output, global_output = model.encoder(IDS, IDS[:, :3], structure=structure)
    names = release_names(model)
    head = model.sentence_head
    expected = global_output.numpy() @ head.kernel.numpy()[0] + head.bias.numpy()[0]
    np.testing.assert_allclose(outputs["sentence_logits"], expected, atol=1e-5)
    kernel, bias = names["evidence/weights"].numpy(), names["evidence/bias"].numpy()
    logits = long_output.numpy() @ kernel.T + bias
    np.testing.assert_allclose(outputs["begin"], logits[:, :, 0], atol=1e-5)
    np.testing.assert_allclose(outputs["end"], logits[:, :, 1], atol=1e-5)


@pytest.mark.slow
def test_the_page_s_model_with_a_head_learns_and_comes_back_from_its_folder(defined, tmp_path):
    without = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    config = modeling.EtcConfig(**ETC, **without, global_block_length=2)
    model = defined["EtcForSentenceOrder"](config)
    hidden = model.encoder(**model.encoder.structure(IDS))[1]
    expected = hidden @ model.pairs.kernel @ tf.transpose(hidden, [0, 2, 1])
    np.testing.assert_allclose(model(IDS), expected, atol=1e-5)
    following = np.array([[1, 2, -1], [2, 0, -1]])
    model.compile(tf_keras.optimizers.Adam(0.01))
    before, *_, after = model.fit(IDS, following, epochs=40, verbose=0).history["loss"]
    assert after < before / 2
    model.save_pretrained(str(tmp_path))
    again = etcmodel.from_pretrained(str(tmp_path))
    assert type(again) is type(model)
    np.testing.assert_array_equal(again(IDS), model(IDS))


def test_the_page_s_pairs_are_bilinear(defined):
    one, other = (tf.random.stateless_normal([2, length, 8], [0, 0]) for length in (5, 3))
    pairs = defined["BilinearLogits"]()
    np.testing.assert_allclose(
        pairs(one, other), one @ pairs.kernel @ tf.transpose(other, [0, 2, 1]), atol=1e-4
    )
