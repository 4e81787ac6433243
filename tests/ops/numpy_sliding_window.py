"""Longformer's attention, query by query: who sees whom, written as the paper says it."""

import math

import numpy as np


def dense_mask(length, windows, token_mask, global_mask):
    """Who sees whom but for the rows of global tokens: bool [batch, num_heads, length, length].

    Args:
        length: int.
        windows: list of (left, right, dilation), one a head.
        token_mask: bool [batch, length].
        global_mask: bool [batch, length].
    """
    sees = np.zeros([len(token_mask), len(windows), length, length], bool)
    for head, (left, right, dilation) in enumerate(windows):
        for query in range(length):
            for key in range(length):
                steps, rest = divmod(key - query, dilation)
                sees[:, head, query, key] = rest == 0 and -left <= steps <= right
    sees |= global_mask[:, np.newaxis, np.newaxis]
    return sees & token_mask[:, np.newaxis, np.newaxis] & token_mask[:, np.newaxis, :, np.newaxis]


def waves(distance, size):
    """Transformer-XL's sinusoids of one distance: all sines, then all cosines."""
    angles = [distance / 10000 ** (2 * i / size) for i in range(size // 2)]
    return np.array([*map(math.sin, angles), *map(math.cos, angles)])


def distance_logits(queries, projection, content_bias, position_bias, keys):
    """(q + u) . k + (q + v) . r(distance) of all pairs: [batch, num_heads, length, length]."""
    batch, length, num_heads, _ = queries.shape
    logits = np.zeros([batch, num_heads, length, length])
    for example, head, i, j in np.ndindex(logits.shape):
        query, key = queries[example, i, head], keys[example, j, head]
        place = waves(i - j, len(projection)) @ projection[:, head]
        with_key = (query + content_bias[head]) @ key
        logits[example, head, i, j] = with_key + (query + position_bias[head]) @ place
    return logits


def attend(queries, keys, values, sees, logits=None):
    """(outputs [batch, length, num_heads, size], probabilities [batch, num_heads, length, length]).

    Rows that see nothing are 0. `logits`, before they are scaled, may be others than products.
    """
    batch, length, num_heads, size = queries.shape
    outputs = np.zeros([batch, length, num_heads, values.shape[-1]])
    probs = np.zeros([batch, num_heads, length, length])
    for index in np.ndindex(batch, num_heads, length):
        example, head, query = index
        seen = np.flatnonzero(sees[index])
        if len(seen):
            row = keys[example, seen, head] @ queries[example, query, head]
            if logits is not None:
                row = logits[index][seen]
            row = row / np.sqrt(size)
            weights = np.exp(row - row.max())
            probs[index][seen] = weights / weights.sum()
            outputs[example, query, head] = probs[index] @ values[example, :, head]
    return outputs, probs
