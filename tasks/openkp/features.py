"""Converts OpenKP's typed examples to features, in plain Python.

Long input: the word pieces of the page. Global input: a token for each VDOM element (or for each
block of long tokens). A page is cut where either is full (Ainslie et al. 2020, appendix, "OpenKP").

Differences from the release (`release_compatible=True` reproduces it):
- Key phrases, and the n-grams of the max loss, may begin in one VDOM element and end in the next,
  as in text with a link (there they are not found).
- With fixed blocks too, key phrases are whole words (there: any letters, so that `cat` labels the
  word `concatenation`), and first occurrences are there for the max loss.
- An element that does not fit is cut after the last word that does (there it is left out).
- Of more than three key phrases the first three found are taken (there the page is dropped).
- However accents are written, words are the same.
- With fixed blocks, labels may end in words without tokens that end the page (there they may not).
- Of a page with more than `long_seq_length` words in the input, which words without tokens make
  possible, the first ones are taken (there the page is a parse failure).
- A phrase of more than `kp_max_length` words, which the model cannot predict, is no label.
- In inference no page is dropped; in training one without labels is an error (there it is kept).
"""

import bisect
import dataclasses
import itertools
import json

from etcmodel import preprocessing
from etcmodel.preprocessing.padding import Joined, Repeated, padded
from etcmodel.text import characters

from . import examples, phrases, vdom
from .config import (
    FLOAT_FEATURES,
    FONT_FEATURES,
    FORMAT_VERSION,
    INDICATOR_FEATURES,
    MAX_KEY_PHRASES,
    OpenKpInputConfig,
)

__all__ = [
    "GLOBAL_FEATURES",
    "LABEL_FEATURES",
    "LONG_FEATURES",
    "ConvertedExample",
    "ConverterFactory",
    "Inputs",
    "check_page",
    "lay_out",
    "make_features",
    "page_features",
    "word_tokenizer",
]

# The names of features.
LONG_FEATURES = (
    "long_token_ids",
    "long_input_mask",
    "long_word_idx",
    "long_vdom_idx",
    "long_word_input_mask",
)
GLOBAL_FEATURES = ("global_token_ids", "global_input_mask")
LABEL_FEATURES = ("label_start_idx", "label_phrase_len")

# Lays out the words of a page in the long and the global input.


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
    """Raises the ValueError of `lay_out` or `page_features` for a page that they reject."""
    _url(example, config)
    if not config.fixed_block_len:
        _elements(example)


def lay_out(example, config, tokenize_word):
    """The `Inputs` of a page: see `make_features`.

    Raises:
        ValueError: if the VDOM is malformed, where it is needed, or, as in the release, if the
            words that fit are more than `config.long_seq_length`.
    """
    lay_out_tokens = _in_blocks if config.fixed_block_len else _by_elements
    inputs = lay_out_tokens(example, config, tokenize_word)
    if inputs.num_words > config.long_seq_length:
        raise ValueError(
            f"page {example.url!r}: {inputs.num_words} words fit into the input, more than "
            f"long_seq_length={config.long_seq_length}, which --release_compatible leaves out"
        )
    return inputs


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
    max_words = None if config.release_compatible else config.long_seq_length
    return _TokenizedWords(example.words[:max_words], tokenize_word)


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


# From an example to its features.


NO_KEY_PHRASE = "no_key_phrase_in_input"
TOO_MANY_KEY_PHRASES = "too_many_key_phrases"
DROP_REASONS = (NO_KEY_PHRASE, TOO_MANY_KEY_PHRASES)


@dataclasses.dataclass(frozen=True)
class ConvertedExample:
    """A converted page.

    Attributes:
        features: dict of str to list of int (or of float), or None if the page is dropped.
        drop_reason: str, one of `DROP_REASONS`, or None.
        num_long_tokens, num_global_tokens: int. Without padding.
        num_words_left_out: int. Number of words without room.
        num_phrases_not_found: int. Number of key phrases that are not in the input.
    """

    features: dict | None
    drop_reason: str | None
    num_long_tokens: int
    num_global_tokens: int
    num_words_left_out: int
    num_phrases_not_found: int


def make_features(example, config, tokenize_word):
    """Converts a page.

    Args:
        example: an `OpenKpExample`. Its VDOM is not needed if `config.fixed_block_len` is set.
        config: an `OpenKpInputConfig`. Padding fills each feature up to its lengths.
        tokenize_word: function from a word (str) to its token ids, such as `word_tokenizer`.

    Returns:
        A `ConvertedExample`. Its features (L long tokens, G global tokens, U code points):
            url_code_points: int [U]. The URL; -1 is padding.
            long_token_ids, long_input_mask: int [L]. Tokens; 1 for a token, 0 for padding.
            long_word_idx: int [L]. The word of each token, from 0; 0 for padding.
            long_vdom_idx: int [L]. The global token of each token; 0 for padding.
            long_word_input_mask: int [L]. 1 for each word.
            long_word_first_occurrence: int [kp_max_length * L]. For each length and place, the
                first place of the same n-gram: see `phrases.first_occurrences`.
            global_token_ids, global_input_mask: int [G].
            label_start_idx, label_phrase_len: int [3]. First word and number of words of the first
                occurrence of each key phrase; -1 is padding.
        Without fixed blocks, the visual features of `config`, float or int [G]; 0 is padding.

    Raises:
        ValueError: if the VDOM is malformed, the URL too long, or labels are missing in training.
    """
    compatible = config.release_compatible
    if config.is_training and not compatible and not example.key_phrases:
        raise ValueError(
            f"page {example.url!r} has no key phrases to train on; give --is_training=false to "
            "convert pages for inference"
        )
    inputs = lay_out(example, config, tokenize_word)
    words = phrases.normalized_words(example.words[: inputs.num_words])
    if not compatible:
        words = list(map(characters.composed, words))
    labels = _labels(example, config, inputs, words)
    drop_reason = _drop_reason(example, config, labels)
    features = None
    if not drop_reason:
        features = page_features(example, config, inputs, words)
        labels = labels[:MAX_KEY_PHRASES]
        padding = [-1] * (MAX_KEY_PHRASES - len(labels))
        features["label_start_idx"] = [start for start, _ in labels] + padding
        features["label_phrase_len"] = [length for _, length in labels] + padding
    num_phrases = len(_distinct_phrases(example, compatible))
    return ConvertedExample(
        features=features,
        drop_reason=drop_reason,
        num_long_tokens=len(inputs.token_ids),
        num_global_tokens=inputs.num_globals,
        num_words_left_out=len(example.words) - inputs.num_words,
        num_phrases_not_found=num_phrases - len(labels) if not drop_reason else 0,
    )


