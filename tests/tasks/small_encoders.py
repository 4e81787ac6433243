"""Tiny encoders, which learn generated data in seconds."""

from etcmodel.models import encoders

_SIZES = {
    "hidden_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "initializer_range": 0.1,
}
_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
_IDS = {f"{name}_token_id": 0 for name in ("pad", "bos", "eos", "cls", "sep")}
_RELATIONS = {"relative_pos_max_distance": 8, "relative_vocab_size": 24}
_OWN = {
    "etc": {**_DROPOUT, **_RELATIONS, "local_radius": 24},
    "etc_modernbert": {**_RELATIONS, **_IDS, "local_attention": 48},
    "longformer": {**_DROPOUT, "attention_window": 16},
    "big_bird": {**_DROPOUT, "attention_type": "original_full"},
    "gmat": {**_DROPOUT, "chunk_size": 64, "num_memory_tokens": 2},
    "modernbert": {"local_attention": 16, **_IDS},
}


def entries(kind, vocab_size, positions, **fields):
    """The entries of a config, whose model takes as many tokens as `positions`."""
    own = {"vocab_size": vocab_size, "model_type": kind, **_OWN[kind]}
    if kind in ("longformer", "big_bird", "modernbert"):
        own["max_position_embeddings"] = positions + 2  # RoBERTa's begin with 2.
    return {**_SIZES, **own, **fields}


def config(kind, vocab_size, positions, **fields):
    """The `EncoderConfig` of `entries`."""
    return encoders.config_from_dict(entries(kind, vocab_size, positions, **fields))
