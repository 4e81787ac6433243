"""Observes the attention of chosen layers while a model is called."""

import contextlib

from etcmodel.ops import blockwise
from etcmodel.ops.interception import intercept

__all__ = ["SIDES", "watching"]

SIDES = ("long", "global")


@contextlib.contextmanager
def watching(blocks, look):
    """Context manager in which `look` is called with the arguments of some layers' attention.

    Args:
        blocks: dict of a number to the layer with this attention, or around it. It computes the
            attention of long queries first, then that of global ones, if any.
        look: function of the number, the side of the queries (one of `SIDES`), the layer's first
            argument, the queries, the key sets and a dict of the other arguments of
            `ops.blockwise.attend`, without the rate of the dropout.
    """
    number_of = {id(block): number for number, block in blocks.items()}

    def at_block(block, call, inputs, *args, **kwargs):
        sides = iter(SIDES)

        def at_attend(_, attend, queries, key_sets, *, dropout_rate=0.0, **options):
            look(number_of[id(block)], next(sides), inputs, queries, key_sets, options)
            return attend(queries, key_sets, dropout_rate=dropout_rate, **options)

        with intercept(blockwise.attend, by=at_attend):
            return call(inputs, *args, **kwargs)

    with intercept(*blocks.values(), by=at_block):
        yield
