"""Tokenizers in a graph: the pieces of `text.pieces.Splitter`, and their places in the text.

tensorflow-text has the pieces of words (`FastWordpieceTokenizer`) and of SentencePiece models. What
comes before, cleaning, case, accents, white space and punctuation, is looked up in tables of the
Python tokenizers (see `Table`), since ICU's normalizers differ from them in places.
"""

import abc
import functools
import unicodedata
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from etcmodel import extras
from etcmodel.serving.text import sequences
from etcmodel.text import added_tokens, characters, vocabulary

with extras.needed("serve"):
    import tensorflow_text

# Properties of characters, looked up in a graph.
#
# The tables are made from the Python tokenizers' own functions when a model is exported, character
# by character. So a graph uses the same version of Unicode as the exporting Python, independent of
# the server's libraries.


_NUM_CODE_POINTS = 0x110000
_PAGE_BITS = 8
_NOTHING_KNOWN = {"Cn", "Co", "Cs"}  # Not assigned, for private use, surrogates.

SPACE = 1  # White space, as Python's `str.isspace` and `re`'s `\s` have it.
WORD_BREAK = 2  # What stands between the words of a tokenizer.
WORD_OF_ITS_OWN = 4  # CJK ideographs.
PUNCTUATION = 8
MARK = 16  # Nonspacing marks, such as accents.
CASED = 32  # These two decide about a final sigma.
CASE_IGNORABLE = 64

OF_WORD = 128  # See `characters.is_of_word`.
DIGIT = 256  # Decimal ones.

_FINAL_SIGMA = "ς"
_SIGMA = "Σ"


class Table:
    """An int32 for each code point: pages of 256, of which equal ones are kept once.

    Args:
        values: int array [0x110000].
    Call args:
        code_points: int32, any shape.
    Returns:
        int32, likewise.
    """

    def __init__(self, values):
        pages = np.asarray(values, np.int32).reshape(-1, 1 << _PAGE_BITS)
        self._pages, page_of = np.unique(pages, axis=0, return_inverse=True)
        self._page_of = page_of.reshape(-1).astype(np.int32)

    def __call__(self, code_points):
        pages = tf.gather(self._page_of, tf.bitwise.right_shift(code_points, _PAGE_BITS))
        within = tf.bitwise.bitwise_and(code_points, (1 << _PAGE_BITS) - 1)
        return tf.gather(self._pages.reshape(-1), pages * (1 << _PAGE_BITS) + within)


@functools.lru_cache
def properties():
    """`Table` of the properties above, which are bits."""
    values = np.zeros(_NUM_CODE_POINTS, np.int32)
    for code in _assigned():
        values[code] = _properties_of(code)
    return Table(values)


@functools.lru_cache
def _assigned():
    """The code points of all blocks of 256 in which Unicode has assigned any: tuple of int."""
    pages = (range(start, start + 256) for start in range(0, _NUM_CODE_POINTS, 256))
    return tuple(
        code
        for page in pages
        if not {unicodedata.category(chr(code)) for code in page} <= _NOTHING_KNOWN
        for code in page
    )


def _properties_of(code):
    char, cleaned = chr(code), characters.CLEAN[code]
    if unicodedata.category(char) in _NOTHING_KNOWN:
        return WORD_OF_ITS_OWN if len(cleaned) > 1 else 0
    ends_sigma = (char + _SIGMA).lower().endswith(_FINAL_SIGMA)
    is_skipped = not ends_sigma and ("a" + char + _SIGMA).lower().endswith(_FINAL_SIGMA)
    held = {
        SPACE: char.isspace(),
        WORD_BREAK: cleaned.isspace(),
        WORD_OF_ITS_OWN: len(cleaned) > 1,
        PUNCTUATION: characters.is_punctuation(char),
        MARK: unicodedata.category(char) == "Mn",
        CASED: ends_sigma,
        CASE_IGNORABLE: is_skipped,
        OF_WORD: characters.is_of_word(char),
        DIGIT: char.isdecimal(),
    }
    return sum(bit for bit, holds in held.items() if holds)


def has(held, bits):
    """bool: which of the characters with properties `held` have one of these bits."""
    return tf.not_equal(tf.bitwise.bitwise_and(held, bits), 0)


