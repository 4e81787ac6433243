"""`CharLmConfig`: the paper's models, and its phases."""

import json

from etcmodel.models import encoders
from etcmodel.models.longformer_char_lm import PRESETS, CharLmConfig, phase_config
from tests.models.longformer_char_lm import char_models


def test_a_file_is_read_by_its_type(tmp_path):
    path = tmp_path / "config.json"
    config = char_models.config()
    path.write_text(config.to_json_string())
    assert encoders.read_config(str(path)) == config
    assert json.loads(path.read_text())["model_type"] == "longformer_char_lm"


def test_the_small_model_of_the_paper():
    """Table 12; windows whose mean is that of the ablation's fixed one, 230."""
    config = PRESETS["small"]
    assert config == CharLmConfig()
    assert config.windows == (32, 32, 64, 64, 128, 128, *[256] * 3, *[512] * 3)
    assert round(sum(config.windows) / 12) == 229
    dilated = [x if isinstance(x, tuple) else (x,) * 8 for x in config.dilations]
    assert [x[-1] for x in dilated] == [1] * 6 + [2, 2, 3, 3, 4, 4]
    assert all(x[:6] == (1,) * 6 and x[6] == x[7] for x in dilated)


def test_the_large_model_of_the_paper():
    config = PRESETS["large"]
    assert (config.num_hidden_layers, config.hidden_dropout_prob) == (30, 0.4)
    assert [config.windows.count(x) for x in (32, 64, 128, 256, 512)] == [6] * 5
    assert config.dilations[14:16] == (1, (1, 1, 1, 1, 1, 1, 2, 2))
    assert config.dilations[20][-1] == 3 and config.dilations[25][-1] == 4


def test_windows_double_from_phase_to_phase():
    last = phase_config(PRESETS["small"], 4)
    assert (last.windows[0], last.windows[-1]) == (512, 8192)
    assert last.dilations == PRESETS["small"].dilations
    assert phase_config(char_models.config(attention_window=3), 1).windows == (6, 6, 6)
