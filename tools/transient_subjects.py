"""Subjects of `draw_attention` for LongT5, from a call of the encoder."""

import numpy as np

from etcmodel import attention_picture
from etcmodel.models.longt5 import LongT5Config, LongT5EncoderModel
from etcmodel.ops import transient_blocks
from etcmodel.ops.relation_labels import RelationLabels
from etcmodel.pictures import style

__all__ = ["EXAMPLES", "draw", "legend_of", "pair_labels"]

_TEXT = "How long is it ? The river rises on moors . It is 88 km long . </s> <pad> <pad>"
EXAMPLES = {"longt5": "transient-global", "longt5_local": "local"}  # Attention types by name.
_RADIUS, _BLOCK = 3, 4


def pair_labels(attention_type, token_mask, radius=_RADIUS, block=_BLOCK):
    """Which tokens attend to which in a small encoder, from its attention probabilities.

    Args:
        attention_type: "transient-global" or "local".
        token_mask: 0/1 int [length].
        radius: int. Number of tokens attended to on each side.
        block: int. Number of tokens that are combined into a global token.
    Returns:
        dict of int [queries, keys] by piece ("g2g", "g2l", "l2g", "l2l"):
        `attention_picture.MASKED`, or a label of `legend_of`. Global tokens have no queries; their
        rows show the tokens that they are made from.
    """
    mask, length = np.array([token_mask]), len(token_mask)
    config = LongT5Config(
        vocab_size=8,
        d_model=8,
        d_kv=8,
        d_ff=8,
        num_layers=1,
        num_heads=1,
        local_radius=radius,
        global_block_size=block,
        encoder_attention_type=attention_type,
    )
    model = LongT5EncoderModel(config)
    probs = model(np.ones_like(mask), mask, output_attentions=True)["attentions"][0][0, 0].numpy()
    num_blocks = probs.shape[1] - length
    legend = legend_of(radius)
    offsets = np.arange(length) - np.arange(length)[:, np.newaxis]
    near = np.clip(offsets, -radius, radius)
    sums, parts = legend.labels.num_reserved, legend.labels.num_reserved + 1
    blocks = transient_blocks.block_numbers(mask, block)[0].numpy()
    masked = attention_picture.MASKED
    return {
        "l2l": np.where(
            probs[:, :length] > 0, np.vectorize(legend.labels.offsets.index)(near), masked
        ),
        "l2g": np.where(probs[:, length:] > 0, sums, masked),
        "g2l": np.where(blocks == np.arange(num_blocks)[:, np.newaxis], parts, masked),
        "g2g": np.full([num_blocks, num_blocks], masked),
    }


def legend_of(radius=_RADIUS):
    """`attention_picture.Legend`: distances, and blocks of tokens."""
    labels = RelationLabels(radius)
    first = labels.num_reserved
    names = {first: "token to the sum of a block", first + 1: "block, made of these tokens"}
    return attention_picture.Legend(labels, names=names)


def draw(name, theme=style.LIGHT):
    """A `matplotlib.figure.Figure` of the example of that name, in the colors of a theme."""
    words = tuple(_TEXT.split())
    labels = pair_labels(EXAMPLES[name], [int(word != "<pad>") for word in words])
    blocks = f", blocks of {_BLOCK}" if len(labels["g2g"]) else ""
    return attention_picture.draw(
        labels,
        legend_of(),
        local_radius=_RADIUS,
        long_tokens=words,
        global_tokens=[f"block {number}" for number in range(1, len(labels["g2g"]) + 1)],
        title=name.replace("_", " ") + blocks,
        theme=theme,
    )
