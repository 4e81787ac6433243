"""Subjects of `draw_attention` for systems with a single sequence, from a model's call."""

import numpy as np

from etcmodel import attention_picture
from etcmodel.models.longformer import LongformerConfig, LongformerModel
from etcmodel.ops.relation_labels import RelationLabels
from etcmodel.pictures import style

__all__ = ["EXAMPLES", "draw", "legend_of", "pair_labels"]

_TEXT = "[CLS] How long is it ? The river rises on moors . It is 88 km long . [PAD] [PAD]"
_QUESTION = tuple(range(1, 6))
_SIZES = {
    "vocab_size": 8,
    "hidden_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 1,
    "intermediate_size": 8,
    "max_position_embeddings": 1002,
}
# By name: entries of the config, and the positions of global tokens.
EXAMPLES = {
    "longformer": ({"attention_window": 8}, (0, *_QUESTION)),
    "longformer_dilated": ({"attention_window": 6, "attention_dilation": 3}, (0,)),
    "longformer_causal": ({"attention_window": 12, "autoregressive": True}, ()),
}


def pair_labels(config, token_mask, positions, layer=0, head=0):
    """Which tokens attend to which in a `LongformerModel`, from its attention probabilities.

    Args:
        config: `LongformerConfig`.
        token_mask: 0/1 int [length].
        positions: sequence of int. Of global tokens.
        layer, head: int.
    Returns:
        int [length, length] of queries and keys: `attention_picture.MASKED`, or the label of
        `legend_of` for the distance of two tokens or for pairs with a global token.
    """
    model, length = LongformerModel(config, add_pooling_layer=False), len(token_mask)
    is_global = np.isin(np.arange(length), positions) & (np.asarray(token_mask) > 0)
    _, _, extras = model(
        np.full([1, length], config.pad_token_id + 1),
        attention_mask=np.array([token_mask]),
        global_attention_mask=is_global[np.newaxis].astype(int) if len(positions) else None,
        output_attentions=True,
    )
    labels = np.full([length, length], attention_picture.MASKED)
    legend = legend_of(config, layer)
    window = model.layers.attention_layers[layer].inner_layer.windows[head]
    local = extras["attentions"][layer][0, head].numpy()
    (places,) = np.nonzero(is_global)
    for query, column in zip(*np.nonzero(local), strict=True):
        step = column - len(places) - window.left
        if column < len(places):
            labels[query, places[column]] = legend.labels.num_reserved
        else:
            offset = step * window.dilation
            labels[query, query + offset] = legend.labels.offsets.index(offset)
    if len(places):
        of_globals = extras["global_attentions"][layer][0, head].numpy()
        for key, slot in zip(*np.nonzero(of_globals), strict=True):
            labels[places[slot], key] = legend.labels.num_reserved
    return labels


def legend_of(config, layer=0):
    """`attention_picture.Legend`: distances of tokens, and pairs with a global token."""
    dilations = config.dilations[layer]
    farthest = config.radii[layer] * (max(dilations) if isinstance(dilations, tuple) else dilations)
    labels = RelationLabels(farthest)
    return attention_picture.Legend(
        labels, names={labels.num_reserved: "from or to a global token"}
    )


def draw(name, theme=style.LIGHT):
    """A `matplotlib.figure.Figure` of the example of that name, in the colors of a theme."""
    changes, positions = EXAMPLES[name]
    config = LongformerConfig(**_SIZES, **changes)
    words = tuple(_TEXT.split())
    pairs = pair_labels(config, [int(word != "[PAD]") for word in words], positions)
    length = len(words)
    return attention_picture.draw(
        {
            "g2g": np.zeros([0, 0], int),
            "g2l": np.zeros([0, length], int),
            "l2g": np.zeros([length, 0], int),
            "l2l": pairs,
        },
        legend_of(config),
        local_radius=config.radii[0],
        long_tokens=words,
        title=name.replace("_", ", "),
        theme=theme,
    )
