"""A tokenized example: what each token is, where in the text it is from, and what was truncated."""

import dataclasses
from functools import cached_property

import numpy as np

from etcmodel.text.documents import QUESTION, Document

__all__ = ["Cut", "Encoding", "ProcessedBatch", "TokenizedDocument"]

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
