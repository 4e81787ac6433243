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
- A phrase of more than `kp_max_length` words, which the model cannot predict, is no label.
- In inference no page is dropped; in training one without labels is an error (there it is kept).
"""

import dataclasses

from etcmodel.text import characters

from . import layout, phrases
from .config import MAX_KEY_PHRASES, OpenKpInputConfig
from .raw_data import (
    OpenKpExample,
    parse_example,
    parse_line,
    read_examples,
    read_lines,
)

__all__ = [
    "ConvertedExample",
    "OpenKpExample",
    "OpenKpInputConfig",
    "make_features",
    "parse_example",
    "parse_line",
    "read_examples",
    "read_lines",
]

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
        tokenize_word: function from a word (str) to its token ids, such as `layout.word_tokenizer`.

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
    inputs = layout.lay_out(example, config, tokenize_word)
    words = phrases.normalized_words(example.words[: inputs.num_words])
    if not compatible:
        words = list(map(characters.composed, words))
    labels = _labels(example, config, inputs, words)
    drop_reason = _drop_reason(example, config, labels)
    features = None
    if not drop_reason:
        features = layout.page_features(example, config, inputs, words)
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
        return _labels_by_letters(sorted(wanted), words)
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
