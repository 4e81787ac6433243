"""Attention layers: relative, local and global-local (paper, sections 3.1 to 3.3); Longformer's."""

from etcmodel.layers.attention.fused import FusedGlobalLocalAttention
from etcmodel.layers.attention.qkv import QkvRelativeAttention, QkvRelativeLocalAttention
from etcmodel.layers.attention.relative import ProjectAttentionHeads, RelativeAttention
from etcmodel.layers.attention.side_inputs import DenseSideInputs
from etcmodel.layers.attention.sliding_window import SlidingWindowAttention

__all__ = [
    "DenseSideInputs",
    "FusedGlobalLocalAttention",
    "ProjectAttentionHeads",
    "QkvRelativeAttention",
    "QkvRelativeLocalAttention",
    "RelativeAttention",
    "SlidingWindowAttention",
]
