"""Attention within sliding windows and to global tokens (Beltagy et al. 2020, section 3).

A query attends to the keys in a window around it, with gaps if the window is dilated, and to all
global tokens, in one softmax. Heads may have different windows.
"""

import dataclasses
import math

import tensorflow as tf

from etcmodel.ops import argument_checks, blockwise
from etcmodel.ops.key_sets import KeySet
from etcmodel.ops.masks import KeyMask
from etcmodel.ops.reach import Window
from etcmodel.ops.shapes import at_most, ceil_div, get_shape_list

__all__ = [
    "GlobalTokens",
    "attend",
    "attend_folded",
    "attention_probs",
    "find_global_tokens",
    "global_mask_of",
    "most_queries",
]

# Attention to projected keys and values without computing them: few queries, many keys.
#
# The projections move to the queries and to the outputs. For a query q and an input x `q · (x W_k +
# b_k) = (W_k q) · x + q · b_k`, whose last part is the same for all keys and does not change the
# softmax; and since probabilities sum to 1, `sum p (x W_v + b_v) = (sum p x) W_v + b_v`.


def most_queries(num_keys, num_heads, input_size):
    """Returns the most queries for which `attend_folded` clearly takes less time.

    That is half of the number for which it takes as many operations as projections.

    Args:
        num_keys: int or scalar tensor.
        num_heads: int.
        input_size: int, also the total size of all heads.
    Returns:
        int or scalar tensor.
    """
    return num_keys * input_size // (2 * ((num_heads - 1) * num_keys + input_size))


@tf.autograph.experimental.do_not_convert
def attend_folded(queries, inputs, key_kernel, value_kernel, value_bias, *, masks=()):
    """Attends from each query to keys and values that are projections of the inputs.

    The biases of keys have no effect. There is no dropout of probabilities: the remaining ones
    would not sum to 1.

    Args:
        queries: float [batch, num_rows, num_heads, size_per_head].
        inputs: float [batch, num_keys, input_size].
        key_kernel: float [input_size, num_heads * size_per_head].
        value_kernel: float [input_size, num_heads * value_size_per_head].
        value_bias: float [num_heads * value_size_per_head].
        masks: tuple of `masks.Mask`, the same for all queries.
    Returns:
        float [batch, num_rows, num_heads, value_size_per_head].
    """
    batch, rows, num_heads, size = get_shape_list(queries)
    input_size = inputs.shape[-1]
    key_kernel, value_kernel = (
        tf.reshape(x, [input_size, num_heads, -1]) for x in (key_kernel, value_kernel)
    )
    folded = tf.einsum("brhs,ihs->brhi", queries, key_kernel)
    # The heads become queries of a single head that attends to the inputs.
    folded = tf.reshape(folded, [batch, rows * num_heads, 1, input_size])
    keys = inputs[:, :, tf.newaxis]
    mixed = blockwise.attend(folded, [KeySet(keys, keys, masks=masks)], scale=1 / math.sqrt(size))
    mixed = tf.reshape(mixed, [batch, rows, num_heads, input_size])
    outputs = tf.einsum("brhi,ihs->brhs", mixed, value_kernel)
    return outputs + tf.reshape(value_bias, [num_heads, -1])


# Finds global tokens, gathers them from a sequence and puts them back.
#
# Their number differs between examples and calls. Those of an example are gathered in order into as
# many slots as the example with the most of them needs, or into a number that is known when
# tracing, as XLA requires.


_MASK_NAME = "global_attention_mask"
# The meaning of a mask of two kinds; a mask of three is an `attention_mask`.
_KINDS = ("local", "global; 2 for global and 0 for padding belong into `attention_mask`")


@dataclasses.dataclass(frozen=True)
class GlobalTokens:
    """The global tokens of a batch.

    Attributes:
        mask: bool [batch, length].
        positions: int32 [batch, slots], distinct; those of global tokens come first, in order.
        is_used: bool [batch, slots]. Whether the slot has a global token.
    """

    mask: tf.Tensor
    positions: tf.Tensor
    is_used: tf.Tensor

    @property
    def number(self):
        """Number of slots: int or scalar tensor."""
        return get_shape_list(self.positions)[1]

    def gather(self, x):
        """Gathers global tokens: [batch, length, ...] to [batch, slots, ...]."""
        return tf.gather(x, self.positions, batch_dims=1)

    def put(self, x, rows):
        """Returns `x` [batch, length, ...] with `rows` [batch, slots, ...] as its global tokens."""
        batch, slots = get_shape_list(self.positions)
        is_used = tf.reshape(self.is_used, [batch, slots, *[1] * (len(x.shape) - 2)])
        rows = tf.where(is_used, rows, self.gather(x))
        examples = tf.broadcast_to(tf.range(batch)[:, tf.newaxis], [batch, slots])
        return tf.tensor_scatter_nd_update(x, tf.stack([examples, self.positions], -1), rows)


