"""The third kind of generated examples, which needs the meaning of sentences.

All sentences have 6 tokens: 3 words of the sentence's topic and 3 that all topics share, in random
order. No word of a topic occurs twice in a document, so that only co-occurrences in other documents
show which sentences go together. Token 0 is padding, 1 the global token of a sentence, 2 the mask.
"""

import numpy as np

from benchmarks import ingredient_data as data

__all__ = [
    "MASK_TOKEN_ID",
    "NUM_SENTENCES",
    "SENTENCE_LENGTH",
    "odd_sentence",
    "vocabulary",
    "windows",
]

MASK_TOKEN_ID = 2
NUM_SENTENCES = 8  # Of a document.
_NUM_TOPICS, _WORDS_PER_TOPIC = 8, 32
_TOPIC_WORDS, _COMMON_WORDS = 3, 3  # Of a sentence.
SENTENCE_LENGTH = _TOPIC_WORDS + _COMMON_WORDS
_COMMON, _NUM_COMMON = 3, 32  # Words that all topics share; those of the topics come after them.


def vocabulary():
    """Number of token ids: int."""
    return _COMMON + _NUM_COMMON + _NUM_TOPICS * _WORDS_PER_TOPIC


def odd_sentence(count, rng):
    """Documents on one topic with one sentence of another: the label is that sentence.

    Args:
        count: int. Number of documents.
        rng: `np.random.Generator`.
    Returns:
        (features, labels), as those of `ingredient_data.long_range`, but labels are int32 [count].
    """
    topics = rng.integers(0, _NUM_TOPICS, count)
    odd = rng.integers(0, NUM_SENTENCES, count)
    of_sentence = np.repeat(topics[:, np.newaxis], NUM_SENTENCES, axis=1)
    of_sentence[np.arange(count), odd] += rng.integers(1, _NUM_TOPICS, count)
    tokens = _documents(of_sentence % _NUM_TOPICS, rng)
    links = np.broadcast_to(_links(NUM_SENTENCES), tokens.shape)
    return data.as_features(tokens, links, NUM_SENTENCES), odd.astype(np.int32)


def windows(count, rng):
    """Windows for pre-training, of two documents each, whose sentences are all of one topic.

    Args:
        count: int. Number of windows.
        rng: `np.random.Generator`.
    Returns:
        dict of int32 [count, length], as `etcmodel.pretrain.masking.mask_window` takes them; the
        length is 96, or 16 for the arrays of global tokens.
    """
    topics = rng.integers(0, _NUM_TOPICS, 2 * count)
    tokens = _documents(np.repeat(topics[:, np.newaxis], NUM_SENTENCES, axis=1), rng)
    tokens = tokens.reshape([count, -1])
    ends = np.arange(1, 2 * NUM_SENTENCES + 1) % NUM_SENTENCES == 0
    arrays = {
        "long_token_ids": tokens,
        "long_word_starts": np.ones_like(tokens),
        "sentence_ids": np.broadcast_to(_links(2 * NUM_SENTENCES), tokens.shape),
        "long_breakpoints": np.broadcast_to(_last_of_each(ends), tokens.shape),
        "global_token_ids": np.ones([count, 2 * NUM_SENTENCES]),
        "global_breakpoints": np.broadcast_to(ends, [count, 2 * NUM_SENTENCES]),
    }
    return {name: x.astype(np.int32) for name, x in arrays.items()}


def _documents(topics, rng):
    """int [count, length]: tokens of documents whose sentences have the topics [count, 8]."""
    count = len(topics)
    order = rng.permuted(np.tile(np.arange(_WORDS_PER_TOPIC), [count, 1]), axis=1)
    words = order[:, : NUM_SENTENCES * _TOPIC_WORDS].reshape([count, NUM_SENTENCES, _TOPIC_WORDS])
    words = _COMMON + _NUM_COMMON + topics[..., np.newaxis] * _WORDS_PER_TOPIC + words
    common = _COMMON + rng.integers(0, _NUM_COMMON, [count, NUM_SENTENCES, _COMMON_WORDS])
    return rng.permuted(np.concatenate([words, common], axis=-1), axis=-1).reshape([count, -1])


def _links(num_sentences):
    """int [length]: the sentence of each token."""
    return np.repeat(np.arange(num_sentences), SENTENCE_LENGTH)


def _last_of_each(ends):
    """int [length]: 1 for the last token of the sentences where `ends` is true."""
    is_last = np.zeros([len(ends), SENTENCE_LENGTH], np.int32)
    is_last[:, -1] = ends
    return is_last.reshape(-1)
