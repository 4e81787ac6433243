"""Attention within sliding windows and to global tokens (Beltagy et al. 2020, section 3).

A query attends to the keys in a window around it, with gaps if the window is dilated, and to all
global tokens, in one softmax. Heads may have different windows.
"""

import tensorflow as tf

from etcmodel.ops import blockwise
from etcmodel.ops.key_sets import KeySet
from etcmodel.ops.masks import KeyMask
from etcmodel.ops.reach import Window
from etcmodel.ops.shapes import ceil_div, get_shape_list

__all__ = ["attend", "attention_probs"]


@tf.autograph.experimental.do_not_convert
def attend(
    queries,
    keys,
    values,
    windows,
    *,
    token_mask=None,
    global_tokens=None,
    positions=None,
    dropout_rate=0.0,
):
    """Attends from each query to the keys of its window and to the global tokens.

    Args:
        queries: float [batch, length, num_heads, size_per_head].
        keys: float [batch, length, num_heads, size_per_head].
        values: float [batch, length, num_heads, value_size_per_head].
        windows: sequence of `reach.Window`, one per head.
        token_mask: bool [batch, length] or None. False for tokens that neither attend nor are
            attended to.
        global_tokens: `global_tokens.GlobalTokens` or None. All queries attend to them, and not
            once more in the window.
        positions: `sinusoid_positions.SinusoidPositions` or None, for logits that depend on the
            distance of the pairs in windows. Global tokens have no distance.
        dropout_rate: float. Dropout rate of attention probabilities.
    Returns:
        float [batch, length, num_heads, value_size_per_head]; 0 for masked tokens.
    """
    outputs, groups = [], _groups(windows)
    if positions is not None:
        queries = positions.queries(queries)
    for window, heads in groups:
        q, k, v = (_of_heads(x, heads, len(windows)) for x in (queries, keys, values))
        key_sets = _key_sets(k, v, window, token_mask, global_tokens, positions, heads)
        outputs.append(blockwise.attend(q, key_sets, dropout_rate=dropout_rate))
    output = _joined(outputs, groups, axis=2)
    return output if token_mask is None else _where(token_mask[:, :, tf.newaxis], output)


@tf.autograph.experimental.do_not_convert
def attention_probs(queries, keys, windows, *, token_mask=None, global_tokens=None, positions=None):
    """Computes `attend`'s probabilities for inspection; all pairs exist in between.

    Args: see `attend`; all windows must have as many keys on each side.
    Returns:
        float32 [batch, num_heads, length, slots + left + 1 + right]: of each global token, and of
        the keys in the window from left to right; 0 for absent and for masked ones.
    """
    outputs, groups = [], _groups(windows)
    if positions is not None:
        queries = positions.queries(queries)
    for window, heads in groups:
        q, k = (_of_heads(x, heads, len(windows)) for x in (queries, keys))
        key_sets = _key_sets(k, k, window, token_mask, global_tokens, positions, heads)
        local, *others = blockwise.attention_probs(q, key_sets)
        outputs.append(tf.concat([*others, _band(local, window)], -1))
    probs = _joined(outputs, groups, axis=1)
    return probs if token_mask is None else _where(token_mask[:, tf.newaxis], probs)


def _key_sets(keys, values, window, token_mask, global_tokens, positions, heads):
    seen = token_mask
    if global_tokens is not None:
        is_local = ~global_tokens.mask
        seen = is_local if token_mask is None else token_mask & is_local
    masks = () if seen is None else (KeyMask(seen),)
    window = _clipped(window, get_shape_list(keys)[1])
    labels = None if positions is None else positions.labels(window, heads)
    key_sets = [KeySet(keys, values, window, masks, labels)]
    if global_tokens is not None:
        of_globals = (global_tokens.gather(x) for x in (keys, values))
        key_sets.append(KeySet(*of_globals, masks=(KeyMask(global_tokens.is_used),)))
    return key_sets


def _clipped(window, length):
    """The window, limited to the length."""
    if not isinstance(length, int):
        return window
    most = ceil_div(length - 1, window.dilation)
    return Window(min(window.left, most), min(window.right, most), window.dilation)


def _groups(windows):
    """The different windows, each with the numbers of its heads."""
    heads = {}
    for head, window in enumerate(windows):
        heads.setdefault(window, []).append(head)
    return list(heads.items())


def _of_heads(x, heads, num_heads):
    return x if len(heads) == num_heads else tf.gather(x, heads, axis=2)


def _joined(outputs, groups, axis):
    if len(groups) == 1:
        return outputs[0]
    order = [head for _, heads in groups for head in heads]
    places = [order.index(head) for head in range(len(order))]
    return tf.gather(tf.concat(outputs, axis), places, axis=axis)


def _where(mask, x):
    """`x`, and 0 where the mask, which has one axis less, is False."""
    return tf.where(mask[..., tf.newaxis], x, tf.zeros([], x.dtype))


def _band(probs, window):
    """[batch, num_heads, length, length] to [batch, num_heads, length, left + 1 + right]."""
    length = get_shape_list(probs)[2]
    steps = tf.range(-window.left, window.right + 1) * window.dilation
    keys = tf.range(length)[:, tf.newaxis] + steps
    exists = (keys >= 0) & (keys < length)
    by_query = tf.transpose(probs, [2, 3, 0, 1])
    band = tf.gather(by_query, tf.clip_by_value(keys, 0, length - 1), batch_dims=1)
    return tf.where(exists, tf.transpose(band, [2, 3, 0, 1]), 0.0)
