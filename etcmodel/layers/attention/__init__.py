"""Attention layers: relative, local, and global-local (paper, sections 3.1 to 3.3)."""

from etcmodel.layers.attention.fused import FusedGlobalLocalAttention
from etcmodel.layers.attention.qkv import QkvRelativeAttention, QkvRelativeLocalAttention
from etcmodel.layers.attention.relative import ProjectAttentionHeads, RelativeAttention

__all__ = [
    "FusedGlobalLocalAttention",
    "ProjectAttentionHeads",
    "QkvRelativeAttention",
    "QkvRelativeLocalAttention",
    "RelativeAttention",
]
