"""Tiny configs of ETC, and the sizes that tiny configs of all systems have."""

from etcmodel.models.modeling import EtcConfig

NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
_SIZES = {
    "hidden_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 12,
}
_ETC = {
    "vocab_size": 11,
    "local_radius": 2,
    "relative_pos_max_distance": 2,
    "relative_vocab_size": 8,
}


def sizes(**changes):
    """Of layers, as a dict of entries."""
    return {**_SIZES, **changes}


def entries(**changes):
    """Of an ETC: 11 tokens, positions up to 2, labels as many as these and links need."""
    return {**_SIZES, **_ETC, **changes}


def config(**changes):
    """The `EtcConfig` of `entries`."""
    return EtcConfig(**entries(**changes))
