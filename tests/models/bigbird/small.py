"""Small models for the tests of BigBird, with weights that are not their initial ones."""

import numpy as np

from etcmodel.models.bigbird import BigBirdConfig, BigBirdModel
from tests.models import etcs
from tests.models.random_weights import built

CONFIG = {
    "vocab_size": 40,
    **etcs.sizes(num_hidden_layers=2),
    "max_position_embeddings": 64,
    "block_size": 2,
    "num_random_blocks": 1,
    "sep_token_id": 3,
    **etcs.NO_DROPOUT,
}


def config(**changes):
    return BigBirdConfig(**{**CONFIG, **changes})


def model(dtype=None, **changes):
    """A built model whose weights depend on nothing but their shapes and order."""
    return built(BigBirdModel(config(**changes), dtype=dtype))


def ids(length, batch=1, seed=0):
    """Token ids without special ones."""
    return np.random.default_rng(seed).integers(4, CONFIG["vocab_size"], [batch, length])
