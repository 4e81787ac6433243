"""Lays out the words of a page in the long and the global input."""

import bisect
import dataclasses
import itertools

from etcmodel.preprocessing.padding import Joined, Repeated, padded
from etcmodel.text import characters

from . import phrases, vdom
from .config import FLOAT_FEATURES, FONT_FEATURES, INDICATOR_FEATURES

__all__ = ["Inputs", "check_page", "lay_out", "page_features", "word_tokenizer"]

_WORDS_AT_ONCE = 256


def word_tokenizer(tokenizer):
    """Makes a function from a word to its token ids, which caches words.

    Args:
        tokenizer: an `etcmodel.text.tokenization.FullTokenizer`.
    """
    ids = characters.Memo(lambda word: tokenizer.convert_tokens_to_ids(tokenizer.tokenize(word)))
    return ids.__getitem__


@dataclasses.dataclass
class Inputs:
    """The two inputs of a page, without padding.

    Attributes:
        token_ids: list of int.
        word_ids, global_ids: list of int. The word and the global token of each token.
        num_words: int. Number of words up to the last that fits, including words without tokens.
        elements: list of `vdom.Element`. Those of the global tokens; empty with fixed blocks.
        num_globals: int. Global tokens.
    """

    token_ids: list = dataclasses.field(default_factory=list)
    word_ids: list = dataclasses.field(default_factory=list)
    global_ids: list = dataclasses.field(default_factory=list)
    num_words: int = 0
    elements: list = dataclasses.field(default_factory=list)
    num_globals: int = 0

    def add(self, tokenized, begin, end, max_tokens):
        """Adds words while they fit; returns the index of the first that did not fit, or `end`.

        Args:
            tokenized: `_TokenizedWords`. No other words fit.
            begin, end: int. Indices of the first word, and after the last.
            max_tokens: int. Maximum number of tokens in the input.
        """
        stop = tokenized.fitting(begin, end, max_tokens - len(self.token_ids))
        if stop > begin:
            tokens = tokenized.tokens(begin, stop)
            self.token_ids += tokenized.token_ids[tokens]
            self.word_ids += tokenized.word_ids[tokens]
            self.num_words = stop
        return stop


class _TokenizedWords:
    """The tokens of a page's words, computed on demand.

    Args:
        words: sequence of str.
        tokenize_word: function of a word to its token ids.

    Attributes:
        token_ids, word_ids: list of int. The tokens, and the words that they are of.
    """

    def __init__(self, words, tokenize_word):
        self._words, self._tokenize_word = words, tokenize_word
        self._ends = [0]  # The tokens before each word that is tokenized, and before the next.
        self.token_ids, self.word_ids = [], []

    def tokens(self, begin, end):
        """The tokens of `words[begin:end]`: a slice."""
        return slice(self._ends[begin], self._ends[end])

    def fitting(self, begin, end, room):
        """Up to which word those from one on have no more tokens than there is room for: int."""
        end = min(end, len(self._words))
        if begin >= end:
            return begin
        while len(self._ends) <= begin:
            self._go_on()
        most = self._ends[begin] + room
        while len(self._ends) <= end and self._ends[-1] <= most:
            self._go_on()
        # Words without tokens need no room.
        return bisect.bisect_right(self._ends, most, begin + 1, min(end + 1, len(self._ends))) - 1

    def _go_on(self):
        """Tokenizes the next words; not all at once, as most of a long page may not fit."""
        begin = len(self._ends) - 1
        words = self._words[begin : begin + _WORDS_AT_ONCE]
        ids = list(map(self._tokenize_word, words))
        lengths = list(map(len, ids))
        self._ends += itertools.accumulate(lengths, initial=self._ends.pop())
        self.token_ids += itertools.chain.from_iterable(ids)
        numbers = map(itertools.repeat, itertools.count(begin), lengths)
        self.word_ids += itertools.chain.from_iterable(numbers)


def check_page(example, config):
    """Raises the ValueError of `lay_out` or `features` for a page that they reject."""
    _url(example, config)
    if not config.fixed_block_len:
        _elements(example)


def lay_out(example, config, tokenize_word):
    """The `Inputs` of a page: see `make_features`.

    Raises:
        ValueError: if the VDOM is malformed, where it is needed.
    """
    if config.fixed_block_len:
        return _in_blocks(example, config, tokenize_word)
    return _by_elements(example, config, tokenize_word)