class Spelling(NamedTuple):
    """Characters after normalization, those of all texts one after the other.

    Attributes:
        code_points: int32 [num_spelled].
        sources: int32 [num_spelled]. Index of the character that each is from.
    """

    code_points: tf.Tensor
    sources: tf.Tensor


@functools.lru_cache
def _spellings(lower_case):
    """(`Table` of lengths, `Table` of starts, int32 of what is spelled there).

    The start -1 is for characters that are spelled as they are.
    """
    lengths, starts = np.ones([2, _NUM_CODE_POINTS], np.int32) * [[1], [-1]]
    spelled = []
    for code in _assigned():
        text = characters.CLEAN[code].strip()
        if lower_case and unicodedata.category(chr(code)) not in _NOTHING_KNOWN:
            text = characters.strip_accents(text.lower())
        lengths[code] = len(text)
        if text not in ("", chr(code)):
            starts[code] = len(spelled)
            spelled += map(ord, text)
    return Table(lengths), Table(starts), np.array(spelled or [0], np.int32)


def spell(code_points, lower_case):
    """What a tokenizer makes of characters: cleaned, and maybe in lower case without accents.

    Args:
        code_points: int32 [num_chars].
        lower_case: bool.
    Returns:
        `Spelling`. White space and what vanishes have no characters, some have several.
    """
    lengths_of, starts_of, spelled = _spellings(lower_case)
    lengths, starts = lengths_of(code_points), starts_of(code_points)
    sources = tf.repeat(tf.range(tf.size(code_points)), lengths)
    firsts = tf.cumsum(lengths, exclusive=True)
    within = tf.range(tf.size(sources)) - tf.gather(firsts, sources)
    starts = tf.gather(starts, sources)
    changed = tf.gather(spelled, tf.maximum(starts, 0) + within)
    return Spelling(tf.where(starts < 0, tf.gather(code_points, sources), changed), sources)


# The tokenizers.


_SIGMAS = tuple(map(ord, "Σσς"))


class Pieces(NamedTuple):
    """The pieces of several texts, one after the other.

    Attributes:
        ids: int32 [num_pieces].
        texts: int32 [num_pieces]. Which text each is from.
        starts, ends: int32 [num_pieces]. The characters `[start, end)` of the text.
    """

    ids: tf.Tensor
    texts: tf.Tensor
    starts: tf.Tensor
    ends: tf.Tensor


class GraphTokenizer(tf.Module, abc.ABC):
    """Base of the tokenizers here. A saved model must own it, as it may have a resource."""

    @abc.abstractmethod
    def __call__(self, texts):
        """`Pieces` of texts, int32 code points: `tf.RaggedTensor` [num_texts, (num_chars)]."""


def make_tokenizer(tokenizer):
    """The `GraphTokenizer` of a `text.tokenization.FullTokenizer`.

    Outside of a graph, `tf.random.set_seed` drops all kernels that TensorFlow keeps, and with them
    the model of a SentencePiece tokenizer made before: make another one then.

    Raises:
        ValueError: if it is of a kind that tensorflow-text does not have, such as byte-level BPE,
            or has added tokens that a graph cannot find.
    """
    if getattr(tokenizer, "sp_model", None):
        made = _SentencePieces(tokenizer.sp_model)
        made = _WordTokenizer(made, False) if tokenizer.split_punctuation else made
    elif getattr(tokenizer, "wordpiece_tokenizer", None):
        lower_case = tokenizer.basic_tokenizer.do_lower_case
        made = _WordTokenizer(_WordPieces(tokenizer), lower_case)
    else:
        raise ValueError(
            "A graph has WordPiece and SentencePiece tokenizers alone; tensorflow-text has none "
            f"for {type(tokenizer).__name__}. Export features instead: "
            "`serving.export_saved_model`."
        )
    return AroundTokens(made, tokenizer.added) if tokenizer.added else made


