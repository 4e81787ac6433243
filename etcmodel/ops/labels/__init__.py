"""Relative labels and biases: what is added to the logit of a pair, besides `query . key`.

Each query has label logits, `query . label_embedding + label_bias`, one for each label (paper,
appendix A); subclasses of `TableLabels` determine the label of each pair. `PairBiases` adds a given
number for each pair. The logits of one step are [num_heads, batch, tiles, rows, window].
"""

from etcmodel.ops.labels.biases import PairBiases
from etcmodel.ops.labels.ids import IdLabels, OneHotIdLabels
from etcmodel.ops.labels.links import LinkLabels
from etcmodel.ops.labels.offsets import OffsetLabels
from etcmodel.ops.labels.rows import RowOffsetLabels
from etcmodel.ops.labels.tables import LabelLogits, Labels, LabelTables, TableLabels, add_bias

__all__ = [
    "IdLabels",
    "LabelLogits",
    "LabelTables",
    "Labels",
    "LinkLabels",
    "OffsetLabels",
    "OneHotIdLabels",
    "PairBiases",
    "RowOffsetLabels",
    "TableLabels",
    "add_bias",
]
