"""Small models for the tests of ModernBERT, with weights that are not their initial ones."""

import numpy as np

from etcmodel.models.modernbert import (
    EtcModernBertConfig,
    EtcModernBertModel,
    ModernBertConfig,
    ModernBertModel,
)
from tests.models import etcs
from tests.models.random_weights import built

CONFIG = {
    "vocab_size": 40,
    **etcs.sizes(num_hidden_layers=4, intermediate_size=6),
    "local_attention": 5,
    "pad_token_id": 0,
}


def config(**changes):
    return ModernBertConfig(**{**CONFIG, **changes})


def model(dtype=None, **changes):
    """A built model whose weights depend on nothing but their shapes and order."""
    return built(ModernBertModel(config(**changes), dtype=dtype))


def etc_config(**changes):
    """Ten labels, two of which are free: positions up to 2, three others."""
    own = {"relative_pos_max_distance": 2, "relative_vocab_size": 10, "cls_token_id": 2}
    return EtcModernBertConfig(**{**CONFIG, **own, **changes})


def etc_model(dtype=None, **changes):
    """An `EtcModernBertModel` like `model`."""
    return built(EtcModernBertModel(etc_config(**changes), dtype=dtype))


def ids(length, batch=1, seed=0):
    """Token ids without special ones."""
    return np.random.default_rng(seed).integers(3, CONFIG["vocab_size"], [batch, length])
