"""A small vocabulary, documents and windows that several tests use."""

import tensorflow as tf

from etcmodel.models import modeling
from etcmodel.pretrain import features
from etcmodel.pretrain.config import MaskingConfig, PretrainInputConfig
from etcmodel.text import tokenization
from tests.models import etcs

WORDS = "the a rose tulip is was red blue tall in town garden and grow ##s ##ing ##ed old new ."
VOCAB = ["[PAD]", "[unused0]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS.split()]
LONG, GLOBAL = 48, 10
SENTENCES = (
    "The rose is red.",
    "A tulip grows in the garden.",
    "Blue was the town and old.",
    "The tall tulip is growing.",
    "A new garden was red and tall and blue.",
    "In town the rose grows.",
    "Old is new.",
)


def write_vocab(folder):
    path = folder / "vocab.txt"
    path.write_text("\n".join(VOCAB) + "\n", encoding="utf-8")
    return path


def make_tokenizer(folder):
    return tokenization.FullTokenizer(str(write_vocab(folder)))


def split_sentences(text):
    return [f"{part.strip()}." for part in text.split(".") if part.strip()]


def document(name, *numbers):
    """A document of some of `SENTENCES`."""
    return {"id": name, "text": " ".join(SENTENCES[n % len(SENTENCES)] for n in numbers)}


def input_config(**changes):
    fields = {
        "long_seq_length": LONG,
        "global_seq_length": GLOBAL,
        "min_sentences": 1,
        "sentence_splitter": "simple",
        **changes,
    }
    return PretrainInputConfig(**fields)


def make_windows(documents, tokenizer, **changes):
    return features.make_windows(documents, input_config(**changes), tokenizer, split_sentences)


def masking_config(tokenizer, **changes):
    fields = {"long_seq_length": LONG, "global_seq_length": GLOBAL, "cpc_share": 0.2, **changes}
    return MaskingConfig.for_tokenizer(tokenizer, **fields)


def tensors(features):
    """int32 tensors of the features of one window, or of several as a batch."""
    if isinstance(features, list):
        features = {name: [row[name] for row in features] for name in features[0]}
    return {name: tf.constant(values, tf.int32) for name, values in features.items()}


def etc_config(**changes):
    sizes = {
        "vocab_size": len(VOCAB),
        **etcs.sizes(num_hidden_layers=2, intermediate_size=16),
        "local_radius": 5,
        "relative_pos_max_distance": 3,
        "relative_vocab_size": 10,
        **etcs.NO_DROPOUT,
        "initializer_range": 0.3,
        "use_hard_g2l_mask": True,
        **changes,
    }
    return modeling.EtcConfig(**sizes)
