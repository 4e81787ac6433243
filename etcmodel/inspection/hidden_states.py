"""Hidden states between the layers."""

import tensorflow as tf

from etcmodel.inspection import calls
from etcmodel.models import encoders
from etcmodel.ops.interception import intercept


def hidden_states(model, inputs):
    """The hidden states: the input of each layer, and the output of the last.

    Computed in one ordinary call of the model, without dropout; for an encoder-decoder without
    decoder inputs, in a call of its encoder. If the model calls its encoder several times, the last
    call counts.

    Args:
        model: `EtcModel` or another `Encoder` whose layers are a `TransformerStack`, or a model
            that contains one; for a model with a decoder, its encoder is inspected.
        inputs: dict. For an encoder, its arguments by name (`token_ids`, `global_token_ids`,
            `structure`, …); for any other model, its first argument.
    Returns:
        list with one more entry than there are layers. Each entry is a tuple with a tensor for each
        stream of tokens: (long, global) float [batch, long_len, hidden_size], [batch, global_len,
        hidden_size] for ETC, also in ModernBERT's layers, and PEGASUS-X. The first entry is the
        embeddings, the last one the encoder's output, in the compute dtype of the layers.
    Raises:
        ValueError: if the model contains no such encoder, or a compressing GMAT, which has several
            stacks; inside a `tf.function`; or for invalid inputs of the model.

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
        # Some blocks take all streams as one argument, a list.
        embeddings[:] = tf.nest.flatten(args)[: len(stack.streams)]
        outputs.clear()
        with intercept(*blocks, by=keep_output):
            return call(*args, **kwargs)

    def keep_output(_, call, *args, **kwargs):
        outputs.append(call(*args, **kwargs))
        return outputs[-1]

    steps = [stack.steps(index) for index in range(stack.num_hidden_layers)]
    blocks = [step.block for layer in steps for step in layer]
    encoder, sizes = calls.encoder_of(model), []

    def keep_sizes(_, call, *args, **kwargs):
        long_output, global_output = call(*args, **kwargs)
        sizes[:] = long_output.shape[1], global_output.shape[1]
        return long_output, global_output

    # Both sides' tokens may be one stream, the long ones first.
    is_joined = encoders.has_global_input(encoder.config) and len(stack.streams) == 1
    with intercept(*[encoder] * is_joined, by=keep_sizes), intercept(stack, by=keep_embeddings):
        calls.call_encoder(model, inputs)
    states = _by_layer(steps, embeddings, iter(outputs))
    if hasattr(encoder, "finish"):  # What follows the last layer.
        first, *others = states[-1]
        states[-1] = (encoder.finish(first, False), *others)
    return [tuple(tf.split(x, sizes, axis=1)) for (x,) in states] if is_joined else states


def _by_layer(steps, embeddings, outputs):
    """The streams after each layer, from the outputs of the blocks in order."""
    hidden, states = list(embeddings), [tuple(embeddings)]
    for layer in steps:
        for step in layer:
            output = next(outputs)
            output = output if len(step.streams) > 1 else [output]
            for stream, x in zip(step.streams, output, strict=True):
                hidden[stream] = x
        states.append(tuple(hidden))
    return states
