"""A tokenized example: what each token is, where in the text it is from, and what was truncated."""

import dataclasses
from functools import cached_property

import numpy as np

from etcmodel.text.documents import QUESTION, Document

_NOTHING = -1


@dataclasses.dataclass(frozen=True, eq=False)
class TokenizedDocument:
    """A document and all its pieces.

    Attributes:
        document: `documents.Document`.
        ids, texts, starts, ends, blocks: int32 [num_pieces]. Each piece's token id, its characters
            `texts[text][start:end]`, and its block.
        firsts: int64 [num_blocks + 1]. The first piece of each block, and the number of pieces.
    """

    document: Document
    ids: np.ndarray
    texts: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    blocks: np.ndarray
    firsts: np.ndarray

    @property
    def num_questions(self):
        """int. Number of blocks that are questions, which come first."""
        return sum(block.kind == QUESTION for block in self.document.blocks)

    @property
    def num_question_pieces(self):
        """int. Number of their pieces."""
        return int(self.firsts[self.num_questions])

    @classmethod
    def of(cls, document, splitter):
        """Tokenizes a document with a `pieces.Splitter`."""
        blocks = document.blocks
        follow_space = [_follows_space(document, block) for block in blocks]
        pieces = splitter.split([document.block_text(block) for block in blocks], follow_space)
        shifts = np.array([block.start for block in blocks], np.int32)
        texts = np.array([block.text for block in blocks], np.int32)
        owners = np.repeat(np.arange(len(blocks), dtype=np.int32), pieces.counts)
        return cls(
            document=document,
            ids=pieces.ids,
            texts=texts[owners],
            starts=pieces.starts + shifts[owners],
            ends=pieces.ends + shifts[owners],
            blocks=owners,
            firsts=np.concatenate([[0], np.cumsum(pieces.counts)]),
        )

    def word_numbers(self, sentences):
        """Tells the word that each piece is of, for texts that are words with a space between them.

        Args:
            sentences: list of lists of str, the words of each text.
        Returns:
            int64 [num_pieces]. Words are counted from 0, through all texts; -1 for the space alone.
        """
        words = []
        for text, sentence in enumerate(sentences):
            ends = np.cumsum([len(word) + 1 for word in sentence]) - 1
            # The last character counts: a piece of byte-level BPE may begin with the space before.
            lasts = self.ends[self.texts == text] - 1
            found = np.searchsorted(ends, lasts, side="right")
            is_space = (lasts < 0) | np.isin(lasts, ends)
            count = sum(map(len, sentences[:text]))
            words.append(np.where(is_space, -1, count + found))
        return np.concatenate(words)


def _follows_space(document, block):
    """Whether there is white space in front of a block in its text."""
    return block.start > 0 and document.texts[block.text][block.start - 1].isspace()


@dataclasses.dataclass(frozen=True)
class Cut:
    """What was truncated: the parts of an example that are in none of its windows.

    Attributes:
        num_tokens: int.
        num_blocks: int. Blocks without a global token.
        spans: tuple of (text, start, end): the characters of these tokens; consecutive ones are
            joined.
    """

    num_tokens: int = 0
    num_blocks: int = 0
    spans: tuple = ()

    def __bool__(self):
        return bool(self.num_tokens or self.num_blocks)


