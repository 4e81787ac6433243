"""`ModernBertConfig`: which layers are full, as counted or as listed."""

import dataclasses
import json

import pytest

import etcmodel
from etcmodel.models import encoders
from etcmodel.models.modernbert.config import FULL, SLIDING
from tests.models.modernbert import small

IRREGULAR = (SLIDING, FULL, FULL, SLIDING)


def full_places(config):
    return [place for place, kind in enumerate(config.layer_kinds) if kind == FULL]


@pytest.mark.parametrize("replace", [dataclasses.replace, encoders.replace])
@pytest.mark.parametrize("listed", [None, (FULL, SLIDING, SLIDING, FULL)])
def test_counted_layers_follow_changes(replace, listed):
    config = small.config(layer_types=listed)
    assert full_places(config) == [0, 3]
    assert full_places(replace(config, global_attn_every_n_layers=2)) == [0, 2]
    assert full_places(replace(config, global_attn_every_n_layers=1)) == [0, 1, 2, 3]
    assert full_places(replace(config, num_hidden_layers=8)) == [0, 3, 6]
    assert full_places(replace(config, layer_types=[FULL, SLIDING] * 2)) == [0, 2]


def test_a_list_of_layers_counts_and_tells_its_number():
    config = small.config(layer_types=[FULL, SLIDING] * 2, global_attn_every_n_layers=3)
    assert config.global_attn_every_n_layers == 2
    assert config == small.config(global_attn_every_n_layers=2)


def test_an_irregular_list_stays_until_another_is_given():
    config = small.config(layer_types=list(IRREGULAR))
    assert config.layer_kinds == config.layer_types == IRREGULAR
    with pytest.raises(ValueError, match=r"does not give these `layer_types`. .* give `layer_t"):
        encoders.replace(config, global_attn_every_n_layers=3)
    with pytest.raises(ValueError, match="`layer_types` must be .* for each of 2 layers"):
        encoders.replace(config, num_hidden_layers=2)
    assert full_places(encoders.replace(config, layer_types=None)) == [0, 3]
    assert full_places(encoders.replace(config, layer_types=[FULL] * 4)) == [0, 1, 2, 3]
    changes = {"layer_types": IRREGULAR, "global_attn_every_n_layers": None}
    assert encoders.replace(small.config(), **changes) == config


@pytest.mark.parametrize("listed", [None, [FULL, SLIDING] * 2, IRREGULAR])
def test_files_have_both_forms(listed):
    config = small.config(layer_types=listed)
    entries = json.loads(config.to_json_string())
    assert tuple(entries["layer_types"]) == config.layer_kinds
    assert entries.get("global_attn_every_n_layers") == config.global_attn_every_n_layers
    assert small.ModernBertConfig.from_dict(entries) == config
    # The list counts, as in Hugging Face's library.
    assert small.ModernBertConfig.from_dict({**entries, "global_attn_every_n_layers": 4}) == config


def test_a_folders_layers_follow_what_is_asked_for(tmp_path):
    small.model().save_pretrained(tmp_path)
    every = etcmodel.from_pretrained(tmp_path, global_attn_every_n_layers=1)
    assert full_places(every.config) == [0, 1, 2, 3]
    assert len(etcmodel.from_pretrained(tmp_path, num_hidden_layers=2).layers.attention_layers) == 2
