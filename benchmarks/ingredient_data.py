"""Two kinds of generated examples, each of which needs an ingredient of ETC.

All are arrays: features as in `etcmodel.models.features`, where `links` has the sentence of each
token, and labels. Token 0 is padding, 1 is the global token of a sentence.
"""

import numpy as np

__all__ = ["NUM_VALUES", "as_features", "long_range", "structure", "vocabulary"]

NUM_VALUES = 8  # Classes.
_VALUES = 2  # Ids of values begin here, those of the other kinds of tokens after them.
_KEY = _VALUES + NUM_VALUES
_FILLERS, _NUM_FILLERS = _KEY + 1, 32
_SHORTEST, _LONGEST = 6, 10  # Sentences of the first kind.
_SLOT, _MIN_GAP, _MAX_GAP = 16, 5, 7  # Of the second kind: tokens for each key, gaps to values.


def vocabulary():
    """Number of token ids: int."""
    return _FILLERS + _NUM_FILLERS


def long_range(count, rng, *, length=64, reach=32):
    """Texts with one value, far from their last token, whose label is the value.

    Sentences have 6 to 10 tokens. All tokens are fillers but for the value, which is more than
    `reach` tokens before the last one, and the last one, which is the same in all texts.

    Args:
        count: int. Number of texts.
        rng: `np.random.Generator`.
        length: int. Tokens of a text.
        reach: int, below `length - 1`. Tokens within this distance of the last one do not show the
            label.
    Returns:
        (features, labels): dict of int32 `token_ids`, `links` [count, length] and
        `global_token_ids` [count, length // 6 + 1]; int32 [count, length], -1 but for the last.
    Raises:
        ValueError: if the text has no room for the value.
    """
    if length <= reach + 1:
        raise ValueError(
            f"`length` must be above `reach` + 1. Received: length={length}, reach={reach}"
        )
    num_sentences = length // _SHORTEST + 1
    sizes = rng.integers(_SHORTEST, _LONGEST + 1, [count, num_sentences])
    links = _sentence_ids(np.cumsum(sizes, axis=1) - sizes, length)
    tokens = rng.integers(_FILLERS, _FILLERS + _NUM_FILLERS, [count, length])
    values = rng.integers(0, NUM_VALUES, count)
    tokens[np.arange(count), rng.integers(0, length - 1 - reach, count)] = _VALUES + values
    tokens[:, -1] = _KEY
    labels = np.full([count, length], -1, np.int32)
    labels[:, -1] = values
    return as_features(tokens, links, num_sentences), labels


def structure(count, rng, *, length=16):
    """Keys between two values, of which the label is the one in the key's sentence.

    Each 16 tokens are two sentences, which meet at a random place between the key and the one or
    the other value, each 5 to 7 tokens away: the tokens say nothing about which one.

    Args:
        count: int. Number of texts.
        rng: `np.random.Generator`.
        length: int. Tokens of a text, a multiple of 16.
    Returns:
        (features, labels), as those of `long_range`; there are length // 8 global tokens.
    Raises:
        ValueError: if `length` is no multiple of 16.
    """
    if length % _SLOT:
        raise ValueError(f"`length` must be a multiple of {_SLOT}. Received: {length}")
    shape = [count, length // _SLOT]
    begins = np.arange(0, length, _SLOT)
    keys = begins + rng.integers(_MAX_GAP, _SLOT - _MAX_GAP, shape)
    gaps = rng.integers(_MIN_GAP, _MAX_GAP + 1, [2, *shape])
    values = np.stack([rng.integers(0, NUM_VALUES, shape), rng.integers(1, NUM_VALUES, shape)])
    values[1] = (values[0] + values[1]) % NUM_VALUES  # Never the same twice.
    is_left = rng.integers(0, 2, shape)  # Whether the value on the left is in the key's sentence.
    # The second sentence begins after the key and up to the right value, or after the left value.
    ahead = 1 + rng.integers(0, gaps[1])
    behind = -rng.integers(0, gaps[0])
    second = keys + np.where(is_left, ahead, behind)
    starts = np.stack([np.broadcast_to(begins, shape), second], axis=-1).reshape([count, -1])
    tokens = rng.integers(_FILLERS, _FILLERS + _NUM_FILLERS, [count, length])
    labels = np.full([count, length], -1)
    rows = np.arange(count)[:, np.newaxis]
    tokens[rows, keys] = _KEY
    tokens[rows, keys - gaps[0]] = _VALUES + values[0]
    tokens[rows, keys + gaps[1]] = _VALUES + values[1]
    labels[rows, keys] = np.where(is_left, values[0], values[1])
    features = as_features(tokens, _sentence_ids(starts, length), starts.shape[1])
    return features, labels.astype(np.int32)


def _sentence_ids(starts, length):
    """int [count, length]: the sentence of each token, from starts [count, sentences]."""
    begins = np.zeros([len(starts), length], np.int64)
    rows, columns = np.nonzero(starts < length)
    begins[rows, starts[rows, columns]] = 1
    return np.cumsum(begins, axis=1) - 1


def as_features(tokens, links, num_sentences):
    """The features of texts with a global token for each sentence.

    Args:
        tokens: int [count, length].
        links: int [count, length]. The sentence of each token; they rise from 0.
        num_sentences: int. Global tokens, of which those beyond the last sentence are padding.
    Returns:
        dict of int32, as of `long_range`.
    """
    is_real = np.arange(num_sentences) <= links[:, -1:]
    arrays = {"token_ids": tokens, "links": links, "global_token_ids": is_real}
    return {name: x.astype(np.int32) for name, x in arrays.items()}
