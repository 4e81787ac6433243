"""Lays the words of a page out over the long and the global input."""

import dataclasses
import itertools

from etcmodel.preprocessing.padding import Joined, padded
from etcmodel.text import characters

from . import phrases, vdom
from .config import FLOAT_FEATURES, FONT_FEATURES, INDICATOR_FEATURES

__all__ = ["Inputs", "WordTokenizer", "check_page", "features", "lay_out"]


class WordTokenizer(characters.Memo):
    """From a word to its token ids; remembers the words seen.

    Args:
        tokenizer: an `etcmodel.text.tokenization.FullTokenizer`.
    """

    def __init__(self, tokenizer):
        super().__init__(lambda word: tokenizer.convert_tokens_to_ids(tokenizer.tokenize(word)))

    __call__ = characters.Memo.__getitem__


@dataclasses.dataclass
class Inputs:
    """The two inputs of a page, without padding.

    Attributes:
        token_ids: list of int.
        word_ids, global_ids: list of int. The word and the global token of each token.
        num_words: int. Words up to the last that fits, those without tokens too.
        elements: list of `vdom.Element`. Those of the global tokens; empty with fixed blocks.
        num_globals: int. Global tokens.
    """

    token_ids: list = dataclasses.field(default_factory=list)
    word_ids: list = dataclasses.field(default_factory=list)
    global_ids: list = dataclasses.field(default_factory=list)
    num_words: int = 0
    elements: list = dataclasses.field(default_factory=list)
    num_globals: int = 0

    def add_words(self, words, begin, end, tokenize_word, max_tokens, max_words):
        """Adds words while they fit; returns the number of the first that did not, or `end`."""
        room = max_tokens - len(self.token_ids)
        tokens = map(tokenize_word, words[begin:end])
        if begin < end <= max_words and end - begin <= room:  # Then all may fit.
            tokens = list(tokens)
            lengths = list(map(len, tokens))
            if sum(lengths) <= room:
                self.token_ids += itertools.chain.from_iterable(tokens)
                numbers = map(itertools.repeat, range(begin, end), lengths)
                self.word_ids += itertools.chain.from_iterable(numbers)
                self.num_words = end
                return end
        for word, ids in enumerate(tokens, begin):
            room -= len(ids)
            # Words without tokens fill no room of the tokens, but one in each feature of words.
            if room < 0 or word >= max_words:
                return word
            self.token_ids += ids
            self.word_ids += [word] * len(ids)
            self.num_words = word + 1
        return end


def check_page(example, config):
    """Raises the ValueError of `lay_out` or `features` for a page that they refuse."""
    _url(example, config)
    if not config.fixed_block_len:
        _elements(example)


def lay_out(example, config, tokenize_word):
    """The `Inputs` of a page: see `examples.make_features`.

    Raises:
        ValueError: if the VDOM is malformed, where it is needed.
    """
    if config.fixed_block_len:
        return _in_blocks(example, config, tokenize_word)
    return _by_elements(example, config, tokenize_word)


def _by_elements(example, config, tokenize_word):
    """A global token an element, until one of the inputs is full."""
    inputs = Inputs()
    for element in _elements(example)[: config.global_seq_length]:
        if config.release_compatible and not _fits(inputs, example, element, config, tokenize_word):
            break
        num_tokens = len(inputs.token_ids)
        length = config.long_seq_length
        end = inputs.add_words(
            example.words, element.begin, element.end, tokenize_word, length, length
        )
        if end > element.begin:
            num_tokens = len(inputs.token_ids) - num_tokens
            inputs.global_ids += [inputs.num_globals] * num_tokens
            inputs.elements.append(element)
            inputs.num_globals += 1
        if end < element.end:
            break
    return inputs


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
    max_words = config.long_seq_length
    max_tokens = min(config.long_seq_length, config.global_seq_length * length)
    words = example.words
    inputs.add_words(words, 0, len(words), tokenize_word, max_tokens, max_words)
    inputs.global_ids = [token // length for token in range(len(inputs.token_ids))]
    inputs.num_globals = -(-len(inputs.token_ids) // length)
    return inputs


def features(example, config, inputs, words):
    """All features but the labels: see `examples.make_features`.

    Args:
        example: an `OpenKpExample`.
        config: an `OpenKpInputConfig`.
        inputs: the `Inputs` of `lay_out`.
        words: list of str. The words in them, normalized.
    Raises:
        ValueError: if the URL is too long.
    """
    long_length, global_length = config.long_seq_length, config.global_seq_length
    num_tokens = len(inputs.token_ids)
    made = {
        "url_code_points": padded(_url(example, config), config.url_max_code_points, -1),
        "long_token_ids": padded(inputs.token_ids, long_length),
        "long_input_mask": padded([1] * num_tokens, long_length),
        "long_word_idx": padded(inputs.word_ids, long_length),
        "long_vdom_idx": padded(inputs.global_ids, long_length),
        "long_word_input_mask": padded([1] * inputs.num_words, long_length),
        "long_word_first_occurrence": _first_occurrences(words, config, inputs.elements),
        "global_token_ids": [config.global_token_id] * global_length,
        "global_input_mask": padded([1] * inputs.num_globals, global_length),
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
    """The lists of `phrases.first_occurrences`, each padded by its own places, in one list."""
    if config.release_compatible and config.fixed_block_len:
        return []
    breaks = {element.end for element in elements} if config.release_compatible else ()
    rows = phrases.first_occurrences(words, config.kp_max_length, breaks)
    padding = range(len(words), config.long_seq_length)
    return Joined(*itertools.chain.from_iterable((row, padding) for row in rows))