def _drop_reason(example, config, labels):
    if config.release_compatible:
        if len(_distinct_phrases(example, compatible=True)) > MAX_KEY_PHRASES:
            return TOO_MANY_KEY_PHRASES
        # In the release, with fixed blocks, an empty list of phrases is treated like none.
        unlabeled = (None, ()) if config.fixed_block_len else (None,)
        return NO_KEY_PHRASE if example.key_phrases not in unlabeled and not labels else None
    return NO_KEY_PHRASE if config.is_training and not labels else None


def _distinct_phrases(example, compatible):
    """The normalized key phrases, without duplicates, in file order."""
    found = map(phrases.normalized, example.key_phrases or ())
    return list(dict.fromkeys(found if compatible else map(characters.composed, found)))


def _labels(example, config, inputs, words):
    """(first word, number of words) of each key phrase in the input, of normalized words."""
    distinct = _distinct_phrases(example, config.release_compatible)
    wanted = [phrases.split(phrase) for phrase in distinct]
    if not config.release_compatible:
        wanted = [phrase for phrase in wanted if len(phrase) <= config.kp_max_length]
        places = ((phrases.find(phrase, words), len(phrase)) for phrase in wanted)
        return [(start, length) for start, length in places if start is not None]
    if config.fixed_block_len:
        last_word = max(inputs.word_ids, default=-1)  # That has tokens.
        return _labels_by_letters(sorted(wanted), words[: last_word + 1])
    return _labels_by_element(sorted(wanted), words, inputs.elements)


def _labels_by_element(wanted, words, elements):
    """As in the release: phrases within an element, in the order of the elements."""
    labels = []
    for element in elements:
        for phrase in list(wanted):
            start = phrases.find(phrase, words, element.begin, element.end)
            if start is not None:
                labels.append((start, len(phrase)))
                wanted.remove(phrase)
    return labels


def _labels_by_letters(wanted, words):
    """As in the release: the word that contains the phrase's first letters."""
    text = phrases.joined(words)
    places = ((text.find(phrases.joined(phrase)), len(phrase)) for phrase in wanted)
    return [
        (len(phrases.split(text[:place])) - 1, length) for place, length in places if place >= 0
    ]


# OpenKP's converter: what a preprocessing worker does with one raw line.


class ConverterFactory(preprocessing.ConverterFactory):
    """Makes the converter; `fields` are arguments of `OpenKpInputConfig`."""

    task = "openkp"
    input_class = OpenKpInputConfig
    read = staticmethod(examples.read_lines)
    format_version = FORMAT_VERSION
    line_files = ("text_examples", "parse_failures")  # Named as in the release.

    def input_config(self, tokenizer):
        config = super().input_config(tokenizer)
        config.check_vocabulary(tokenizer)
        return config

    def __call__(self):
        tokenizer = self.tokenizer()
        config = self.input_config(tokenizer)
        tokenize_word = word_tokenizer(tokenizer)
        return lambda raw: self.convert(raw, config, tokenize_word)

    def convert(self, raw, config, tokenize_word):
        # Text that is not UTF-8 cannot be written.
        line = raw["line"].strip().replace("\n", " ").encode("utf-8", "replace").decode("utf-8")
        try:
            example = examples.parse_line(raw)
        except ValueError as error:
            return _malformed(line, str(error))
        if config.is_training is None:  # As in the release: pages may have no labels.
            is_training = example.key_phrases is not None
            config = dataclasses.replace(config, is_training=is_training)
        try:
            converted = make_features(example, config, tokenize_word)
        except ValueError as error:
            return _malformed(line, f"{raw['place']}: {error}")
        return preprocessing.Converted.of_one(
            converted,
            drop_reasons=DROP_REASONS,
            counts={
                "examples_truncated": int(converted.num_words_left_out > 0),
                "key_phrases_not_found": converted.num_phrases_not_found,
            },
            lines={"parse_failures": line}
            if converted.features is None
            else {"text_examples": _without_vdom(raw["line"])},
        )


def _malformed(line, problem):
    return preprocessing.Converted(features=[], problem=problem, lines={"parse_failures": line})


def _without_vdom(line):
    """The parts of a page that decoding and evaluation need."""
    page = json.loads(line)
    kept = {name: page[name] for name in ("url", "text", "KeyPhrases") if name in page}
    return json.dumps(kept)
