"""Tiny GMATs with random weights."""

import numpy as np

from etcmodel.models.gmat import GmatConfig, GmatModel
from tests.models.random_weights import built, spread

VOCAB_SIZE = 30


def config(**changes):
    entries = {
        "vocab_size": VOCAB_SIZE,
        "hidden_size": 16,
        "num_hidden_layers": 3,
        "num_attention_heads": 2,
        "intermediate_size": 24,
        "chunk_size": 4,
        "num_memory_tokens": 3,
        "position_period": 16,
        "num_position_quotients": 8,
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
    }
    return GmatConfig(**{**entries, **changes})


COMPRESSED = {"num_compression_layers": 1, "num_memory_layers": 1}
OWN = {"has_own_memory_projections": True, "has_own_memory_output": True}


def model(seed=0, policy=None, **changes):
    """A built model, whose weights depend on the seed alone."""
    return built(GmatModel(config(**changes), dtype=policy), spread, seed=seed)


def ids(batch, length, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(1, VOCAB_SIZE, (batch, length)).astype(np.int32)
