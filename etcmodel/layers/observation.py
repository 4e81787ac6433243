"""A stack's hidden states and attention probabilities as outputs of an ordinary call."""

from etcmodel.layers import steps as steps_lib
from etcmodel.layers import sublayers
from etcmodel.ops import blockwise
from etcmodel.ops.interception import intercept

__all__ = ["run_observed"]


def run_observed(stack, hidden, training=None, *, with_attentions=False, **options):
    """As `TransformerStack.run`, layer by layer: nothing is recomputed for gradients.

    Args:
        stack: `TransformerStack`.
        hidden, training, **options: see `TransformerStack.run`.
        with_attentions: bool. Whether to compute probabilities: of all pairs, at a cost of the
            square of the length.
    Returns:
        (states, attentions): a list of lists of the streams, before the first layer and after each;
        and by layer, for each attention in the order of its calls, the list of
        `ops.blockwise.attention_probs`.
    """
    hidden = sublayers.cast_all(stack, *hidden)
    states, attentions = [hidden], []
    for index in range(stack.num_hidden_layers):
        calls = []

        def keep(_, call, queries, key_sets, _calls=calls, **arguments):
            names = ("scale", "query_positions")
            shared = {name: arguments[name] for name in names if name in arguments}
            _calls.append(blockwise.attention_probs(queries, key_sets, **shared))
            return call(queries, key_sets, **arguments)

        layers = [stack.steps(index)]
        if with_attentions:
            with intercept(blockwise.attend, by=keep):
                hidden = steps_lib.run_layers(layers, hidden, options, training)
        else:
            hidden = steps_lib.run_layers(layers, hidden, options, training)
        states.append(hidden)
        attentions.append(calls)
    return states, attentions
