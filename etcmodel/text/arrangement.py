"""Builds the long and the global input of an example: tokens, links, relations.

Long: [CLS], the question, [SEP], the text, [SEP]. Global: a token for the whole, one for the
question (or for each of its tokens), and one for each included block.
"""

import dataclasses

import numpy as np

from etcmodel.text import truncation
from etcmodel.text.documents import QUESTION
from etcmodel.text.encoding import Cut, Encoding

# Relations between the blocks of a document, as pairs of global tokens or of long ones.
#
# Every document has `part_of` (from a block to the one it is part of) and `has_part`; tables have
# `row` and `column` (cells of the same one) and `header` (from a cell to the headers of its row and
# column). Pages add `under` (from a block to the heading above it) and `link`; graphs add the types
# of their edges.


_MOST_CELLS = 8192  # Of one table: a matrix of all pairs is built.


def edges_of(document, name, places):
    """Returns the edges of a relation between included blocks.

    Args:
        document: `documents.Document`.
        name: str.
        places: int [num_blocks]. The global token of each block, -1 if it is not included.
    Returns:
        int32 [num_edges, 2]: (from, to), indices of global tokens.
    """
    return places[_block_pairs(document, name, places)].astype(np.int32)


def long_edges_of(document, name, places, blocks, radius):
    """Returns the edges of a relation between the tokens of included blocks: all with all.

    Args:
        document, name, places: as in `edges_of`.
        blocks: int [long_len]. The block of each token, -1 for special ones; those of a block are
            adjacent.
        radius: int. Tokens farther apart are not paired.
    Returns:
        int32 [num_pairs, 2]: (from, to), indices of long tokens, sorted, each once.
    """
    if not len(blocks):
        return np.zeros([0, 2], np.int32)
    numbers = np.arange(len(document.blocks))
    order = np.argsort(blocks, kind="stable")
    firsts, ends = (np.searchsorted(blocks[order], numbers, side) for side in ("left", "right"))
    has_tokens = ends > firsts
    firsts = np.where(has_tokens, order[np.minimum(firsts, len(blocks) - 1)], 0)
    lasts = firsts + np.bincount(blocks[blocks >= 0], minlength=len(numbers)) - 1
    one, other = _block_pairs(document, name, places).T
    is_near = (firsts[other] - lasts[one] <= radius) & (firsts[one] - lasts[other] <= radius)
    found = [np.zeros([0, 2], np.int32)]
    for i, j in np.stack([one, other], axis=1)[is_near & has_tokens[one] & has_tokens[other]]:
        queries, keys = (np.arange(firsts[x], lasts[x] + 1) for x in (i, j))
        is_pair = np.abs(queries[:, np.newaxis] - keys) <= radius
        found.append(np.argwhere(is_pair) + [firsts[i], firsts[j]])
    return np.unique(np.concatenate(found).astype(np.int32), axis=0)


def _block_pairs(document, name, places):
    """The edges of a relation as pairs of included blocks: int [num_edges, 2]."""
    found = np.array(document.edges.get(name, ()), np.int64).reshape(-1, 2)
    if name in DERIVED:
        found = np.concatenate([found, DERIVED[name](document, places)])
    return found[(places[found] >= 0).all(axis=1)]


def mention_pairs(document, name, places, tokens):
    """Returns the pairs of long and global tokens of a relation.

    Args:
        document, name, places: as in `edges_of`.
        tokens: (texts, starts, ends), int [long_len] each: the characters of each token; the text
            of special tokens is -1.
    Returns:
        int32 [num_pairs, 2]: (long token, global token), sorted, each once.
    """
    texts, starts, ends = tokens
    pairs = [np.zeros([0, 2], np.int32)]
    for mention in document.mentions.get(name, ()):
        if places[mention.block] >= 0:
            is_in = (texts == mention.text) & (starts < mention.end) & (ends > mention.start)
            found = np.flatnonzero(is_in)
            pairs.append(np.stack([found, np.full_like(found, places[mention.block])], axis=1))
    return np.unique(np.concatenate(pairs).astype(np.int32), axis=0)