@tf.autograph.experimental.do_not_convert
def global_mask_of(given, batch, length, asserts):
    """Converts a caller's global tokens, a mask or positions, to a mask.

    Args:
        given: 0/1 int or bool [batch, length]; or positions: int [number], of all examples, or a
            `tf.RaggedTensor` of int [batch, (number)].
        batch: int or scalar tensor.
        length: int or scalar tensor.
        asserts: list, to which a graph adds its checks; see `argument_checks.check`.
    Returns:
        bool [batch, length].
    Raises:
        ValueError: naming the values, if they are invalid.
    """
    if not isinstance(given, tf.RaggedTensor):
        given = tf.convert_to_tensor(given)
    if given.shape.rank == 2:
        _check_sizes(given, batch, length, asserts)
    if given.shape.rank == 2 and not isinstance(given, tf.RaggedTensor):
        return argument_checks.checked_mask(_MASK_NAME, given, _KINDS, asserts=asserts)
    if isinstance(given, tf.RaggedTensor):
        given = given.to_tensor(-1)
    elif given.shape.rank == 1 and given.dtype.is_integer:
        given = given[tf.newaxis]
    else:
        argument_checks.fail(
            "`global_attention_mask` must be a mask of shape [batch, length] or int positions of "
            f"shape [number]. Received: {given.dtype.name} of shape {given.shape.as_list()}"
        )
    positions = tf.cast(given, tf.int32)
    words = "the number of tokens"
    name = "global_attention_mask (as positions)"
    argument_checks.check_range(name, positions, -1, length, words, asserts=asserts)
    mask = tf.reduce_any(tf.equal(positions[:, tf.newaxis], tf.range(length)[:, tf.newaxis]), -1)
    return tf.broadcast_to(mask, [batch, length])


def _check_sizes(given, batch, length, asserts):
    """Compares a mask, or ragged positions, which have no length, with the batch."""
    if isinstance(given, tf.RaggedTensor):
        found = [given.nrows(tf.int32)]
        wish = "`global_attention_mask` (as ragged positions) must have a row for each example"
    else:
        found = get_shape_list(given)
        wish = (
            "`global_attention_mask` must be a mask of shape [batch, length]; positions that "
            "differ between examples are a tf.RaggedTensor"
        )
    wanted = [batch, length][: len(found)]
    is_same = tf.reduce_all(tf.equal(tf.stack(found), tf.stack(wanted)))
    shown = [wish + ". Wanted sizes:", tf.stack(wanted), "received:", tf.stack(found)]
    argument_checks.check(is_same, *shown, asserts=asserts)


@tf.autograph.experimental.do_not_convert
def find_global_tokens(mask, max_number=None):
    """Returns the `GlobalTokens` of a mask.

    Args:
        mask: bool [batch, length].
        max_number: int or None. The number of slots; tokens beyond it are not global. None: as many
            as the example with the most needs, which is known only when a graph runs.
    Returns:
        `GlobalTokens`; None if it is known that there are none.
    """
    length = get_shape_list(mask)[1]
    rank = tf.cumsum(tf.cast(mask, tf.int32), axis=1)
    number = at_most(max_number, length) if max_number is not None else tf.reduce_max(rank)
    if tf.is_tensor(number) and tf.executing_eagerly():
        number = int(number)
    if isinstance(number, int) and number < 1:
        return None
    if max_number is not None:
        mask &= rank <= max_number
    # `top_k` prefers the lower index of equal values: unused slots get distinct positions.
    order = tf.where(mask, length - tf.range(length), 0)
    found, positions = tf.math.top_k(order, number)
    return GlobalTokens(mask, positions, found > 0)


# The attention.


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
        global_tokens: `GlobalTokens` or None. All queries attend to them, and not
            once more in the window.
        positions: `sinusoids.SinusoidPositions` or None, for logits that depend on the
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
