"""The models of the paper by name (section 4.1, tables 2 and 8)."""

import collections
import copy
import dataclasses

from etcmodel.models.config import EtcConfig

__all__ = ["PRESETS", "preset"]

# The base models use BERT's uncased vocabulary, the large ones RoBERTa's. In "shared" models all
# four attention pieces have the same query, key, value and output projections.
_BASE = EtcConfig(vocab_size=30522, share_qkv_projections=False)
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
)
_SHARED = {"share_qkv_projections": True, "share_att_output_projection": True}


class _Copies(collections.UserDict):
    """A dict that returns copies of its values, so that callers cannot change them."""

    def __getitem__(self, key):
        return copy.copy(super().__getitem__(key))


PRESETS = _Copies(
    {
        "etc_base": _BASE,
        "etc_base_shared": dataclasses.replace(_BASE, **_SHARED),
        "etc_base_2x_local_radius": dataclasses.replace(_BASE, local_radius=169),
        "etc_base_2x_relative_vocab": dataclasses.replace(
            _BASE, relative_pos_max_distance=24, relative_vocab_size=64
        ),
        "etc_large": _LARGE,
        "etc_large_shared": dataclasses.replace(_LARGE, **_SHARED),
    }
)


def preset(name, **changes):
    """Returns the config of a model of the paper.

    Args:
        name: str. A key of `PRESETS`.
        **changes: entries of `EtcConfig` to change.
    Returns:
        A new `EtcConfig`.
    Raises:
        ValueError: if there is no such preset.
    """
    if name not in PRESETS:
        raise ValueError(f"`name` must be one of {sorted(PRESETS)}. Received: {name!r}")
    return dataclasses.replace(PRESETS[name], **changes)