def _by_elements(example, config, tokenize_word):
    """One global token per element, until one of the inputs is full."""
    inputs, elements = Inputs(), _elements(example)
    tokenized = _tokenized(example, config, tokenize_word)
    for element in elements[: config.global_seq_length]:
        if config.release_compatible and not _fits(inputs, example, element, config, tokenize_word):
            break
        num_tokens = len(inputs.token_ids)
        end = inputs.add(tokenized, element.begin, element.end, config.long_seq_length)
        if end > element.begin:
            num_tokens = len(inputs.token_ids) - num_tokens
            inputs.global_ids += [inputs.num_globals] * num_tokens
            inputs.elements.append(element)
            inputs.num_globals += 1
        if end < element.end:
            break
    return inputs


def _tokenized(example, config, tokenize_word):
    # Words without tokens need no token, but one entry in each feature of words.
    return _TokenizedWords(example.words[: config.long_seq_length], tokenize_word)


def _elements(example):
    try:
        return vdom.parse(example.vdom, example.words)
    except ValueError as error:
        raise ValueError(f"page {example.url!r}: {error}") from error


def _fits(inputs, example, element, config, tokenize_word):
    words = example.words[element.begin : element.end]
    num_tokens = sum(len(tokenize_word(word)) for word in words)
    return len(inputs.token_ids) + num_tokens <= config.long_seq_length


def _in_blocks(example, config, tokenize_word):
    """A global token for every `fixed_block_len` long tokens."""
    inputs = Inputs()
    length = config.fixed_block_len
    max_tokens = min(config.long_seq_length, config.global_seq_length * length)
    tokenized = _tokenized(example, config, tokenize_word)
    inputs.add(tokenized, 0, len(example.words), max_tokens)
    inputs.global_ids = [token // length for token in range(len(inputs.token_ids))]
    inputs.num_globals = -(-len(inputs.token_ids) // length)
    return inputs


def page_features(example, config, inputs, words):
    """All features except the labels: see `make_features`.

    Args:
        example: an `OpenKpExample`.
        config: an `OpenKpInputConfig`.
        inputs: the `Inputs` of `lay_out`.
        words: list of str. Their normalized words.
    Raises:
        ValueError: if the URL is too long.
    """
    long_length, global_length = config.long_seq_length, config.global_seq_length
    num_tokens = len(inputs.token_ids)
    made = {
        "url_code_points": padded(_url(example, config), config.url_max_code_points, -1),
        "long_token_ids": padded(inputs.token_ids, long_length),
        "long_input_mask": padded(Repeated(1, num_tokens), long_length),
        "long_word_idx": padded(inputs.word_ids, long_length),
        "long_vdom_idx": padded(inputs.global_ids, long_length),
        "long_word_input_mask": padded(Repeated(1, inputs.num_words), long_length),
        "long_word_first_occurrence": _first_occurrences(words, config, inputs.elements),
        "global_token_ids": padded(Repeated(config.global_token_id, global_length), global_length),
        "global_input_mask": padded(Repeated(1, inputs.num_globals), global_length),
    }
    names = FLOAT_FEATURES + INDICATOR_FEATURES + FONT_FEATURES
    if not config.fixed_block_len:
        for name, values in vdom.features(inputs.elements).items():
            padding = 0.0 if name in FLOAT_FEATURES else 0
            made[name] = padded(values, global_length, padding)
    elif config.release_compatible:
        made |= {name: [] for name in names}
    return made


def _url(example, config):
    if len(example.url) > config.url_max_code_points:
        raise ValueError(
            f"page {example.url!r}: the URL has {len(example.url)} characters, more than "
            f"url_max_code_points={config.url_max_code_points}"
        )
    return [ord(char) for char in example.url]


def _first_occurrences(words, config, elements):
    """The lists of `phrases.first_occurrences`, padded with their own positions, in one list."""
    if config.release_compatible and config.fixed_block_len:
        return []
    breaks = {element.end for element in elements} if config.release_compatible else ()
    rows = phrases.first_occurrences(words, config.kp_max_length, breaks)
    padding = range(len(words), config.long_seq_length)
    return Joined(*itertools.chain.from_iterable((row, padding) for row in rows))