@dataclasses.dataclass(frozen=True, eq=False)
class Encoding:
    """One example as token ids, or one window of it.

    Attributes:
        source: `TokenizedDocument`.
        example: int. Its index among the examples given to the processor.
        window: int. Number of the window, 0 if there is only one.
        token_ids: int32 [num_tokens].
        pieces: int64 [num_tokens]. Index of each token's piece in `source`; -1 for special tokens.
        global_ids: int32 [num_global].
        global_blocks: int64 [num_global]. The block of each; -1 for the token of the whole example.
        links: int32 [num_tokens]. The global token of each token's own block, or -1.
        segment_ids, global_segment_ids: int32 [num_tokens], [num_global].
        pairs: dict of str to int32 [num_pairs, 2], by their names in batches.
        cut: `Cut`.
        first_new: int. Text tokens before this one were in an earlier window, too.
        vocabulary: sequence of str, by id.
        row, place, global_place: int. The row of the batch, and the positions in it of the first
            long and the first global token.
        number: int. From 1: its number among the examples of its row.
    """

    source: TokenizedDocument
    example: int
    window: int
    token_ids: np.ndarray
    pieces: np.ndarray
    global_ids: np.ndarray
    global_blocks: np.ndarray
    links: np.ndarray
    segment_ids: np.ndarray
    global_segment_ids: np.ndarray
    pairs: dict
    cut: Cut
    first_new: int
    vocabulary: tuple = dataclasses.field(repr=False)
    row: int = 0
    place: int = 0
    global_place: int = 0
    number: int = 1

    @property
    def document(self):
        return self.source.document

    @property
    def tokens(self):
        """list of str."""
        return [self.vocabulary[index] for index in self.token_ids]

    @property
    def global_tokens(self):
        """list of str."""
        return [self.vocabulary[index] for index in self.global_ids]

    @cached_property
    def texts(self):
        """int32 [num_tokens]: the index of each token's text, -1 for none."""
        return self._of_pieces(self.source.texts)

    @cached_property
    def offsets(self):
        """int32 [num_tokens, 2]: each token's characters `[start, end)` there; or (-1, -1)."""
        places = (self.source.starts, self.source.ends)
        return np.stack([self._of_pieces(values) for values in places], axis=1)

    @cached_property
    def blocks(self):
        """int32 [num_tokens]: the block of each token, -1 for none."""
        return self._of_pieces(self.source.blocks)

    def _of_pieces(self, values):
        if not len(values):
            return np.full(len(self.pieces), _NOTHING, np.int32)
        return np.where(self.pieces >= 0, values[self.pieces], _NOTHING).astype(np.int32)

    def token_span(self, start, end, text=0):
        """Finds the tokens of the characters `texts[text][start:end]`, such as those of an answer.

        Returns:
            (first, last) long token of the row, both inclusive; None if some of these characters'
            tokens were truncated.
        """
        source = self.source
        sought = (source.texts == text) & (source.starts < end) & (source.ends > start)
        is_in = (self.texts == text) & (self.offsets[:, 0] < end) & (self.offsets[:, 1] > start)
        found = np.flatnonzero(is_in)
        if not len(found) or len(found) != np.count_nonzero(sought):
            return None
        return self.place + int(found[0]), self.place + int(found[-1])

    def char_span(self, first, last):
        """Finds the characters of the row's long tokens `first` to `last`, both inclusive.

        Returns:
            (text, start, end); None if these are not tokens of one text.
        """
        first, last = first - self.place, last - self.place
        if not 0 <= first <= last < len(self.pieces):
            return None
        text = int(self.texts[first])
        if text < 0 or (self.texts[first : last + 1] != text).any():
            return None
        places = self.offsets[first : last + 1]
        return text, int(places[:, 0].min()), int(places[:, 1].max())

    def text_of(self, first, last):
        """Returns the original text of these tokens: str, '' if they are not from one text."""
        span = self.char_span(first, last)
        return "" if span is None else self.document.texts[span[0]][span[1] : span[2]]


class ProcessedBatch(dict):
    """A processor's output: a dict of features by name, int32 arrays with the batch axis first.

    Attributes:
        encodings: tuple of `Encoding`, in the order of the examples and their windows.
        relation_names: tuple of str: see `ProcessorConfig`.
    """

    # TensorFlow creates an empty one and fills a copy with tensors, for a model's call.
    def __init__(self, features=(), encodings=(), relation_names=()):
        super().__init__(features)
        self.encodings = tuple(encodings)
        self.relation_names = tuple(relation_names)

    @property
    def long_shape(self):
        """(batch, long_len)."""
        return self["token_ids"].shape

    def windows(self, example):
        """Returns the encodings of one of the examples given to the processor."""
        return [encoding for encoding in self.encodings if encoding.example == example]


# Packs encodings into the rows of a batch, and pads them.


_LONG = {"token_ids": "token_ids", "segment_ids": "segment_ids"}
_GLOBAL = {"global_token_ids": "global_ids", "global_segment_ids": "global_segment_ids"}
_SIDES = {  # Where the tokens of a pair are counted from.
    "links": ("place", "global_place"),
    "edges": ("global_place", "global_place"),
    "long_edges": ("place", "place"),
}
_NONE = -1


