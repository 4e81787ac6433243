"""The ways in which a case is run.

All cases are run eagerly, where a case takes a tenth of a second or two; a sample of them in graphs
and compiled by XLA, too, which trace for seconds; and with `make test-xla` all of them compiled.
"""

import pytest
import tensorflow as tf

EAGER, GRAPH, COMPILED = "eager", "graph", "compiled"


def in_way(way, function):
    """A function that is run in one of the ways."""
    if way == EAGER:
        return function
    return tf.function(function, jit_compile=True if way == COMPILED else None, autograph=False)


def marked_for_xla(cases, sample):
    """The cases as parameters of tests that compile them.

    Args:
        cases: iterable of dict.
        sample: names of those that are among the slow tests; the others are of `make test-xla`.
    """
    return [
        pytest.param(
            case,
            id=case["name"],
            marks=pytest.mark.slow if case["name"] in sample else pytest.mark.xla,
        )
        for case in cases
    ]
