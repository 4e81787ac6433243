"""Splits texts into pieces, and locates each piece's characters in the text.

A word (between white space) is tokenized only once; for the words of a text there is then one
dictionary look-up each, and the rest is arithmetic on arrays. The pieces are those of
`tokenization.FullTokenizer.tokenize`.
"""

import dataclasses
import threading
import unicodedata

import numpy as np

from etcmodel.text import characters
from etcmodel.text.byte_bpe import ByteLevelTokenizer
from etcmodel.text.vocabulary import SPIECE_UNDERLINE

_MOST_REMEMBERED = 1 << 22  # Characters and pieces of all words: about 200 MB in the worst case.

# Python's white space that the tokenizer's cleaning removes, and that does not end a word there.
_VANISHING = {
    code: "\0" for code in range(0x3001) if chr(code).isspace() and not characters.CLEAN[code]
}
_HAS_VANISHING = frozenset(map(chr, _VANISHING))
_ENCODED = ("ids", "pieces", "offsets")
_IS_SPACE = np.array([chr(code).isspace() for code in range(0x3001)] + [False])


@dataclasses.dataclass(frozen=True, eq=False)
class Pieces:
    """The pieces of several texts, one after the other.

    Attributes:
        ids: int32 [num_pieces].
        starts, ends: int32 [num_pieces]. Each piece's characters `text[start:end]`.
        counts: int64 [num_texts]. Number of pieces of each text.
    """

    ids: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    counts: np.ndarray


class Splitter:
    """Splits texts into pieces, with offsets.

    Offsets are those of the characters whose normalized form the piece spells, including their
    accents. The `▁` that a SentencePiece model puts in front of a text may be a piece without
    characters.

    Args:
        tokenizer: `tokenization.FullTokenizer` or `byte_bpe.ByteLevelTokenizer`.

    Attributes:
        knows_spaces: bool. Whether white space in front of a text matters, as in byte-level BPE,
            whose pieces include it.
    """

    def __init__(self, tokenizer):
        self.tokenizer = tokenizer
        self.knows_spaces = isinstance(tokenizer, ByteLevelTokenizer)
        self._by_word = not self.knows_spaces and (
            not tokenizer.sp_model or tokenizer.split_punctuation
        )
        self._words = _WordTable(self._split_word)

    def split(self, texts, follow_space=None):
        """Returns the `Pieces` of a list of texts.

        Args:
            texts: list of str.
            follow_space: list of bool, one per text. Whether white space precedes each text in its
                source, which matters if `knows_spaces`. None: nowhere.
        """
        if not texts:
            return _joined([])
        if self.knows_spaces:
            return self._split_bytes(texts, follow_space or [False] * len(texts))
        split = self._split_words if self._by_word else self._split_whole
        return _split_around(self.tokenizer.added, texts, split)

    def _split_words(self, texts):
        joined = "\n".join(texts)
        if not _HAS_VANISHING.isdisjoint(joined):
            joined = joined.translate(_VANISHING)
        words, word_starts = joined.split(), _word_starts(joined)
        if self._words.size > _MOST_REMEMBERED:
            self._words = _WordTable(self._split_word)
        ids, starts, ends, counts = self._words.look_up(words)
        lengths = np.fromiter(map(len, texts), np.int64, len(texts)) + 1
        text_starts = np.cumsum(lengths) - lengths
        text_of_word = np.searchsorted(text_starts, word_starts, side="right") - 1
        shift = np.repeat((word_starts - text_starts[text_of_word]).astype(np.int32), counts)
        num_pieces = np.bincount(text_of_word, weights=counts, minlength=len(texts))
        return Pieces(ids, starts + shift, ends + shift, num_pieces.astype(np.int64))

    def _split_whole(self, texts):
        """Splits by a SentencePiece model, which processes each text as a whole."""
        return _joined([_sentence_pieces(self.tokenizer.sp_model, text) for text in texts])

    def _split_bytes(self, texts, follow_space):
        """Splits by byte-level BPE: each text as a whole, including space in front."""
        spaced = [" " * follows + text for text, follows in zip(texts, follow_space, strict=True)]
        begins_at_spaces, entries = self.tokenizer.offsets_begin_at_spaces, []
        for text, (ids, offsets), shift in zip(
            spaced, self.tokenizer.pieces_of(spaced), follow_space, strict=True
        ):
            if begins_at_spaces:
                offsets = [_without_space(text, start, end) for start, end in offsets]
            places = np.maximum(np.array(offsets, np.int32).reshape(-1, 2) - shift, 0)
            entries.append((ids, *places.T.tolist()))
        return _joined(entries)

    def _split_word(self, word):
        """(ids, starts, ends) of one word, lists of int."""
        basic = self.tokenizer.basic_tokenizer
        places = _places(word, basic.do_lower_case)
        ids, starts, ends, begin = [], [], [], 0
        for token in basic.tokenize(word):
            for index, first, last in self._split_token(token):
                ids.append(index)
                starts.append(places[begin + first])
                ends.append(_end_of(word, places, begin + last))
            begin += len(token)
        return ids, starts, ends

    def _split_token(self, token):
        """(id, first character, last character) of each piece of a token between punctuation."""
        if self.tokenizer.sp_model:
            ids, starts, ends = _sentence_pieces(self.tokenizer.sp_model, token)
            for index, start, end in zip(ids, starts, ends, strict=True):
                start = min(start, len(token) - 1)
                yield index, start, max(end - 1, start)
            return
        wordpieces = self.tokenizer.wordpiece_tokenizer
        pieces = wordpieces.tokenize(token)
        if pieces == [wordpieces.unk_token]:
            yield self.tokenizer.vocab[wordpieces.unk_token], 0, len(token) - 1
            return
        begin = 0
        for piece in pieces:
            end = begin + len(piece) - (2 if begin else 0)
            yield self.tokenizer.vocab[piece], begin, end - 1
            begin = end


