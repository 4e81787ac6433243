"""`EtcConfig`: its files, and what it refuses."""

import dataclasses
import json

import numpy as np
import pytest

from etcmodel.models import downloads, gmat, heads, modeling, presets
from tests.models import etcs
from tests.models.gmat import small as gmat_models
from tests.models.longformer import small as longformers
from tests.models.longt5 import models as longt5s

SMALL = etcs.config()

OURS = {
    "layer_norm_epsilon",
    "pad_token_id",
    "global_token_id",
    "default_segment_id",
    "global_block_length",
}


def test_a_config_survives_its_file(tmp_path):
    file = tmp_path / "etc_config.json"
    file.write_text(SMALL.to_json_string(), encoding="utf-8")
    assert modeling.EtcConfig.from_json_file(str(file)) == SMALL
    assert modeling.EtcConfig.from_dict(SMALL.to_dict()) == SMALL
    names = sorted(set(vars(SMALL)) - OURS)
    assert list(json.loads(SMALL.to_json_string())) == names  # The release's reader knows these.


@pytest.mark.parametrize(
    "entry, value",
    [
        ("layer_norm_epsilon", 1e-5),
        ("pad_token_id", 1),
        ("global_token_id", 0),
        ("default_segment_id", 0),
        ("global_block_length", 0),
    ],
)
def test_entries_that_the_release_has_not_are_written_where_they_differ(entry, value):
    assert entry in OURS
    config = dataclasses.replace(SMALL, **{entry: value})
    assert json.loads(config.to_json_string())[entry] == value
    assert modeling.EtcConfig.from_json_string(config.to_json_string()) == config


@pytest.mark.parametrize(
    "text, message",
    [
        ("{", "is not valid JSON: .*line 1"),
        ("[1]", "must hold a JSON object"),
        (
            '{"vocab_size": 9, "hidden_size": "8"}',
            "`hidden_size` must be of type int. Received: '8'",
        ),
        ('{"vocab_size": true}', "`vocab_size` must be of type int. Received: True"),
        (
            '{"vocab_size": 9, "embedding_size": 2.5}',
            "`embedding_size` must be of type int or null. Received: 2.5",
        ),
        (
            '{"vocab_size": 9, "initializer_range": "x"}',
            "`initializer_range` must be of type float. Received: 'x'",
        ),
        ('{"hidden_size": 8}', r"has no `vocab_size`. It has: \['hidden_size'\]"),
        ('{"vocab_size": 9}'.encode("utf-16"), "the text is in UTF-16: save it in UTF-8"),
        ("[" * 9000, "nested deeper than 100 levels"),
        ('{"vocab_size": ' + "9" * 5000 + "}", "an integer of too many digits"),
        (b'{"vocab_size": "\xff"}', "is not valid JSON: invalid UTF-8 at byte 17"),
    ],
)
def test_a_broken_config_file_is_named(tmp_path, text, message):
    file = tmp_path / "my_config.json"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ValueError, match=f"{file}.*{message}"):
        modeling.EtcConfig.from_json_file(str(file))


@pytest.mark.parametrize(
    "changes, message",
    [
        (
            {"relative_vocab_size": 7},
            "`relative_vocab_size` must be at least .* = 8. Received: relative_vocab_size=7, "
            "relative_pos_max_distance=2",
        ),
        ({"num_attention_heads": 3}, "must be a multiple .*hidden_size=8, num_attention_heads=3"),
        ({"hidden_act": "swoosh"}, "Unknown activation 'swoosh'"),
        (
            {"relative_pos_max_distance": 0, "relative_vocab_size": 2},
            "`relative_vocab_size` must be at least .* = 4. Received: relative_vocab_size=2, "
            "relative_pos_max_distance=0; null is for no labels",
        ),
        (
            {"relative_pos_max_distance": 1, "relative_vocab_size": None},
            "`relative_pos_max_distance` must be 0 where `relative_vocab_size` is null.*Received: "
            "relative_pos_max_distance=1",
        ),
        ({"hidden_size": "8"}, "`hidden_size` must be of type int. Received: '8'"),
        ({"num_hidden_layers": 2.0}, "`num_hidden_layers` must be of type int. Received: 2.0"),
        ({"use_hard_g2l_mask": 1}, "`use_hard_g2l_mask` must be of type bool. Received: 1"),
        ({"hidden_act": None}, "`hidden_act` must be of type str. Received: None"),
    ],
)
def test_a_config_that_fits_no_model_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        modeling.EtcModel(dataclasses.replace(SMALL, **changes))


