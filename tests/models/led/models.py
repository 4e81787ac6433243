"""Tiny LEDs with random weights."""

import numpy as np

from etcmodel.models.led import LedConfig, LedForConditionalGeneration
from tests.models.random_weights import built

VOCAB_SIZE = 30


def config(**changes):
    entries = {
        "vocab_size": VOCAB_SIZE,
        "d_model": 16,
        "max_encoder_position_embeddings": 60,
        "max_decoder_position_embeddings": 20,
        "encoder_layers": 2,
        "encoder_attention_heads": 2,
        "encoder_ffn_dim": 24,
        "decoder_layers": 2,
        "decoder_attention_heads": 4,
        "decoder_ffn_dim": 20,
        "attention_window": (4, 6),
        "dropout": 0.0,
    }
    return LedConfig(**{**entries, **changes})


def model(made_by=LedForConditionalGeneration, policy=None, **changes):
    """A built model, whose weights depend on nothing but their shapes and order."""
    return built(made_by(config(**changes), dtype=policy))


def ids(batch, length, seed=0):
    """Token ids without special ones."""
    return np.random.default_rng(seed).integers(3, VOCAB_SIZE, (batch, length)).astype(np.int32)
