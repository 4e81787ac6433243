"""`EtcConfig`: its files, and what it refuses."""

import dataclasses
import json

import pytest
from absl import logging

from etcmodel.models import modeling

SMALL = modeling.EtcConfig(
    vocab_size=11,
    hidden_size=8,
    num_attention_heads=2,
    relative_pos_max_distance=2,
    relative_vocab_size=8,
)


def test_a_config_survives_its_file(tmp_path):
    file = tmp_path / "etc_config.json"
    file.write_text(SMALL.to_json_string(), encoding="utf-8")
    assert modeling.EtcConfig.from_json_file(str(file)) == SMALL
    assert modeling.EtcConfig.from_dict(SMALL.to_dict()) == SMALL
    assert list(json.loads(SMALL.to_json_string())) == sorted(vars(SMALL))


def test_unknown_entries_are_logged_and_ignored(monkeypatch):
    logged = []
    monkeypatch.setattr(logging, "warning", lambda text, *args: logged.append(text % args))
    config = modeling.EtcConfig.from_dict({**SMALL.to_dict(), "pooler_type": 1, "extra": 2})
    assert config == SMALL
    assert logged == ["Ignored unknown entries of the config: extra, pooler_type"]


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
    ],
)
def test_a_broken_config_file_is_named(tmp_path, text, message):
    file = tmp_path / "my_config.json"
    file.write_text(text, encoding="utf-8")
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
    ],
)
def test_a_config_that_fits_no_model_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        modeling.EtcModel(dataclasses.replace(SMALL, **changes))