def pack(encodings, long_limit, global_limit):
    """Assigns each encoding to the first row that has room for it.

    Args:
        encodings: list of `Encoding`.
        long_limit, global_limit: int. The most tokens of a row.
    Returns:
        list of `Encoding`, in the same order, with `row`, `place`, `global_place` and `number`.
    """
    used, placed = [], []
    for encoding in encodings:
        sizes = np.array([len(encoding.token_ids), len(encoding.global_ids), 1])
        limits = np.array([long_limit, global_limit, np.inf])
        row = next((i for i, x in enumerate(used) if (x + sizes <= limits).all()), len(used))
        if row == len(used):
            used.append(np.zeros(3, np.int64))
        place, global_place, number = map(int, used[row])
        placed.append(
            dataclasses.replace(
                encoding, row=row, place=place, global_place=global_place, number=number + 1
            )
        )
        used[row] = used[row] + sizes
    return placed


def make_batch(encodings, config, pad_id):
    """Puts encodings into padded arrays.

    Args:
        encodings: list of `Encoding`, not empty.
        config: `ProcessorConfig`.
        pad_id: int. The id of padding.
    Returns:
        `ProcessedBatch`.
    """
    if config.pack:
        encodings = pack(encodings, config.max_long_len, config.max_global_len)
    else:
        encodings = [dataclasses.replace(x, row=row) for row, x in enumerate(encodings)]
    num_rows = max(x.row for x in encodings) + 1
    multiple = config.pad_to_multiple_of
    if config.pad_to == "max":
        long_len, global_len = config.max_long_len, config.max_global_len
    else:
        long_len = max(1, *(x.place + len(x.token_ids) for x in encodings))  # Models need one.
        global_len = max(x.global_place + len(x.global_ids) for x in encodings)
    shape, global_shape = ([num_rows, _rounded(n, multiple)] for n in (long_len, global_len))
    features = _token_features(encodings, shape, global_shape, pad_id, config.position_ids)
    for name in encodings[0].pairs:
        features[name] = _padded_pairs(encodings, name, num_rows, multiple)
    return ProcessedBatch(features, encodings, config.relation_names)


def _token_features(encodings, shape, global_shape, pad_id, has_positions):
    features = {name: np.zeros(shape, np.int32) for name in ("token_ids", "segment_ids")}
    features |= {name: np.zeros(global_shape, np.int32) for name in _GLOBAL}
    for name in ("token_ids", "global_token_ids"):
        features[name][:] = pad_id
    features["links"] = np.full(shape, _NONE, np.int32)
    for prefix, sides in (("", shape), ("global_", global_shape)):
        features[f"{prefix}example_ids"] = np.zeros(sides, np.int32)
        if has_positions:
            features[f"{prefix}position_ids"] = np.zeros(sides, np.int32)
    for x in encodings:
        where = (x.row, slice(x.place, x.place + len(x.token_ids)))
        global_where = (x.row, slice(x.global_place, x.global_place + len(x.global_ids)))
        for name, field in _LONG.items():
            features[name][where] = getattr(x, field)
        for name, field in _GLOBAL.items():
            features[name][global_where] = getattr(x, field)
        features["links"][where] = np.where(x.links >= 0, x.links + x.global_place, _NONE)
        features["example_ids"][where] = x.number
        features["global_example_ids"][global_where] = x.number
        if has_positions:
            features["position_ids"][where] = np.arange(len(x.token_ids))
            features["global_position_ids"][global_where] = np.arange(len(x.global_ids))
    return features


def _padded_pairs(encodings, name, num_rows, multiple):
    """int32 [num_rows, num_pairs, 2], padded by -1."""
    sides = _SIDES[name.partition("/")[0]]
    rows = [[np.zeros([0, 2], np.int32)] for _ in range(num_rows)]
    for x in encodings:
        shift = [getattr(x, side) for side in sides]
        rows[x.row].append(x.pairs[name] + np.array(shift, np.int32))
    joined = [np.concatenate(row) for row in rows]
    longest = _rounded(max(map(len, joined)), multiple)
    padded = np.full([num_rows, longest, 2], _NONE, np.int32)
    for row, pairs in enumerate(joined):
        padded[row, : len(pairs)] = pairs
    return padded


def _rounded(length, multiple):
    return -(-length // multiple) * multiple