@pytest.mark.parametrize(
    "name, value, least",
    [
        ("vocab_size", 0, 1),
        ("segment_vocab_size", -2, 1),
        ("embedding_size", 0, 1),
        ("hidden_size", 0, 1),
        ("num_hidden_layers", 0, 1),
        ("num_attention_heads", 0, 1),
        ("local_radius", 0, 1),
        ("att_size_per_head", -4, 1),
        ("relative_pos_max_distance", -1, 0),
        ("relative_vocab_size", 0, 1),
        ("max_absolute_position_embeddings", -1, 0),
        ("intermediate_size", 0, 1),
        ("initializer_range", -0.5, 0),
        ("initializer_range", float("nan"), 0),
        ("initializer_range", float("inf"), 0),
        ("grad_checkpointing_period", -1, 0),
    ],
)
def test_a_number_out_of_range_is_refused_when_a_model_is_made(name, value, least):
    config = dataclasses.replace(SMALL, **{name: value})
    with pytest.raises(ValueError, match=f"`{name}` must be at least {least}. Received: {value}$"):
        modeling.EtcModel(config)


def test_a_padding_id_outside_the_vocabulary_is_refused_when_a_model_is_made():
    size = SMALL.vocab_size
    with pytest.raises(ValueError, match=f"^`pad_token_id` must be below .*={size}. .*: {size}$"):
        modeling.EtcModel(dataclasses.replace(SMALL, pad_token_id=size))
    dataclasses.replace(SMALL, pad_token_id=size - 1).check()


@pytest.mark.parametrize("name", ["hidden_dropout_prob", "attention_probs_dropout_prob"])
@pytest.mark.parametrize("value", [2.0, -0.1, 1, float("nan")])
def test_a_probability_out_of_range_is_refused_when_a_model_is_made(name, value):
    config = dataclasses.replace(SMALL, **{name: value})
    with pytest.raises(ValueError, match=f"`{name}` must be at least 0 and below 1. .*: {value}$"):
        modeling.EtcModel(config)


def test_a_model_is_made_of_a_config():
    with pytest.raises(ValueError, match="`config` must be an `EtcConfig` or its dict. .*etc_b"):
        modeling.EtcModel("etc_base")
    assert modeling.EtcModel(SMALL.to_dict()).config == SMALL


def test_every_entry_is_checked():
    """A value of no use to any entry is refused, whichever entry has it."""
    for field in dataclasses.fields(SMALL):
        with pytest.raises(ValueError, match=f"`{field.name}` must be of type"):
            dataclasses.replace(SMALL, **{field.name: []}).check()


def test_numbers_of_numpy_are_numbers():
    config = dataclasses.replace(
        SMALL, vocab_size=np.int64(11), hidden_dropout_prob=np.float32(0.25), initializer_range=1
    )
    assert modeling.EtcModel(config).token_emb_lookup.vocab_size == 11
    python = dataclasses.replace(SMALL, hidden_dropout_prob=0.25, initializer_range=1)
    assert config.to_json_string() == python.to_json_string()
    assert modeling.EtcConfig.from_json_string(config.to_json_string()) == python


@pytest.mark.parametrize(
    "make",
    [
        lambda size, rate: gmat_models.config(hidden_size=size, hidden_dropout_prob=rate),
        lambda size, rate: longformers.config(attention_window=(size, 4), hidden_dropout_prob=rate),
        lambda size, rate: longt5s.config(d_model=size, dropout_rate=rate),
    ],
    ids=["gmat", "longformer", "longt5"],
)
def test_numbers_of_numpy_are_numbers_in_all_systems(make):
    config, python = make(np.int32(8), np.float32(0.25)), make(8, 0.25)
    assert config == python and config.to_json_string() == python.to_json_string()