def _part_of(document, places):
    parents = np.array([block.parent for block in document.blocks], np.int64)
    parts = np.flatnonzero(parents >= 0)
    return np.stack([parts, parents[parts]], axis=1)


def _has_part(document, places):
    return _part_of(document, places)[:, ::-1]


def _row(document, places):
    return _cell_pairs(document, places, lambda cells: _overlap(cells, "rows"))


def _column(document, places):
    return _cell_pairs(document, places, lambda cells: _overlap(cells, "columns"))


def _header(document, places):
    def is_header_of(cells):
        is_header = np.array([cell.is_header for cell in cells], bool)
        shared = _overlap(cells, "rows") | _overlap(cells, "columns")
        return shared & ~is_header[:, np.newaxis] & is_header

    return _cell_pairs(document, places, is_header_of)


def _cell_pairs(document, places, holds):
    """Pairs of different included cells for which `holds`, table by table."""
    pairs = [np.zeros([0, 2], np.int64)]
    tables = {}
    for cell in document.cells:
        if places[cell.block] >= 0:
            tables.setdefault(cell.table, []).append(cell)
    for cells in tables.values():
        if len(cells) > _MOST_CELLS:
            raise ValueError(
                f"A table has {len(cells)} cells; relations between more than {_MOST_CELLS} are "
                "not made. Set `max_global_len`."
            )
        blocks = np.array([cell.block for cell in cells], np.int64)
        is_pair = holds(cells) & ~np.eye(len(cells), dtype=bool)
        pairs.append(blocks[np.argwhere(is_pair)])
    return np.concatenate(pairs)


def _overlap(cells, field):
    """Whether two cells share a row or column: bool [num_cells, num_cells]."""
    first, last = np.array([getattr(cell, field) for cell in cells], np.int64).T
    return (first[:, np.newaxis] <= last) & (first <= last[:, np.newaxis])


DERIVED = {
    "part_of": _part_of,
    "has_part": _has_part,
    "row": _row,
    "column": _column,
    "header": _header,
}


# The input of an example.


_WHOLE = "whole"
_NONE = -1


@dataclasses.dataclass(frozen=True)
class SpecialIds:
    """Ids of special tokens, and the ids of global tokens by kind of block.

    `block` is the id for kinds that `by_kind` lacks, except for the token of the whole: `cls`.
    """

    cls: int
    sep: int
    pad: int
    block: int
    by_kind: dict

    def of_kind(self, kind):
        return self.by_kind.get(kind, self.cls if kind == _WHOLE else self.block)


class _Plan:
    """The parts of an example that all its windows share, and the room that is left."""

    def __init__(self, source, config):
        self.source = source
        self.config = config
        blocks = source.document.blocks
        self.num_questions = sum(block.kind == QUESTION for block in blocks)
        self.question_end = int(source.firsts[self.num_questions])
        self.has_text = len(blocks) > self.num_questions or not self.num_questions
        self.num_special = config.num_special(self.num_questions > 0, self.has_text)
        self.num_fixed_global = config.num_fixed_global(self.num_questions, self.question_end)

    def room(self, where):
        """Returns the `truncation.Room` for the text.

        Raises:
            ValueError: if the question and the special tokens alone do not fit.
        """
        config = self.config
        num_fixed = sum(self.num_special) + self.question_end
        pieces = config.long_limit - num_fixed
        blocks = config.global_limit - self.num_fixed_global
        needs = (
            ("max_long_len", pieces, num_fixed),
            ("max_global_len", blocks, self.num_fixed_global),
        )
        for name, left, needed in needs:
            if left < 0:
                raise ValueError(
                    f"`{where}`: the question and the special tokens, which are not cut, need "
                    f"`{name}` to be at least {needed}. Received: {getattr(config, name)}"
                )
        return truncation.Room(pieces, blocks, config.truncation == "blocks")

    def outline(self):
        first = self.num_questions
        counts = np.diff(self.source.firsts)[first:]
        parents = (max(x.parent - first, _NONE) for x in self.source.document.blocks[first:])
        return truncation.Outline(counts.tolist(), parents)


