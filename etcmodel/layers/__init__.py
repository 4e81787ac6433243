"""Keras layers of ETC: attention, transformer stacks, embeddings, heads."""

from etcmodel.layers import (
    attention,
    embedding,
    heads,
    helpers,
    recompute_grad,
    recomputing_dropout,
    stack,
    stateless_dropout,
    transformer,
    wrappers,
)
from etcmodel.layers.attention import (
    FusedGlobalLocalAttention,
    ProjectAttentionHeads,
    QkvRelativeAttention,
    QkvRelativeLocalAttention,
    RelativeAttention,
)
from etcmodel.layers.dense import DenseLayers
from etcmodel.layers.embedding import EmbeddingLookup
from etcmodel.layers.heads import SpanLogits, TokenLogits
from etcmodel.layers.helpers import TrackedLambda
from etcmodel.layers.recomputing_dropout import RecomputingDropout
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
    "SpanLogits",
    "TokenLogits",
    "TrackedLambda",
    "attention",
    "embedding",
    "heads",
    "helpers",
    "recompute_grad",
    "recomputing_dropout",
    "stack",
    "stateless_dropout",
    "transformer",
    "wrappers",
]
