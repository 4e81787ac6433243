"""Hidden states between the layers."""

import tensorflow as tf

from etcmodel.inspection import calls
from etcmodel.ops.interception import intercept

__all__ = ["hidden_states"]


def hidden_states(model, inputs):
    """What goes into each layer, and what comes out of the last.

    Computed by one ordinary call of the model, without dropout; of an encoder-decoder that gets
    nothing to decode, by one of its encoder. If the model calls its encoder several times, they are
    those of the last time.

    Args:
        model: `EtcModel` or another `Encoder` whose layers are a `TransformerStack`, or a model
            that holds one; of a model with a decoder it is the encoder that is looked into.
        inputs: dict. An encoder's arguments by name (`token_ids`, `global_token_ids`, `structure`,
            …); what any other model takes as its first argument.
    Returns:
        list, one entry more than there are layers, of a tuple with a tensor for each stream of
        tokens: (long, global) float [batch, long_len, hidden_size], [batch, global_len,
        hidden_size] for ETC and PEGASUS-X. The first entry are the embeddings, the last one is
        the encoder's output. Of the compute type of the layers.
    Raises:
        ValueError: if the model holds no such encoder, or a GMAT that compresses, which has several
            stacks; inside a `tf.function`, or as the model.

    >>> from etcmodel import inspection
    >>> model = etcmodel.from_pretrained("my_model")
    >>> states = inspection.hidden_states(model, model.processor("It is good."))
    >>> len(states), states[-1][0].shape  # The embeddings and one layer; long tokens.
    (2, TensorShape([1, 6, 12]))
    """
    calls.check_eager()
    stack, embeddings, outputs = calls.stack_of(model), [], []

    def keep_embeddings(_, call, *args, **kwargs):
        calls.check_eager()
        # Some take all streams as one argument, a list.
        embeddings[:] = tf.nest.flatten(args)[: len(stack.streams)]
        outputs.clear()
        with intercept(*blocks, by=keep_output):
            return call(*args, **kwargs)

    def keep_output(_, call, *args, **kwargs):
        outputs.append(call(*args, **kwargs))
        return outputs[-1]

    steps = [stack.steps(index) for index in range(stack.num_hidden_layers)]
    blocks = [step.block for layer in steps for step in layer]
    with intercept(stack, by=keep_embeddings):
        calls.call_encoder(model, inputs)
    states = _by_layer(steps, embeddings, iter(outputs))
    if hasattr(encoder := calls.encoder_of(model), "finish"):  # Of a model with a decoder.
        first, *others = states[-1]
        states[-1] = (encoder.finish(first, False), *others)
    return states


def _by_layer(steps, embeddings, outputs):
    """The streams after each layer, from the outputs of the blocks in their order."""
    hidden, states = list(embeddings), [tuple(embeddings)]
    for layer in steps:
        for step in layer:
            output = next(outputs)
            output = output if len(step.streams) > 1 else [output]
            for stream, x in zip(step.streams, output, strict=True):
                hidden[stream] = x
        states.append(tuple(hidden))
    return states
