"""Tiny BigBird-Pegasus models with random weights."""

from etcmodel.models.bigbird_pegasus import (
    BigBirdPegasusConfig,
    BigBirdPegasusForConditionalGeneration,
)
from tests.models.barts import SIZES
from tests.models.random_weights import built


def config(**changes):
    own = {"max_position_embeddings": 40, "block_size": 2, "num_random_blocks": 1}
    return BigBirdPegasusConfig(**{**SIZES, **own, **changes})


def model(made_by=BigBirdPegasusForConditionalGeneration, policy=None, **changes):
    """A built model, whose weights depend on nothing but their shapes and order."""
    return built(made_by(config(**changes), dtype=policy))