def encode(source, config, special, vocabulary, example, where):
    """Encodes an example: one `Encoding`, or one per window.

    Args:
        source: `TokenizedDocument`.
        config: `ProcessorConfig`.
        special: `SpecialIds`.
        vocabulary: sequence of str, by id.
        example: int. Its index among the examples given to the processor.
        where: str. Its name in errors.
    Returns:
        list of `Encoding`.
    Raises:
        ValueError: naming the example, if its question does not fit, or its text does not and must
            not be truncated.
    """
    plan = _Plan(source, config)
    outline, room = plan.outline(), plan.room(where)
    if config.stride is None:
        selections = [truncation.select(outline, room, config.give_way)]
    else:
        try:
            selections = truncation.select_windows(outline, room, config.stride)
        except ValueError as error:
            raise ValueError(f"`{where}`: {error}") from None
    cut = _cut(plan, selections)
    if cut and config.truncation == "error":
        raise ValueError(
            f"`{where}` is too long: {cut.num_tokens} tokens and {cut.num_blocks} blocks do not "
            "fit. Raise `max_long_len` or `max_global_len`, or choose another `truncation`."
        )
    return [
        _arranged(plan, selection, special, cut, (vocabulary, example, window))
        for window, selection in enumerate(selections)
    ]


def _arranged(plan, selection, special, cut, labels):
    """Returns the `Encoding` of a selection."""
    source, config = plan.source, plan.config
    blocks = source.document.blocks
    text = _pieces_of(plan, selection.spans)
    pieces, token_ids, num_before = _long_input(plan, text, special)
    global_blocks, global_ids, places = _global_input(plan, selection.spans, special)
    links = _links(plan, pieces, places)
    kinds = [_WHOLE if block == _NONE else blocks[block].kind for block in global_blocks]
    first_block, first_piece = selection.first_new
    first_new = source.firsts[plan.num_questions + first_block] + first_piece
    vocabulary, example, window = labels
    encoding = Encoding(
        source=source,
        example=example,
        window=window,
        token_ids=token_ids,
        pieces=pieces,
        global_ids=global_ids,
        global_blocks=global_blocks,
        links=links,
        segment_ids=_segments(plan, pieces, num_before),
        global_segment_ids=np.array([config.global_segments.get(x, 0) for x in kinds], np.int32),
        pairs={},
        cut=cut,
        first_new=num_before + int(np.searchsorted(text, first_new)),
        vocabulary=vocabulary,
    )
    encoding.pairs.update(_pairs(encoding, config, places))
    return encoding


def _pieces_of(plan, spans):
    """int64: the pieces of these spans, in order."""
    table = np.array(spans, np.int64).reshape(-1, 3)
    starts = plan.source.firsts[plan.num_questions + table[:, 0]] + table[:, 1]
    counts = table[:, 2] - table[:, 1]
    before = np.cumsum(counts) - counts
    return np.repeat(starts - before, counts) + np.arange(int(counts.sum()))


def _long_input(plan, text, special):
    """(pieces, token ids, number of tokens before the text)."""
    question = np.arange(plan.question_end)
    begin, question_end, end = ([_NONE] * number for number in plan.num_special)
    pieces = np.concatenate([begin, question, question_end, text, end]).astype(np.int64)
    ids = np.full(len(pieces), special.sep, np.int32)
    ids[: len(begin)] = special.cls
    ids[pieces >= 0] = plan.source.ids[pieces[pieces >= 0]]
    num_before = (len(begin) + len(question) + len(question_end)) * plan.has_text
    return pieces, ids, num_before