@pytest.mark.parametrize("model_type", ["etc", "gmat"])
def test_a_model_of_numbers_of_numpy_comes_back_from_its_folder(model_type, tmp_path):
    """With a head, which has numbers of its own."""
    if model_type == "etc":
        config = dataclasses.replace(SMALL, vocab_size=np.int64(11), num_hidden_layers=np.int8(1))
        kind, ids = heads.EtcForSequenceClassification, np.array([[1, 2, 3]])
    else:
        config = gmat_models.config(vocab_size=np.int64(11), num_hidden_layers=np.int8(1))
        kind, ids = gmat.GmatForTokenClassification, {"input_ids": np.array([[1, 2, 3]])}
    model = kind(config, num_labels=np.int64(3), dropout=np.float32(0.25))
    model.save_pretrained(tmp_path)
    again = kind.from_pretrained(tmp_path)
    assert again.settings() == model.settings()
    assert (again.num_labels, again.dropout_rate) == (3, 0.25)
    assert again.encoder.config == model.encoder.config
    np.testing.assert_array_equal(again(ids), model(ids))


@pytest.mark.parametrize(
    "entries, kind",
    [
        ({"model_type": "bert", "vocab_size": 9, "max_position_embeddings": 512}, "'bert'"),
        ({"model_type": "longformer", "vocab_size": 9}, "'longformer'"),
        ({"model_type": "roberta", **SMALL.to_dict()}, "'roberta'"),
        ({"vocab_size": 9, "hidden_size": 8, "type_vocab_size": 2}, "'bert'"),
    ],
)
def test_the_config_of_another_kind_of_model_is_refused(tmp_path, entries, kind):
    """Reading what the two have in common would give a model that no weights fit."""
    file = tmp_path / "config.json"
    file.write_text(json.dumps(entries), encoding="utf-8")
    message = (
        f"{file}: This is the config of a model of type {kind}, not of ETC.*lift_bert.*--preset"
    )
    with pytest.raises(ValueError, match=message):
        modeling.EtcConfig.from_json_file(str(file))


@pytest.mark.parametrize(
    "path, name",
    [
        ("absent/etc_config.json", "NAME"),
        ("etc_large/etc_config.json", "etc_large"),
        ("etc_base_2x_pretrain_42relmaxdist/etc_config.json", "etc_base_2x_pretrain_42relmaxdist"),
    ],
)
def test_where_a_config_is_missing_the_download_is_named(tmp_path, path, name):
    with pytest.raises(ValueError) as error:
        modeling.EtcConfig.from_json_file(str(tmp_path / path))
    message = str(error.value)
    assert message.startswith(f"There is no config file '{tmp_path / path}'.")
    assert all(known in message for known in downloads.RELEASED_CHECKPOINTS)
    assert f"`etcmodel download {name}`" in message
    assert "\n" not in message


def test_a_directory_is_no_config(tmp_path):
    with pytest.raises(ValueError, match="is a directory: give the path of a config file"):
        modeling.EtcConfig.from_json_file(str(tmp_path))


class TestOwnership:
    """A config may be assigned to; models that were made of it do not notice."""

    def test_a_model_does_not_see_later_changes(self):
        config = dataclasses.replace(SMALL)
        model = modeling.EtcModel(config)
        config.hidden_size, config.use_hard_g2l_mask = 6, True
        model(np.array([[1, 2]]), np.array([[3]]))
        assert model.config == SMALL
        assert model.get_config()["config"] == SMALL.to_dict()

    def test_two_models_of_one_config_are_independent(self):
        config = dataclasses.replace(SMALL)
        first, second = (modeling.EtcModel(config) for _ in range(2))
        first.config.grad_checkpointing_period = 3
        assert second.config == config == SMALL

    def test_presets_hand_out_copies(self):
        before = presets.PRESETS["etc_base"]
        presets.PRESETS["etc_base"].hidden_size = 4
        presets.PRESETS.get("etc_base").hidden_size = 4
        for config in [*presets.PRESETS.values(), *dict(presets.PRESETS).values()]:
            config.hidden_size = 4
        assert presets.PRESETS["etc_base"] == before == presets.preset("etc_base")
        assert before.hidden_size == 768
