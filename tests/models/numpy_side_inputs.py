"""Side inputs pair by pair: slow twins of `input_utils` and `multihop_utils`."""

import numpy as np


def pairs(num_queries, num_keys, value):
    """Fills an array [num_queries, num_keys] with `value(query, key)`."""
    shape = num_queries, num_keys
    filled = [value(query, key) for query, key in np.ndindex(*shape)]
    return np.array(filled, int).reshape(shape)


def windows(length, local_radius, value, outside):
    """The same for keys within the radius; `outside` beyond the ends (a function of the pair)."""

    def at(query, column):
        key = query + column - local_radius
        return value(query, key) if 0 <= key < length else outside(query, key)

    return pairs(length, 2 * local_radius + 1, at)


def position_label(query, key, max_distance):
    """0 for the token itself, then tokens to the right, then tokens to the left."""
    clipped = min(abs(key - query), max_distance)
    return clipped if key >= query else clipped + max_distance


def examples_of(breakpoints):
    """Each token's example; 0 for the padding after the last breakpoint."""
    examples, number = [], 0
    for is_last in reversed(breakpoints):
        number += is_last
        examples.insert(0, number)
    return examples