def _segments(plan, pieces, num_before):
    """int32 [num_tokens]: the segment of each long token."""
    source, config = plan.source, plan.config
    if config.segment_id is None:
        has_both = plan.num_questions and plan.has_text
        segments = (np.arange(len(pieces)) >= num_before) * int(bool(has_both))
    else:
        segments = np.full(len(pieces), config.segment_id)
    if config.segments:
        is_piece = pieces >= 0
        of_blocks = [config.segments.get(x.kind, _NONE) for x in source.document.blocks]
        of_pieces = np.array(of_blocks)[source.blocks[pieces[is_piece]]]
        segments[is_piece] = np.where(of_pieces < 0, segments[is_piece], of_pieces)
    return segments.astype(np.int32)


def _global_input(plan, spans, special):
    """(blocks of the global tokens, their ids, place of each block's global token or -1)."""
    source, first = plan.source, plan.num_questions
    by_token = plan.config.question_globals == "tokens"
    question = source.blocks[: plan.question_end] if by_token else np.arange(first)
    blocks = [[_NONE] * plan.config.whole_token, question, [first + x.block for x in spans]]
    blocks = np.concatenate(blocks).astype(np.int64)
    ids = [special.of_kind(_WHOLE)] * plan.config.whole_token
    kinds = [block.kind for block in source.document.blocks]
    if not by_token:
        ids += map(special.of_kind, kinds[:first])
    elif QUESTION in special.by_kind:
        ids += [special.of_kind(QUESTION)] * plan.question_end
    else:
        ids += [*source.ids[: plan.question_end]]
    ids += [special.of_kind(kinds[first + span.block]) for span in spans]
    places = np.full(len(kinds), _NONE, np.int64)
    tokens = np.flatnonzero(blocks >= 0)[::-1]  # A question's first token is written last.
    places[blocks[tokens]] = tokens
    return blocks, np.array(ids, np.int32), places


def _links(plan, pieces, places):
    """Links each long token to the global token of its block; special tokens to the whole's."""
    source, config = plan.source, plan.config
    links = np.full(len(pieces), 0 if config.whole_token else _NONE, np.int32)
    is_piece = pieces >= 0
    links[is_piece] = places[source.blocks[pieces[is_piece]]]
    if config.question_globals == "tokens":
        is_question = is_piece & (pieces < plan.question_end)
        links[is_question] = config.whole_token + pieces[is_question]
    return links


def _pairs(encoding, config, places):
    """Relations by their names in batches."""
    pairs = {}
    for name in config.relation_names:
        if name in config.mention_names:
            tokens = (encoding.texts, *encoding.offsets.T)
            found = mention_pairs(encoding.document, name, places, tokens)
            pairs[f"links/{name}"] = found
        else:
            pairs[f"edges/{name}"] = edges_of(encoding.document, name, places)
        if name in config.long_relation_names:
            tokens = (encoding.blocks, config.long_radius)
            found = long_edges_of(encoding.document, name, places, *tokens)
            pairs[f"long_edges/{name}"] = found
    return pairs


def _cut(plan, selections):
    """`Cut`: what is in none of the selections."""
    source, first = plan.source, plan.num_questions
    is_in = np.arange(len(source.ids)) < plan.question_end
    has_global = np.arange(len(source.document.blocks)) < first
    for selection in selections:
        is_in[_pieces_of(plan, selection.spans)] = True
        has_global[[first + span.block for span in selection.spans]] = True
    missing = np.flatnonzero(~is_in)
    if not len(missing):
        return Cut(num_blocks=int((~has_global).sum()))
    texts = source.texts[missing]
    is_break = (np.diff(missing) > 1) | (np.diff(texts) != 0)
    runs = np.split(missing, np.flatnonzero(is_break) + 1)
    spans = (
        (int(source.texts[run[0]]), int(source.starts[run[0]]), int(source.ends[run[-1]]))
        for run in runs
    )
    return Cut(len(missing), int((~has_global).sum()), tuple(spans))