def _split_around(added, texts, split):
    """The `Pieces` of texts with added tokens: `split` splits what is between these."""
    parts = [added.split(text) for text in texts] if added else []
    if not any(index is not None for part in parts for *_, index in part):
        return split(texts)
    flat = [(text, *part) for text, of_text in zip(texts, parts, strict=True) for part in of_text]
    between = split([text[start:end] if index is None else "" for text, start, end, index in flat])
    stops = np.cumsum(between.counts)
    entries = []
    for (_, start, end, index), stop, count in zip(flat, stops, between.counts, strict=True):
        if index is not None:
            entries.append(([index], [start], [end]))
            continue
        own = slice(stop - count, stop)
        places = between.starts[own] + start, between.ends[own] + start
        entries.append((between.ids[own].tolist(), *(x.tolist() for x in places)))
    joined = _joined(entries)
    rows = np.repeat(np.arange(len(texts)), list(map(len, parts)))
    counts = np.bincount(rows, weights=joined.counts, minlength=len(texts)).astype(np.int64)
    return dataclasses.replace(joined, counts=counts)


class _WordTable:
    """The pieces of each word so far, in growing arrays."""

    def __init__(self, split_word):
        self._numbers = characters.Memo(self._add, max_entries=1 << 62)
        self._split_word = split_word
        self._lock = threading.Lock()  # Generators of tf.data run in threads.
        self._bounds = np.zeros(1024, np.int64)  # Word i has the pieces bounds[i]:bounds[i + 1].
        self._pieces = np.zeros([3, 1024], np.int32)  # ids, starts, ends
        self._num_words = 0
        self.size = 0

    def look_up(self, words):
        """(ids, starts, ends, counts) of a list of words; the first three flat over all pieces."""
        numbers = np.fromiter(map(self._numbers.__getitem__, words), np.int64, len(words))
        bounds, pieces = self._bounds, self._pieces
        firsts = bounds[numbers]
        counts = bounds[numbers + 1] - firsts
        ends = np.cumsum(counts)
        total = int(ends[-1]) if len(ends) else 0
        indices = np.repeat(firsts - ends + counts, counts) + np.arange(total)
        return *pieces[:, indices], counts

    def _add(self, word):
        entry = self._split_word(word)
        with self._lock:
            number, first = self._num_words, int(self._bounds[self._num_words])
            last = first + len(entry[0])
            self._pieces = _grown(self._pieces, last)
            self._bounds = _grown(self._bounds, number + 2)
            self._pieces[:, first:last] = entry
            self._bounds[number + 1] = last
            self._num_words += 1
            self.size += len(word) + len(entry[0])
        return number


