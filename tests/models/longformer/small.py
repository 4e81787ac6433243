"""Small models for the tests of Longformer, with weights that are not their initial ones."""

import numpy as np

from etcmodel.models.longformer import LongformerConfig, LongformerModel
from tests.models import etcs
from tests.models.random_weights import built

CONFIG = {
    "vocab_size": 40,
    **etcs.sizes(num_hidden_layers=2),
    "max_position_embeddings": 40,
    "attention_window": (4, 6),
    "type_vocab_size": 1,
    **etcs.NO_DROPOUT,
}


def config(**changes):
    return LongformerConfig(**{**CONFIG, **changes})


def model(dtype=None, **changes):
    """A built model whose weights depend on nothing but their shapes and order."""
    return built(LongformerModel(config(**changes), dtype=dtype))


def ids(length, batch=1, seed=0):
    """Token ids without special ones."""
    return np.random.default_rng(seed).integers(3, CONFIG["vocab_size"], [batch, length])
