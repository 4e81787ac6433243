"""The attention of the library, token by token: slow, and plain enough to be checked by eye.

Written from the paper (Ainslie et al. 2020, section 3.1 and appendix A), without batches of
matrices: the library's blocks, skews and broadcasts have no counterpart here.
"""

import dataclasses

import numpy as np

__all__ = ["Labels", "Side", "attend", "local_attend"]

MASKED_LOGIT = -10000.0


@dataclasses.dataclass
class Labels:
    """emb_table: [relative_vocab_size, num_heads, size]; bias_table: [.., num_heads]."""

    emb_table: np.ndarray
    bias_table: np.ndarray


@dataclasses.dataclass
class Side:
    """Keys that every query sees; shapes as `etcmodel.ops.attention.SideKeys`."""

    keys: np.ndarray
    values: np.ndarray
    att_mask: np.ndarray | None = None
    att_ids: np.ndarray | None = None


def attend(queries, keys, values, att_mask=None, att_ids=None, labels=None):
    """Every query over every key: float64 [batch, query_len, num_heads, value_size]."""

    def pairs(batch, query):
        for key in range(keys.shape[1]):
            yield _pair(batch, query, key, keys, values, key, att_mask, att_ids)

    return _attend(queries, values, pairs, labels)


def local_attend(
    queries, keys, values, local_radius, att_mask=None, att_ids=None, side=None, labels=None
):
    """Every query over the keys within the radius and all side keys, in one softmax."""
    long_len = queries.shape[1]

    def pairs(batch, query):
        for column in range(2 * local_radius + 1):
            key = query + column - local_radius
            if 0 <= key < long_len:
                yield _pair(batch, query, key, keys, values, column, att_mask, att_ids)
        for key in range(0 if side is None else side.keys.shape[1]):
            yield _pair(batch, query, key, side.keys, side.values, key, side.att_mask, side.att_ids)

    return _attend(queries, values, pairs, labels)


def _pair(batch, query, key, keys, values, column, att_mask, att_ids):
    """Key and value [num_heads, size], whether they may be seen, and the label (or None)."""
    is_allowed = att_mask is None or bool(att_mask[batch, query, column])
    label = None if att_ids is None else att_ids[batch, query, column]
    return keys[batch, key], values[batch, key], is_allowed, label


def _attend(queries, values, pairs, labels):
    batch_size, query_len, num_heads, _ = queries.shape
    output = np.zeros([batch_size, query_len, num_heads, values.shape[-1]])
    for batch, query, head in np.ndindex(batch_size, query_len, num_heads):
        seen = list(pairs(batch, query))
        logits = [_logit(queries[batch, query], pair, head, labels) for pair in seen]
        weights = np.exp(np.array(logits) - max(logits))
        probs = weights / weights.sum()
        output[batch, query, head] = sum(
            prob * value[head] for prob, (_, value, _, _) in zip(probs, seen, strict=True)
        )
    return output


def _logit(query, pair, head, labels):
    key, _, is_allowed, label = pair
    logit = np.dot(query[head].astype(float), key[head])
    if label is not None and labels is not None:
        logit += np.dot(query[head], labels.emb_table[label, head])
        logit += labels.bias_table[label, head]
    logit /= np.sqrt(len(query[head]))
    return logit if is_allowed else logit + MASKED_LOGIT
