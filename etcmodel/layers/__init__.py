"""Keras layers of ETC."""

from etcmodel.layers import attention, embedding, helpers, transformer, wrappers
from etcmodel.layers.attention import (
    FusedGlobalLocalAttention,
    ProjectAttentionHeads,
    QkvRelativeAttention,
    QkvRelativeLocalAttention,
    RelativeAttention,
)
from etcmodel.layers.dropout import RecomputingDropout
from etcmodel.layers.embedding import EmbeddingLookup
from etcmodel.layers.helpers import DenseLayers
from etcmodel.layers.transformer import GlobalLocalTransformerLayers, RelativeTransformerLayers
from etcmodel.layers.wrappers import ResidualBlock

__all__ = [
    "DenseLayers",
    "EmbeddingLookup",
    "FusedGlobalLocalAttention",
    "GlobalLocalTransformerLayers",
    "ProjectAttentionHeads",
    "QkvRelativeAttention",
    "QkvRelativeLocalAttention",
    "RecomputingDropout",
    "RelativeAttention",
    "RelativeTransformerLayers",
    "ResidualBlock",
    "attention",
    "embedding",
    "helpers",
    "transformer",
    "wrappers",
]
