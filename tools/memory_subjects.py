"""Subjects of `draw_attention` for systems with chunks and a memory, from a model's call."""

import numpy as np

from etcmodel import attention_picture
from etcmodel.models.gmat import GmatConfig, GmatModel
from etcmodel.models.pegasus_x import PegasusXConfig, PegasusXEncoder
from etcmodel.ops.relation_labels import RelationLabels
from etcmodel.pictures import style

__all__ = ["EXAMPLES", "draw", "legend_of", "pair_labels"]

_TEXT = "[CLS] How long is it ? The river rises on moors . It is 88 km long . [PAD] [PAD]"
# By name: the system, and the layer that is drawn.
EXAMPLES = {
    "gmat": ("gmat", 0),
    "pegasus_x": ("pegasus_x", 0),
    "pegasus_x_staggered": ("pegasus_x", 1),
}
_CHUNK_SIZE, _MEMORY = 6, 3


def pair_labels(system, token_mask, chunk_size=_CHUNK_SIZE, memory=_MEMORY, layer=0):
    """Which tokens attend to which in a small model of a system, from its attention probabilities.

    Args:
        system: "gmat" or "pegasus_x".
        token_mask: 0/1 int [length].
        chunk_size: int.
        memory: int. Memory tokens, of PEGASUS-X global tokens.
        layer: int, 0 or 1.
    Returns:
        dict of int [queries, keys] by piece ("g2g", "g2l", "l2g", "l2l", where g is the memory):
        `attention_picture.MASKED`, or a label of `legend_of`.
    """
    of_tokens, of_memory = (
        x[0, 0].numpy() for x in _probs(system, token_mask, chunk_size, memory, layer)
    )
    legend, length = legend_of(chunk_size), len(token_mask)
    offsets = np.arange(length) - np.arange(length)[:, np.newaxis]
    near = np.clip(offsets, -legend.labels.max_distance, legend.labels.max_distance)
    labels = np.vectorize(legend.labels.offsets.index)(near)

    def piece(probs, meant):
        return np.where(probs > 0, meant, attention_picture.MASKED)

    with_memory = legend.labels.num_reserved
    return {
        "l2l": piece(of_tokens[:, :length], labels),
        "l2g": piece(of_tokens[:, length:], with_memory),
        "g2l": piece(of_memory[:, :length], with_memory),
        "g2g": piece(of_memory[:, length:], with_memory),
    }


def _probs(system, token_mask, chunk_size, memory, layer):
    """Probabilities of tokens and of the memory: float [1, 1, queries, tokens and memory] each."""
    ids, mask = np.ones([1, len(token_mask)], int), np.array([token_mask])
    if system == "gmat":
        config = GmatConfig(
            vocab_size=8,
            hidden_size=8,
            num_hidden_layers=2,
            num_attention_heads=1,
            intermediate_size=8,
            chunk_size=chunk_size,
            num_memory_tokens=memory,
        )
        *_, extras = GmatModel(config)(ids, mask, output_attentions=True)
        return extras["attentions"][layer], extras["memory_attentions"][layer]
    config = PegasusXConfig(
        vocab_size=8,
        d_model=8,
        encoder_layers=2,
        encoder_attention_heads=1,
        decoder_attention_heads=1,
        encoder_ffn_dim=8,
        block_size=chunk_size,
        num_global_tokens=memory,
    )
    extras = PegasusXEncoder(config)(ids, mask, output_attentions=True)
    return extras["attentions"][layer], extras["global_attentions"][layer]


def legend_of(chunk_size=_CHUNK_SIZE):
    """`attention_picture.Legend`: distances in a chunk, and pairs with the memory."""
    labels = RelationLabels(chunk_size - 1)
    return attention_picture.Legend(labels, names={labels.num_reserved: "from or to the memory"})


def draw(name, theme=style.LIGHT):
    """A `matplotlib.figure.Figure` of the example of that name, in the colors of a theme."""
    system, layer = EXAMPLES[name]
    words = tuple(_TEXT.split())
    return attention_picture.draw(
        pair_labels(system, [int(word != "[PAD]") for word in words], layer=layer),
        legend_of(),
        long_tokens=words,
        global_tokens=[f"[m{number}]" for number in range(1, _MEMORY + 1)],
        title=f"{name.replace('_', ' ')}, chunks of {_CHUNK_SIZE}",
        theme=theme,
    )