class AroundTokens(GraphTokenizer):
    """Leaves added tokens whole: the twin of `text.added_tokens.AddedTokens.split`.

    Args:
        inner: `GraphTokenizer` of what is between them.
        added: `AddedTokens`.
    Raises:
        ValueError: naming a token, if a graph cannot find it.
    """

    def __init__(self, inner, added):
        super().__init__()
        self._inner = inner
        tokens = [(x, added.lower_case and x.normalized) for x in added.tokens]
        for token, is_spelled in tokens:
            cleaned = added_tokens.normalized(token.content)[0].strip() if is_spelled else "a"
            if token.single_word or cleaned != "".join(cleaned.split()):
                raise ValueError(
                    f"A graph cannot find the added token {token.content!r:.80}, which has white "
                    "space or is a single word (`single_word`). Export features instead: "
                    "`serving.export_saved_model`."
                )
        self._as_is = _Finder([(x.content, x.id) for x, spelled in tokens if not spelled])
        names = [(added_tokens.normalized(x.content)[0], x.id) for x, spelled in tokens if spelled]
        self._spelled = _Finder(names)

    def __call__(self, texts):
        chars, text_of = texts.flat_values, tf.cast(texts.value_rowids(), tf.int32)
        nothing = tf.zeros_like(chars, tf.bool)
        found = self._as_is.find(chars, text_of, nothing)
        if self._spelled:
            found = self._with_spelled(chars, text_of, found)
        starts, ends, ids = found
        size = tf.size(chars)
        inside = _covered(starts, ends, size)
        is_first = sequences.firsts_of_runs(text_of) | _marked(starts, size) | _marked(ends, size)
        part_of = tf.cumsum(tf.cast(is_first, tf.int32)) - 1
        firsts = tf.cast(tf.where(is_first)[:, 0], tf.int32)
        kept = tf.boolean_mask(chars, ~inside)
        between = tf.RaggedTensor.from_value_rowids(
            kept, tf.cast(tf.boolean_mask(part_of, ~inside), tf.int64), tf.size(firsts, tf.int64)
        )
        pieces = self._inner(between)
        parts = tf.concat([pieces.texts, tf.gather(part_of, starts)], 0)
        order = tf.argsort(parts, stable=True)
        parts = tf.gather(parts, order)
        texts_of = tf.gather(tf.gather(text_of, firsts), parts)
        shifts = tf.gather(firsts, parts) - tf.gather(
            tf.cast(texts.row_starts(), tf.int32), texts_of
        )
        own = (ids, tf.zeros_like(starts), ends - starts)
        joined = zip((pieces.ids, pieces.starts, pieces.ends), own, strict=True)
        ids, begins, stops = (tf.gather(tf.concat(x, 0), order) for x in joined)
        return Pieces(ids, texts_of, begins + shifts, stops + shifts)

    def _with_spelled(self, chars, text_of, found):
        """(starts, ends, ids) of what is found, and of tokens in the normalized text."""
        starts, ends, _ = found
        spelled, sources = spell(chars, True)
        inside = _covered(starts, ends, tf.size(chars))
        words = _words(text_of, properties()(chars))
        # Parts between the tokens that are already found, too.
        words += tf.cumsum(tf.cast(_marked(starts, tf.size(chars)), tf.int32))
        words += tf.cumsum(tf.cast(_marked(ends, tf.size(chars)), tf.int32))
        more = self._spelled.find(spelled, tf.gather(words, sources), tf.gather(inside, sources))
        begins = tf.gather(sources, more[0])
        stops = tf.gather(sources, more[1] - 1) + 1
        joined = zip(found, (begins, stops, more[2]), strict=True)
        starts, ends, ids = (tf.concat(x, 0) for x in joined)
        order = tf.argsort(starts)
        return tuple(tf.gather(x, order) for x in (starts, ends, ids))


def _marked(places, size):
    """bool [size]: whether each index is among `places`; `size` itself may be."""
    places = tf.boolean_mask(places, places < size)
    ones = tf.ones_like(places)
    return tf.scatter_nd(places[:, tf.newaxis], ones, size[tf.newaxis]) > 0


def _covered(starts, ends, size):
    """bool [size]: whether each index is in one of the ranges, which do not overlap."""
    steps = tf.cast(_marked(starts, size), tf.int32) - tf.cast(_marked(ends, size), tf.int32)
    return tf.cumsum(steps) > 0


