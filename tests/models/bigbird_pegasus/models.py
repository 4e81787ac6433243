"""Tiny BigBird-Pegasus models with random weights."""

from etcmodel.models.bigbird_pegasus import (
    BigBirdPegasusConfig,
    BigBirdPegasusForConditionalGeneration,
)
from tests.models.random_weights import built

VOCAB_SIZE = 30


def config(**changes):
    entries = {
        "vocab_size": VOCAB_SIZE,
        "d_model": 16,
        "max_position_embeddings": 40,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "encoder_attention_heads": 2,
        "decoder_attention_heads": 4,
        "encoder_ffn_dim": 24,
        "decoder_ffn_dim": 20,
        "block_size": 2,
        "num_random_blocks": 1,
        "dropout": 0.0,
    }
    return BigBirdPegasusConfig(**{**entries, **changes})


def model(made_by=BigBirdPegasusForConditionalGeneration, policy=None, **changes):
    """A built model, whose weights depend on nothing but their shapes and order."""
    return built(made_by(config(**changes), dtype=policy))
