"""Tiny LongT5s with random weights."""

import numpy as np

from etcmodel.models.longt5 import LongT5Config, LongT5Model
from tests.models.random_weights import built

VOCAB_SIZE = 30


def config(**changes):
    entries = {
        "vocab_size": VOCAB_SIZE,
        "d_model": 16,
        "d_kv": 6,
        "d_ff": 24,
        "num_layers": 2,
        "num_heads": 2,
        "local_radius": 3,
        "global_block_size": 4,
        "relative_attention_num_buckets": 8,
        "relative_attention_max_distance": 20,
        "dropout_rate": 0.0,
        "feed_forward_proj": "gated-gelu",
        "encoder_attention_type": "transient-global",
        "decoder_start_token_id": 0,
    }
    return LongT5Config(**{**entries, **changes})


def spread(made, seed):
    """All vectors are scales."""
    rng = np.random.default_rng(seed)
    for variable in made.weights:
        center, scale = (0.0, 0.3) if len(variable.shape) == 2 else (1.0, 0.1)
        variable.assign(rng.normal(center, scale, variable.shape))


def model(made_by=LongT5Model, policy=None, seed=0, **changes):
    """A built model, whose weights depend on the seed alone."""
    return built(made_by(config(**changes), dtype=policy), spread, seed=seed)


def ids(batch, length, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(2, VOCAB_SIZE, (batch, length)).astype(np.int32)