class _Finder:
    """Finds names in code points: from left to right, the longest at each place.

    Args:
        names: list of (str, id).
    """

    def __init__(self, names):
        lengths = [len(name) for name, _ in names]
        self._codes = np.full([len(names), max(lengths, default=0)], -1, np.int32)
        for row, (name, _) in enumerate(names):
            self._codes[row, : len(name)] = [*map(ord, name)]
        self._lengths = np.array(lengths, np.int32)
        self._ids = np.array([index for _, index in names], np.int32)

    def __bool__(self):
        return bool(len(self._ids))

    def find(self, codes, rows, excluded):
        """(starts, ends, ids), int32 [number] each, of names within one row.

        Args:
            codes, rows: int32 [number of characters]. Code points, and the row of each.
            excluded: bool, likewise. Characters that are in no name.
        """
        none = tf.zeros([0], tf.int32)
        if not self:
            return none, none, none
        is_first = tf.reduce_any(tf.equal(codes[:, tf.newaxis], self._codes[:, 0]), axis=1)
        places = tf.cast(tf.where(is_first & ~excluded)[:, 0], tf.int32)
        width = self._codes.shape[1]
        windows = places[:, tf.newaxis] + tf.range(width)
        seen = tf.gather(tf.pad(codes, [[0, width]], constant_values=-2), windows)
        seen_rows = tf.gather(tf.pad(rows, [[0, width]], constant_values=-1), windows)
        is_in = tf.equal(seen_rows, seen_rows[:, :1])
        is_in &= ~tf.gather(tf.pad(excluded, [[0, width]]), windows)
        same = tf.equal(seen[:, tf.newaxis], self._codes) & is_in[:, tf.newaxis]
        same = tf.reduce_all(same | (self._codes < 0), axis=2)
        lengths = tf.where(same, self._lengths, 0)
        best = tf.argmax(lengths, axis=1, output_type=tf.int32)
        longest = tf.reduce_max(lengths, axis=1)
        hit = longest > 0
        starts, ends = tf.boolean_mask(places, hit), tf.boolean_mask(places + longest, hit)
        # What begins within the one before is none.
        free, _ = tf.scan(
            lambda last, now: (now[0] >= last[1], tf.where(now[0] >= last[1], now[1], last[1])),
            (starts, ends),
            initializer=(False, 0),
        )
        ids = tf.gather(self._ids, tf.boolean_mask(best, hit))
        return tuple(tf.boolean_mask(x, free) for x in (starts, ends, ids))


class _WordTokenizer(GraphTokenizer):
    """Splits texts at white space and punctuation, then each token by itself into pieces."""

    def __init__(self, pieces, lower_case):
        super().__init__()
        self._pieces = pieces
        self._lower_case = lower_case

    def __call__(self, texts):
        chars = texts.flat_values
        held = properties()(chars)
        text_of = tf.cast(texts.value_rowids(), tf.int32)
        words = _words(text_of, held)
        spelled, sources = spell(chars, self._lower_case)
        if self._lower_case:
            spelled = _with_final_sigmas(spelled, sources, chars, held, words)
        starts = _token_starts(spelled, tf.gather(words, sources))
        tokens = tf.RaggedTensor.from_row_starts(spelled, tf.cast(starts, tf.int64))
        ids, firsts, lasts = self._pieces.of_tokens(tokens, starts)
        begins = tf.gather(sources, firsts)
        # Accents at the start of a text are none of the one before it.
        is_no_accent = ~has(held, MARK) | sequences.firsts_of_runs(text_of)
        ends = _ends(sources, lasts, is_no_accent)
        text_of = tf.gather(text_of, begins)
        shifts = tf.gather(tf.cast(texts.row_starts(), tf.int32), text_of)
        return Pieces(ids, text_of, begins - shifts, ends - shifts)


def _words(text_of, held):
    """int32 [num_chars]. The number of each character's word, what is between words included."""
    alone = has(held, WORD_BREAK | WORD_OF_ITS_OWN)
    is_first = sequences.firsts_of_runs(text_of) | alone
    is_first |= tf.concat([tf.zeros_like(alone[:1]), alone[:-1]], 0)
    return tf.cumsum(tf.cast(is_first, tf.int32))


def _token_starts(spelled, words):
    """int32 [num_tokens]. Where tokens begin: at words, and around punctuation."""
    alone = has(properties()(spelled), PUNCTUATION)
    is_first = sequences.firsts_of_runs(words) | alone
    is_first |= tf.concat([tf.zeros_like(alone[:1]), alone[:-1]], 0)
    return tf.cast(tf.where(is_first)[:, 0], tf.int32)


