"""Longformer's attention, query by query: who sees whom, written as the paper says it."""

import numpy as np

__all__ = ["attend", "dense_mask"]


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


def attend(queries, keys, values, sees):
    """(outputs [batch, length, num_heads, size], probabilities [batch, num_heads, length, length]).

    Rows that see nothing are 0.
    """
    batch, length, num_heads, size = queries.shape
    outputs = np.zeros([batch, length, num_heads, values.shape[-1]])
    probs = np.zeros([batch, num_heads, length, length])
    for index in np.ndindex(batch, num_heads, length):
        example, head, query = index
        seen = np.flatnonzero(sees[index])
        if len(seen):
            logits = keys[example, seen, head] @ queries[example, query, head] / np.sqrt(size)
            weights = np.exp(logits - logits.max())
            probs[index][seen] = weights / weights.sum()
            outputs[example, query, head] = probs[index] @ values[example, :, head]
    return outputs, probs
