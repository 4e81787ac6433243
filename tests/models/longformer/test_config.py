"""`LongformerConfig`: Hugging Face's files, and what cannot be."""

import json

import pytest

from etcmodel.models import encoders
from etcmodel.models.longformer import LongformerConfig
from tests.models.longformer import small

# As of longformer-base-4096, with entries that the model has no use for.
BASE = {
    "attention_mode": "longformer",
    "attention_probs_dropout_prob": 0.1,
    "attention_window": [512] * 12,
    "bos_token_id": 0,
    "eos_token_id": 2,
    "gradient_checkpointing": False,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "hidden_size": 768,
    "ignore_attention_mask": False,
    "initializer_range": 0.02,
    "intermediate_size": 3072,
    "layer_norm_eps": 1e-05,
    "max_position_embeddings": 4098,
    "model_type": "longformer",
    "num_attention_heads": 12,
    "num_hidden_layers": 12,
    "pad_token_id": 1,
    "sep_token_id": 2,
    "type_vocab_size": 1,
    "vocab_size": 50265,
}


def test_a_file_of_hugging_face(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(BASE))
    config = encoders.read_config(str(path))
    assert isinstance(config, LongformerConfig)
    assert config.radii == (256,) * 12
    assert (config.layer_norm_eps, config.activation) == (1e-5, "gelu_exact")
    assert LongformerConfig.from_dict(json.loads(config.to_json_string())) == config
    assert not {"attention_dilation", "autoregressive"} & set(config.to_dict())


def test_entries_of_our_own_are_kept():
    config = small.config(attention_dilation=(1, (2, 3)), autoregressive=True)
    assert LongformerConfig.from_dict(json.loads(config.to_json_string())) == config
    assert config.dilations == (1, (2, 3))


@pytest.mark.parametrize("name", ["vocab_size", "attention_window", "max_position_embeddings"])
def test_no_size_is_guessed(name):
    entries = {key: value for key, value in BASE.items() if key != name}
    with pytest.raises(ValueError, match=f"The config has no `{name}`"):
        LongformerConfig.from_dict(entries)


def test_only_tables_of_positions_are_read():
    for kind in ("absolute", None):
        LongformerConfig.from_dict({**BASE, "position_embedding_type": kind})
    message = "`position_embedding_type` must be 'absolute', .* Received: 'relative_key'"
    with pytest.raises(ValueError, match=message):
        LongformerConfig.from_dict({**BASE, "position_embedding_type": "relative_key"})