def _with_final_sigmas(spelled, sources, chars, held, words):
    """Spells a capital sigma behind a cased letter, and not before one, as at the end of a word.

    Between the two there may be what does not count. Source: the Unicode Standard, section 3.13.
    """
    capital, small, final = _SIGMAS
    # What vanishes is no part of the word that Python turns into lower case.
    counts = ~has(held, CASE_IGNORABLE) & ~_vanishes(sources, chars, held)
    is_cased = has(held, CASED)
    before = _is_cased_there(sequences.previous_true(counts), is_cased, words)
    after = _is_cased_there(sequences.next_true(counts), is_cased, words)
    is_final = tf.equal(chars, capital) & before & ~after
    return tf.where(tf.gather(is_final, sources) & tf.equal(spelled, small), final, spelled)


def _vanishes(sources, chars, held):
    """bool [num_chars]: what spells nothing. Accents do not either, but they are case-ignorable."""
    is_spelled = tf.scatter_nd(sources[:, tf.newaxis], tf.ones_like(sources), tf.shape(chars)) > 0
    return ~is_spelled & ~has(held, WORD_BREAK)


def _is_cased_there(places, is_cased, words):
    """bool [num_chars]: whether there is a cased letter of the same word in the given places."""
    inside = (places >= 0) & (places < tf.size(words))
    places = tf.where(inside, places, 0)
    return inside & tf.gather(is_cased, places) & tf.equal(tf.gather(words, places), words)


def _ends(sources, lasts, is_no_accent):
    """int32 [num_pieces]. The end of pieces by their last spelled character, accents included."""
    last_sources = tf.gather(sources, lasts)
    following = tf.concat([sources[1:], tf.shape(is_no_accent)], 0)
    ends = tf.minimum(
        tf.gather(sequences.next_true(is_no_accent), last_sources), tf.gather(following, lasts)
    )
    return tf.maximum(ends, last_sources + 1)


class _WordPieces(tf.Module):
    """The longest pieces of a vocabulary, by tensorflow-text."""

    def __init__(self, tokenizer):
        super().__init__()
        wordpieces = tokenizer.wordpiece_tokenizer
        self._longest = wordpieces.max_input_chars_per_word
        # Stands for a word of too many characters: no vocabulary spells it.
        known = set().union(*map(set, wordpieces.vocab))
        self._unknown = next(x for x in map(chr, range(0xE000, 0xF900)) if x not in known)
        self._tokenizer = tensorflow_text.FastWordpieceTokenizer(
            list(wordpieces.vocab),
            max_bytes_per_word=4 * self._longest,
            token_out_type=tf.int32,
            unknown_token=wordpieces.unk_token,
            no_pretokenization=True,
        )

    def of_tokens(self, tokens, starts):
        """The pieces of tokens.

        Args:
            tokens: ragged int32 code points [num_tokens, (num_chars)].
            starts: int32 [num_tokens]. Of each token, among all characters.
        Returns:
            (ids, first and last character): int32 [num_pieces] each.
        """
        strings = tf.strings.unicode_encode(tokens, "UTF-8")
        lengths = tf.cast(tokens.row_lengths(), tf.int32)
        is_long = lengths > self._longest
        strings = tf.where(is_long, self._unknown, strings)
        ids, begins, ends = self._tokenizer.tokenize_with_offsets(strings)
        token_of = tf.cast(ids.value_rowids(), tf.int32)
        is_long = tf.gather(is_long, token_of)
        begins, ends = (tf.cast(x.flat_values, tf.int32) for x in (begins, ends))
        places = sequences.Places(tokens.flat_values, starts)
        lasts = places.characters(token_of, tf.where(is_long, 0, ends - 1))
        lasts = tf.where(is_long, tf.gather(starts + lengths, token_of) - 1, lasts)
        firsts = places.characters(token_of, tf.where(is_long, 0, begins))
        return ids.flat_values, firsts, lasts


