"""Tiny PEGASUS-Xs with random weights."""

import numpy as np

from etcmodel.models.pegasus_x import PegasusXConfig, PegasusXForConditionalGeneration
from tests.models.random_weights import built, spread

VOCAB_SIZE = 30


def config(**changes):
    entries = {
        "vocab_size": VOCAB_SIZE,
        "d_model": 16,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "encoder_attention_heads": 2,
        "decoder_attention_heads": 4,
        "encoder_ffn_dim": 24,
        "decoder_ffn_dim": 20,
        "num_global_tokens": 3,
        "block_size": 4,
        "dropout": 0.0,
    }
    return PegasusXConfig(**{**entries, **changes})


def model(made_by=PegasusXForConditionalGeneration, policy=None, seed=0, **changes):
    """A built model, whose weights depend on the seed alone."""
    return built(made_by(config(**changes), dtype=policy), spread, seed=seed)


def ids(batch, length, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(2, VOCAB_SIZE, (batch, length)).astype(np.int32)
