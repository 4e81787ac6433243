"""Tiny PEGASUS-Xs with random weights."""

import numpy as np

from etcmodel.models.pegasus_x import PegasusXConfig, PegasusXForConditionalGeneration
from tests.models.barts import SIZES, VOCAB_SIZE
from tests.models.random_weights import built, spread


def config(**changes):
    own = {"num_global_tokens": 3, "block_size": 4}
    return PegasusXConfig(**{**SIZES, **own, **changes})


def model(made_by=PegasusXForConditionalGeneration, policy=None, seed=0, **changes):
    """A built model, whose weights depend on the seed alone."""
    return built(made_by(config(**changes), dtype=policy), spread, seed=seed)


def ids(batch, length, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(2, VOCAB_SIZE, (batch, length)).astype(np.int32)