class _SentencePieces(GraphTokenizer):
    """A SentencePiece model, with its pieces of digits and a comma split again."""

    def __init__(self, model):
        super().__init__()
        self._tokenizer = tensorflow_text.SentencepieceTokenizer(model.serialized_model_proto())
        self._split = _CommaSplit.of(model)

    def __call__(self, texts):
        ids, text_of, begins, ends = self._encode(texts)
        chars = texts.flat_values
        is_no_space = ~has(properties()(chars), SPACE)
        # `next_true` looks behind an element; this is about the element itself, too.
        begins_after = tf.gather(
            tf.concat([sequences.next_true(is_no_space), tf.shape(chars)], 0), begins
        )
        is_space = ~tf.gather(tf.concat([is_no_space, [True]], 0), begins)
        begins = tf.where(
            is_space & (begins < ends - 1), tf.minimum(begins_after, ends - 1), begins
        )
        ids, pieces, begins, ends = self._split.apply(ids, begins, ends)
        text_of = tf.gather(text_of, pieces)
        shifts = tf.gather(tf.cast(texts.row_starts(), tf.int32), text_of)
        return Pieces(ids, text_of, begins - shifts, ends - shifts)

    def of_tokens(self, tokens, starts):
        """See `_WordPieces.of_tokens`."""
        ids, token_of, begins, ends = self._encode(tokens)
        ids, pieces, begins, ends = self._split.apply(ids, begins, ends)
        token_of = tf.gather(token_of, pieces)
        lengths = tf.cast(tokens.row_lengths(), tf.int32)
        begins = tf.minimum(begins, tf.gather(starts + lengths - 1, token_of))
        return ids, begins, tf.maximum(ends - 1, begins)

    def _encode(self, texts):
        """(ids, text, begin, end) of the model's own pieces; characters count through all texts."""
        strings = tf.strings.unicode_encode(texts, "UTF-8")
        ids, begins, ends = self._tokenizer.tokenize_with_offsets(strings)
        text_of = tf.cast(ids.value_rowids(), tf.int32)
        places = sequences.Places(texts.flat_values, tf.cast(texts.row_starts(), tf.int32))
        bounds = (
            places.characters(text_of, tf.cast(x.flat_values, tf.int32)) for x in (begins, ends)
        )
        return ids.flat_values, text_of, *bounds


class _CommaSplit(NamedTuple):
    """What pieces of digits and a comma become: see `text.vocabulary.encode_pieces`.

    Attributes:
        firsts, counts: int32 [vocab_size]. Where a piece's parts are below, and how many.
        ids, to_end: int32. Of each part its id, and how many characters before the piece's end it
            begins and ends; `to_end` is [num_parts, 2].
        is_split: bool [vocab_size].
    """

    firsts: np.ndarray
    counts: np.ndarray
    ids: np.ndarray
    to_end: np.ndarray
    is_split: np.ndarray

    @classmethod
    def of(cls, model):
        firsts, counts, ids, to_end, is_split = [], [], [], [], []
        for index in range(model.GetPieceSize()):
            piece = model.IdToPiece(index)
            has_comma = len(piece) > 1 and piece[-1] == "," and piece[-2].isdigit()
            parts = _parts_of_number(model, piece) if has_comma else [(index, 0)]
            firsts.append(len(ids))
            counts.append(len(parts))
            is_split.append(has_comma)
            ends = np.cumsum([size for _, size in parts][::-1])[::-1]
            for (part, size), begin in zip(parts, ends, strict=True):
                ids.append(part)
                to_end.append((begin, begin - size))
        arrays = (np.array(x, np.int32) for x in (firsts, counts, ids, to_end))
        return cls(*arrays, np.array(is_split, bool))

    def apply(self, ids, begins, ends):
        """(ids, number of the piece it was, begin, end) of each part of pieces, int32 all."""
        counts = tf.gather(self.counts, ids)
        parts, pieces = sequences.parts(tf.gather(self.firsts, ids), counts)
        begins, ends = tf.gather(begins, pieces), tf.gather(ends, pieces)
        is_split = tf.gather(tf.gather(self.is_split, ids), pieces)
        to_begin, to_end = tf.unstack(tf.gather(self.to_end, parts), axis=1)
        return (
            tf.gather(self.ids, parts),
            pieces,
            tf.where(is_split, tf.maximum(begins, ends - to_begin), begins),
            tf.where(is_split, tf.maximum(begins, ends - to_end), ends),
        )


def _parts_of_number(model, piece):
    """(id, number of characters) of the parts of a piece that ends in a comma."""
    number = piece[:-1].replace(vocabulary.SPIECE_UNDERLINE, "")
    parts = [*model.EncodeAsPieces(number), ","]
    sizes = [len(part.replace(vocabulary.SPIECE_UNDERLINE, "")) for part in parts]
    return [*zip(map(model.PieceToId, parts), sizes, strict=True)]
