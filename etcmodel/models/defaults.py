"""Default global tokens and positions of a batch; pure tensor functions."""

import tensorflow as tf

from etcmodel.models import padding
from etcmodel.ops import argument_checks

__all__ = [
    "blocks",
    "blocks_of_examples",
    "examples_of_links",
    "num_of_links",
    "places_in_runs",
]


def num_of_links(links, given="links"):
    """Number of global tokens that are linked to: the length of the global input.

    Args:
        links: int32 [batch, len].
        given: str. The name of the feature that the links come from, for the message.
    Raises:
        ValueError: in a function that XLA compiles, since the number must be known there.
    """
    if tf.__internal__.get_enclosing_xla_context() is not None:
        argument_checks.fail(
            f"`global_token_ids` must be given beside `{given}` in a function that XLA compiles, "
            "such as with `jit_compile`: without them, the length of the global input is not known "
            "there"
        )
    return tf.maximum(tf.reduce_max(links) + 1, 0)


def blocks(example_ids, block_length):
    """Links each block of tokens to a global token: (links, number); none if the length is 0.

    Blocks are counted from the first token, so that leading padding has no effect. Each row is one
    example: see `blocks_of_examples`.
    """
    shape = tf.shape(example_ids)
    if not block_length:
        return tf.fill(shape, -1), 0
    # An int if it is known: compiled code needs it.
    length = shape[1] if example_ids.shape[1] is None else example_ids.shape[1]
    is_token = example_ids > 0
    blocks = padding.places_from_first_real(is_token) // block_length
    return tf.where(is_token, blocks, -1), -(-length // block_length)


def blocks_of_examples(example_ids, block_length):
    """Like `blocks`, for rows with several examples, each of which begins a new block.

    The number is that of the row with the most blocks, but no less than for one example per row.

    Raises:
        ValueError: see `num_of_links`.
    """
    links, least = blocks(example_ids, block_length)
    if not block_length:
        return links, least
    is_token = example_ids > 0
    is_first = is_token & tf.equal(places_in_runs(example_ids) % block_length, 0)
    links = tf.where(is_token, tf.cumsum(tf.cast(is_first, tf.int32), axis=1) - 1, -1)
    return links, tf.maximum(num_of_links(links, "example_ids"), least)


def examples_of_links(links, example_ids, num_global):
    """Finds the example of each global token by its links: int32 [batch, num_global]."""
    batch = tf.shape(links)[0]
    rows = tf.range(batch)[:, tf.newaxis] * num_global
    ids = tf.math.unsorted_segment_max(
        example_ids, tf.where(links >= 0, rows + links, -1), batch * num_global
    )
    # Tokens without a link leave the least int there.
    return tf.maximum(tf.reshape(ids, [batch, num_global]), 0)


def places_in_runs(example_ids):
    """Counts 0, 1, 2 … in each run of equal ids: int32 [batch, len]."""
    batch, length = tf.unstack(tf.shape(example_ids))
    places = tf.broadcast_to(tf.range(length), [batch, length])
    is_new = tf.not_equal(example_ids[:, 1:], example_ids[:, :-1])
    runs = tf.cumsum(tf.pad(tf.cast(is_new, tf.int32), [[0, 0], [1, 0]]), axis=1)[:, :length]
    runs += tf.range(batch)[:, tf.newaxis] * length  # A number of its own for each run.
    begins = tf.math.unsorted_segment_min(places, runs, batch * length)
    return places - tf.gather(begins, runs)
