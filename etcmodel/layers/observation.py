"""Returns a stack's hidden states and attention probabilities as outputs of a call."""

import contextlib

import tensorflow as tf

from etcmodel.layers import sublayers
from etcmodel.ops import blockwise
from etcmodel.ops.interception import intercept


@tf.autograph.experimental.do_not_convert  # Like `TransformerStack.run`.
def run_observed(stack, hidden, training=None, *, with_attentions=False, **options):
    """Runs a `TransformerStack` layer by layer, and returns all hidden states.

    Args:
        stack: `TransformerStack`.
        hidden, training, **options: see `TransformerStack.run`.
        with_attentions: bool. Whether to compute the probabilities of all pairs, at a cost
            quadratic in the length. Then nothing is recomputed for gradients, as probabilities
            would have none.
    Returns:
        (states, attentions): a list of lists of the streams, before the first layer and after each;
        and by layer, for each attention in the order of its calls, the list of
        `ops.blockwise.attention_probs`.
    """
    states, attentions = [sublayers.cast_all(stack, *hidden)], []
    for index in range(stack.num_hidden_layers):
        with _kept_attentions() if with_attentions else contextlib.nullcontext([]) as calls:
            states.append(
                stack.run_layer(
                    index, states[-1], options, training, may_recompute=not with_attentions
                )
            )
        attentions.append(calls)
    return states, attentions


@contextlib.contextmanager
def _kept_attentions():
    """Yields a list to which each attention inside appends its probabilities."""
    calls = []

    def keep(_, call, queries, key_sets, **arguments):
        names = ("scale", "query_positions")
        shared = {name: arguments[name] for name in names if name in arguments}
        calls.append(blockwise.attention_probs(queries, key_sets, **shared))
        return call(queries, key_sets, **arguments)

    with intercept(blockwise.attend, by=keep):
        yield calls


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
