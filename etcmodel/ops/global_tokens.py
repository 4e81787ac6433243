"""Finds global tokens, gathers them from a sequence and puts them back.

Their number differs between examples and calls. Those of an example are gathered in order into as
many slots as the example with the most of them needs, or into a number that is known when tracing,
as XLA requires.
"""

import dataclasses

import tensorflow as tf

from etcmodel.ops import argument_checks
from etcmodel.ops.shapes import at_most, get_shape_list

__all__ = ["GlobalTokens", "find", "mask_of"]

_NAME = "global_attention_mask"
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
def mask_of(given, batch, length, asserts):
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
        return argument_checks.checked_mask(_NAME, given, _KINDS, asserts=asserts)
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
def find(mask, max_number=None):
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
