"""Invented reports whose summary is a sentence that comes first far from the beginning.

The layout is that of the arXiv and PubMed data. A report is long and of common words; in its last
part one sentence comes again and again, which tells who did what and where in names that come
nowhere else. It is the summary. A reader of the first `distance` tokens can only guess the names.
"""

import itertools
import json

from etcmodel.tools.demos import made_up
from etcmodel.tools.demos.made_up import BUILDING, NAME_PARTS, PERSON

__all__ = ["DISTANCE", "make_examples", "model_config", "texts", "vocabulary", "vocabulary_file"]

DISTANCE = 1024
_VERBS = ("built", "found", "left", "lost", "mapped", "painted", "reached", "sold")
# What each word of the key sentence is drawn from; few, so that a small model learns them fast.
_PARTS = tuple(
    tuple(word.lower() for word in words[:12])
    for words in (*NAME_PARTS[PERSON], _VERBS, *NAME_PARTS[BUILDING])
)
_FILLERS = """the a of and in on by with then but for some all more less day night rain wind sun
road water stone tree long old cold dry wet slow was had came went stood fell"""
_FILLERS = tuple(_FILLERS.split())
_SENTENCE_WORDS = (6, 12)
_SPECIAL = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
_SPACE = "Ġ"  # How byte-level BPE writes a space.


def _make_example(rng, split, index, *, distance=DISTANCE):
    """A report.

    Args:
        distance: int. Tokens before the key sentence: at least so many, at most twice as many.
            From there on it begins every third sentence, for about as many tokens again.
    Returns:
        dict with `article_id`, `article_text` and `abstract_text`.
    """
    key = " ".join([*map(rng.choice, _PARTS), "."])
    sentences = _filler_sentences(rng, rng.randint(distance, 2 * distance))
    rest = _filler_sentences(rng, distance)
    for start in range(0, len(rest), 2):
        sentences += [key, *rest[start : start + 2]]
    return {
        "article_id": f"demo-{split}-{index:06d}",
        "article_text": sentences,
        "abstract_text": [f"<S> {key} </S>"],
    }


make_examples = made_up.example_maker(_make_example)


def _filler_sentences(rng, num_tokens):
    """Sentences of at least so many tokens together, by less than one sentence."""
    sentences = []
    while num_tokens > 0:
        words = rng.choices(_FILLERS, k=rng.randint(*_SENTENCE_WORDS))
        sentences.append(" ".join([*words, "."]))
        num_tokens -= len(words) + 1
    return sentences


def texts(example):
    """Every text of an example that a model reads."""
    return [*example["article_text"], *example["abstract_text"]]


def vocabulary(*, distance=DISTANCE):
    """The tokens of byte-level BPE: special ones, bytes, and the beginnings of all words."""
    del distance
    return [*_SPECIAL, *_bytes(), *map("".join, _merges())]


def vocabulary_file(tokens):
    """(name, text) of a `tokenizer.json` in which each word of the reports is one token."""
    around = {"add_prefix_space": True, "trim_offsets": True}
    special = [
        {"id": index, "content": token, "special": True}
        | dict.fromkeys(("normalized", "single_word", "lstrip", "rstrip"), False)
        for index, token in enumerate(_SPECIAL)
    ]
    content = {
        "version": "1.0",
        "added_tokens": special,
        "pre_tokenizer": {"type": "ByteLevel", "use_regex": True, **around},
        "post_processor": {"type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 0]}
        | around,
        "decoder": {"type": "ByteLevel", "use_regex": True, **around},
        "model": {
            "type": "BPE",
            "vocab": {token: index for index, token in enumerate(tokens)},
            "merges": [" ".join(pair) for pair in _merges()],
        },
    }
    return "tokenizer.json", json.dumps(content, ensure_ascii=False)


def _merges():
    """Pairs that build each word from its space on, letter by letter."""
    words = sorted({*_FILLERS, *itertools.chain(*_PARTS), "."})
    starts = ((_SPACE + word[:end], word[end]) for word in words for end in range(len(word)))
    return list(dict.fromkeys(starts))


def _bytes():
    """The characters that stand for the 256 bytes (Radford et al. 2019)."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = range(256, 256 + 256 - len(shown))
    return [*map(chr, shown), *map(chr, others)]


def model_config(*, distance=DISTANCE):
    """An LED that learns it in some minutes on a CPU: dict, without `vocab_size`."""
    return {
        "model_type": "led",
        "d_model": 64,
        "encoder_layers": 1,
        "encoder_attention_heads": 4,
        "encoder_ffn_dim": 128,
        "decoder_layers": 1,
        "decoder_attention_heads": 4,
        "decoder_ffn_dim": 128,
        "attention_window": 16,
        "max_encoder_position_embeddings": 4 * distance + 32,
        "max_decoder_position_embeddings": 16,
        "dropout": 0.0,
        "init_std": 0.1,
    }
