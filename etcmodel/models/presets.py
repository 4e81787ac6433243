"""Configs by name: the models of the paper, and released checkpoints of other systems."""

import collections
import copy
import dataclasses

from etcmodel.models import json_config
from etcmodel.models.config import EtcConfig

__all__ = ["CHECKPOINTS", "PRESETS", "preset"]

# The models of the paper (section 4.1, tables 2 and 8).

# The base models use BERT's uncased vocabulary, the large ones RoBERTa's. In "shared" models all
# four attention pieces have the same query, key, value and output projections. The hard g2l mask is
# on, as in the paper's default (section 4.2), but in the ablations without it.
_BASE = EtcConfig(vocab_size=30522, share_qkv_projections=False, use_hard_g2l_mask=True)
_LARGE = EtcConfig(
    vocab_size=50265,
    hidden_size=1024,
    num_hidden_layers=24,
    num_attention_heads=16,
    intermediate_size=4096,
    local_radius=169,
    relative_pos_max_distance=24,
    relative_vocab_size=64,
    share_qkv_projections=False,
    use_hard_g2l_mask=True,
)
_SHARED = {"share_qkv_projections": True, "share_att_output_projection": True}


class _Copies(collections.UserDict):
    """A dict that returns copies of its values, so that callers cannot change them."""

    def __getitem__(self, key):
        return copy.copy(super().__getitem__(key))


PRESETS = _Copies(
    {
        "etc_base": _BASE,
        "etc_base_no_hard_g2l": dataclasses.replace(_BASE, use_hard_g2l_mask=False),
        "etc_base_shared": dataclasses.replace(_BASE, **_SHARED),
        "etc_base_shared_no_hard_g2l": dataclasses.replace(
            _BASE, use_hard_g2l_mask=False, **_SHARED
        ),
        "etc_base_2x_local_radius": dataclasses.replace(_BASE, local_radius=169),
        "etc_base_2x_relative_vocab": dataclasses.replace(
            _BASE, relative_pos_max_distance=24, relative_vocab_size=64
        ),
        "etc_large": _LARGE,
        # Of the models that are not lifted (table 2: 539M). The paper does not say of what
        # vocabulary; that of BERT, its default, gives 538M.
        "etc_large_bert_vocab": dataclasses.replace(_LARGE, vocab_size=30522),
        "etc_large_shared": dataclasses.replace(_LARGE, **_SHARED),
    }
)


# Checkpoints of the Hugging Face Hub, as their own files say: (type, entries of the config).


def _longformer(size, layers, heads):
    entries = {
        "attention_window": 512,
        "vocab_size": 50265,
        "hidden_size": size,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "intermediate_size": 4 * size,
        "max_position_embeddings": 4098,
        "type_vocab_size": 1,
        "layer_norm_eps": 1e-5,
    }
    return "longformer", entries


def _of_two_sides(layers, heads, size):
    """The entries that LED, PEGASUS-X and BigBird-Pegasus name alike."""
    of_sides = {"layers": layers, "attention_heads": heads, "ffn_dim": size}
    return {f"{side}_{x}": of_sides[x] for side in ("encoder", "decoder") for x in of_sides}


def _led(size, layers, heads):
    sides = _of_two_sides(layers, heads, 4 * size)
    return "led", {"d_model": size, "attention_window": 1024, **sides}


def _longt5(attention, size, layers, heads, inner):
    entries = {
        "d_model": size,
        "num_layers": layers,
        "num_heads": heads,
        "d_ff": inner,
        "feed_forward_proj": "gated-gelu",
        "encoder_attention_type": attention,
        "decoder_start_token_id": 0,
        "tie_word_embeddings": False,
    }
    return "longt5", entries


def _pegasus_x(size, layers, heads):
    sides = _of_two_sides(layers, heads, 4 * size)
    activation = {"activation_function": "relu", "num_global_tokens": 128}
    return "pegasus_x", {"d_model": size, **sides, **activation}


def _bigbird(size, layers, heads):
    entries = {
        "hidden_size": size,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "intermediate_size": 4 * size,
    }
    return "big_bird", entries


def _modernbert(size, layers, heads, inner):
    entries = {
        "hidden_size": size,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "intermediate_size": inner,
        "classifier_pooling": "mean",
    }
    return "modernbert", entries


_GLOBAL, _LOCAL = "transient-global", "local"
CHECKPOINTS = {
    "allenai/led-base-16384": _led(768, 6, 12),
    "allenai/led-large-16384": _led(1024, 12, 16),
    "allenai/longformer-base-4096": _longformer(768, 12, 12),
    "allenai/longformer-large-4096": _longformer(1024, 24, 16),
    "answerdotai/ModernBERT-base": _modernbert(768, 22, 12, 1152),
    "answerdotai/ModernBERT-large": _modernbert(1024, 28, 16, 2624),
    "google/bigbird-pegasus-large-arxiv": ("bigbird_pegasus", {}),
    "google/bigbird-roberta-base": _bigbird(768, 12, 12),
    "google/bigbird-roberta-large": _bigbird(1024, 24, 16),
    "google/long-t5-local-base": _longt5(_LOCAL, 768, 12, 12, 2048),
    "google/long-t5-local-large": _longt5(_LOCAL, 1024, 24, 16, 2816),
    "google/long-t5-tglobal-base": _longt5(_GLOBAL, 768, 12, 12, 2048),
    "google/long-t5-tglobal-large": _longt5(_GLOBAL, 1024, 24, 16, 2816),
    "google/long-t5-tglobal-xl": _longt5(_GLOBAL, 2048, 24, 32, 5120),
    "google/pegasus-x-base": _pegasus_x(768, 12, 12),
    "google/pegasus-x-large": _pegasus_x(1024, 16, 16),
}


def preset(name, **changes):
    """Returns a config by name; nothing is downloaded.

    Args:
        name: str. A key of `PRESETS`, the models of the paper, or of `CHECKPOINTS`.
        **changes: entries of the config to change.
    Returns:
        A new `EtcConfig`, or the config of the checkpoint's system.
    Raises:
        ValueError: if there is no such preset; naming the entry, if one is invalid.

    >>> from etcmodel.models import presets
    >>> presets.preset("google/pegasus-x-base").d_model
    768
    """
    if name in PRESETS:
        json_config.check_changes(PRESETS[name], changes)
        return dataclasses.replace(PRESETS[name], **changes)
    if name not in CHECKPOINTS:
        known = sorted([*PRESETS, *CHECKPOINTS])
        raise ValueError(f"`name` must be one of {known}. Received: {name!r}")
    from etcmodel.models import encoders  # With TensorFlow, which configs of ETC do not need.

    model_type, entries = CHECKPOINTS[name]
    config_class = encoders.encoder_type(model_type).config_class
    json_config.check_changes(config_class, changes)
    return config_class(**{**entries, **changes})