def _grown(array, length):
    """The array, or a longer copy: readers of the old one are not disturbed."""
    if length <= array.shape[-1]:
        return array
    new = np.zeros([*array.shape[:-1], 2 * length], array.dtype)
    new[..., : array.shape[-1]] = array
    return new


def _word_starts(text):
    """int64 [num_words]: the first character of each word of `text.split()`."""
    if text.isascii():
        codes = np.frombuffer(text.encode("ascii"), np.uint8)
    else:
        codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
        codes = np.minimum(codes, len(_IS_SPACE) - 1)
    is_word = np.concatenate([[False], ~_IS_SPACE[codes]])
    return np.flatnonzero(is_word[1:] & ~is_word[:-1])


def _places(word, do_lower_case):
    """For each character of the normalized word, the index of its character in `word`.

    Normalization works character by character, except for the final sigma, which is one letter,
    too, and for the order of accents, which are removed.
    """
    if word.isascii() and word.isprintable():
        return range(len(word))  # The usual case, and fast.
    places = []
    for place, char in enumerate(word):
        cleaned = char.translate(characters.CLEAN)
        if do_lower_case:
            cleaned = characters.strip_accents(cleaned.lower())
        places += [place] * len("".join(cleaned.split()))
    return places


def _end_of(word, places, last):
    """The end of a piece whose last normalized character is number `last`, including accents."""
    end = places[last] + 1
    following = places[last + 1] if last + 1 < len(places) else len(word)
    while end < following and unicodedata.category(word[end]) == "Mn":
        end += 1
    return end


def _sentence_pieces(model, text):
    """(ids, starts, ends), lists of int; the pieces are those of `vocabulary.encode_pieces`."""
    text = characters.replace_surrogates(text)
    ids, starts, ends = [], [], []
    encoded = model.encode(text, return_type="offset_mapping")
    for index, piece, (start, end) in zip(*map(encoded.get, _ENCODED), strict=True):
        while start < end - 1 and text[start].isspace():
            start += 1
        if len(piece) > 1 and piece[-1] == "," and piece[-2].isdigit():
            number = piece[:-1].replace(SPIECE_UNDERLINE, "")
            parts = [*model.EncodeAsPieces(number), ","]
            places = _split_places([part.replace(SPIECE_UNDERLINE, "") for part in parts], end)
            ids += map(model.PieceToId, parts)
            starts += [max(start, first) for first, _ in places]
            ends += [max(start, last) for _, last in places]
        else:
            ids.append(index)
            starts.append(start)
            ends.append(end)
    return ids, starts, ends


def _without_space(text, start, end):
    """(start, end) without white space in front, unless there is nothing else."""
    stripped = text[start:end].lstrip()
    return (end - len(stripped), end) if stripped else (start, end)


def _split_places(parts, end):
    """(start, end) of parts that end at `end` together."""
    places = []
    for part in reversed(parts):
        places.append((end - len(part), end))
        end -= len(part)
    return places[::-1]


def _joined(entries):
    ids, starts, ends = ([x for entry in entries for x in entry[i]] for i in range(3))
    counts = [len(entry[0]) for entry in entries]
    arrays = (np.array(values, np.int32) for values in (ids, starts, ends))
    return Pieces(*arrays, np.array(counts, np.int64))
