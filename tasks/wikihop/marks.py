"""From typed WikiHop examples to features of marked candidates, for any encoder, in plain Python.

An example is divided into chunks, each an input of its own:

    [CLS] [q] question [/q] [ent] candidate 1 [/ent] … [SEP] document 1 [SEP] [SEP] document 2 [SEP]

All chunks begin alike, up to the candidates; behind them, each has the next part of the documents
(Beltagy et al. 2020, arXiv:2004.05150, appendix D, "WikiHop"). For ETC, each candidate and the
question have a global token, and [CLS] has one, in this order.
"""

from typing import NamedTuple

from etcmodel.preprocessing.padding import padded
from etcmodel.text.processor import ends_of

from .config import MARKS

__all__ = ["GLOBAL_PADDING", "LONG_PADDING", "ChunkedExample", "make_features"]

LONG_PADDING = {"token_ids": 0, "segment_ids": 0, "example_ids": 0, "links": -1}
GLOBAL_PADDING = dict.fromkeys(
    ("global_token_ids", "global_segment_ids", "global_example_ids", "candidate_places"), 0
)


class ChunkedExample(NamedTuple):
    """A converted example: its features, and what is counted."""

    features: dict
    num_long_tokens: int  # Of all chunks.
    num_chunks: int
    num_tokens_left_out: int


def make_features(example, documents, config, tokenizer):
    """Converts an example.

    Args:
        example: a `WikiHopExample`.
        documents: list of str. Its documents, in order.
        config: a `WikiHopInputConfig`.
        tokenizer: its tokenizer, which knows `MARKS`.
    Returns:
        `ChunkedExample`. Its features (C is `max_num_chunks`; L long tokens, G global tokens):
            token_ids, segment_ids, example_ids, links: int [C * L], those of a processor (see
                `models.features`), chunk by chunk. Segment 1 are the documents.
            global_token_ids, global_segment_ids, global_example_ids: int [G], likewise.
            candidate_places: int [G]. The place of each candidate's [ent] in every chunk, in the
                order of the candidates; 0 for others.
    Raises:
        ValueError: naming the example, if a candidate or the query has no tokens, or they leave no
            room for a document.
    """
    start, links, places, global_ids = _start(example, tokenizer)
    for name, needed in (("long", len(start) + 1), ("global", len(global_ids))):
        length = getattr(config, f"{name}_seq_length")
        if needed > length:
            raise ValueError(
                f"example {example.example_id!r}: the candidates and the query need {needed} "
                f"{name} tokens, more than {name}_seq_length={length}"
            )
    _, sep = ends_of(tokenizer)
    text = [x for document in documents for x in (sep, *_ids_of(document, tokenizer), sep)]
    room = config.long_seq_length - len(start)
    kept = text[: room * config.max_num_chunks]
    chunks = [kept[first : first + room] for first in range(0, len(kept), room)] or [[]]
    long = {name: [] for name in LONG_PADDING}
    for chunk in chunks:
        parts = {
            "token_ids": [*start, *chunk],
            "segment_ids": [0] * len(start) + [1] * len(chunk),
            "example_ids": [1] * (len(start) + len(chunk)),
            "links": [*links, *[links[0]] * len(chunk)],
        }
        for name, values in parts.items():
            long[name] += padded(values, config.long_seq_length, LONG_PADDING[name])
    globals_ = {
        "global_token_ids": global_ids,
        "global_segment_ids": [0] * len(global_ids),
        "global_example_ids": [1] * len(global_ids),
        "candidate_places": places,
    }
    length = config.long_seq_length * config.max_num_chunks
    return ChunkedExample(
        features={
            **{name: padded(x, length, LONG_PADDING[name]) for name, x in long.items()},
            **{name: padded(x, config.global_seq_length) for name, x in globals_.items()},
        },
        num_long_tokens=len(start) * len(chunks) + len(kept),
        num_chunks=len(chunks),
        num_tokens_left_out=len(text) - len(kept),
    )


def _start(example, tokenizer):
    """What all chunks begin with: ids, links to global tokens, places of [ent]; ids of globals."""
    question, question_end, entity, entity_end = tokenizer.convert_tokens_to_ids(MARKS)
    cls, _ = ends_of(tokenizer)
    name, number = f"example {example.example_id!r}", len(example.candidates)
    parts = [(question, "query", example.query, question_end)]
    parts += [(entity, "candidates", text, entity_end) for text in example.candidates]
    ids, links, places = [cls], [number + 1], []
    for link, (mark, field, text, end) in enumerate(parts, -1):
        if not (own := _ids_of(text, tokenizer)):
            raise ValueError(f"{name}: field `{field}`: {text!r} has no tokens")
        places.append(len(ids))
        ids += [mark, *own, end]
        links += [number if link < 0 else link] * (len(own) + 2)
    return ids, links, places[1:], [*[entity] * number, question, cls]


def _ids_of(text, tokenizer):
    # In front of a word, byte-level BPE has a space.
    return tokenizer.convert_tokens_to_ids(tokenizer.tokenize(f" {text.strip()}"))
