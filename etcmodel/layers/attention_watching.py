"""Lets code see the attention of chosen layers of a stack while a model is called."""

import contextlib

from etcmodel.ops import blockwise
from etcmodel.ops.interception import intercept

__all__ = ["SIDES", "watching"]

SIDES = ("long", "global")


@contextlib.contextmanager
def watching(stack, layers, look):
    """A context in which `look` sees what the attention of global-local layers is called with.

    Args:
        stack: `GlobalLocalTransformerLayers`.
        layers: sequence of int, from 0.
        look: function of the layer (int), the side of the queries (one of `SIDES`), the layer's
            inputs [long, global], the queries, the key sets and a dict of the other arguments of
            `ops.blockwise.attend`, without the rate of the dropout.
    """
    layer_of = {id(stack.fused_att_layers[layer]): layer for layer in layers}

    def at_layer(block, call, inputs, **kwargs):
        sides = iter(SIDES)  # A layer attends for its long queries first.

        def at_attend(_, attend, queries, key_sets, *, dropout_rate=0.0, **options):
            look(layer_of[id(block)], next(sides), inputs, queries, key_sets, options)
            return attend(queries, key_sets, dropout_rate=dropout_rate, **options)

        with intercept(blockwise.attend, by=at_attend):
            return call(inputs, **kwargs)

    with intercept(*(stack.fused_att_layers[layer] for layer in layers), by=at_layer):
        yield
