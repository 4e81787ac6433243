"""Tiny LEDs with random weights."""

import numpy as np

from etcmodel.models.led import LedConfig, LedForConditionalGeneration
from tests.models.barts import SIZES, VOCAB_SIZE
from tests.models.random_weights import built


def config(**changes):
    own = {
        "max_encoder_position_embeddings": 60,
        "max_decoder_position_embeddings": 20,
        "attention_window": (4, 6),
    }
    return LedConfig(**{**SIZES, **own, **changes})


def model(made_by=LedForConditionalGeneration, policy=None, **changes):
    """A built model, whose weights depend on nothing but their shapes and order."""
    return built(made_by(config(**changes), dtype=policy))


def ids(batch, length, seed=0):
    """Token ids without special ones."""
    return np.random.default_rng(seed).integers(3, VOCAB_SIZE, (batch, length)).astype(np.int32)
