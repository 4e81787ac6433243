"""Small vocabularies and models for graphs that read text."""

import etcmodel
from etcmodel.text.processor import EtcProcessor

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
PIECES = (*SPECIAL, "a", "##a", "b", "##b", "c", "##c", "d", ".", "!", "?")


def processor(folder, **settings):
    """An `EtcProcessor` of words of the letters a, b and c."""
    path = folder / "vocab.txt"
    path.write_text("\n".join(PIECES), encoding="utf-8")
    return EtcProcessor(str(path), **settings)


def model(head, relation_names=(), num_layers=1, **settings):
    """A tiny model with random weights."""
    config = etcmodel.EtcConfig(
        vocab_size=len(PIECES),
        hidden_size=16,
        num_hidden_layers=num_layers,
        num_attention_heads=2,
        local_radius=4,
        intermediate_size=32,
        relative_pos_max_distance=3,
        relative_vocab_size=16,
        initializer_range=0.5,
    )
    return head(config, relation_names=relation_names, **settings)
