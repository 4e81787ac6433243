"""Measures one model of keras-hub's for `turns`, as `torch_worker` does one of Hugging Face's.

Runs in an interpreter that has `keras-hub` and TensorFlow, and nothing of this package.
"""

import json
import os
import sys

_VOCABULARY_SIZE = 30522
_HEAD_SIZE = 64


def make_model(kind, length, layers, hidden, batch=1):
    """A randomly initialized model of the kind, and its inputs at this length."""
    import keras_hub
    import tensorflow as tf

    sizes = {
        "vocabulary_size": _VOCABULARY_SIZE,
        "num_layers": layers,
        "hidden_dim": hidden,
        "intermediate_dim": 4 * hidden,
        "dropout": 0.0,
    }
    shape = [batch, length]
    tokens = tf.random.uniform(shape, minval=3, maxval=_VOCABULARY_SIZE, dtype=tf.int32)
    inputs = {"token_ids": tokens, "segment_ids": tf.zeros_like(tokens)}
    if kind == "fnet":  # Without attention: Fourier transforms mix the tokens.
        return keras_hub.models.FNetBackbone(**sizes, max_sequence_length=length), inputs
    sizes["num_heads"] = hidden // _HEAD_SIZE
    if kind == "roformer":
        return keras_hub.models.RoformerV2Backbone(**sizes, head_size=_HEAD_SIZE), inputs
    inputs["padding_mask"] = tf.ones_like(tokens)
    return keras_hub.models.BertBackbone(**sizes, max_sequence_length=length), inputs


def make_phases(model, inputs):
    """dict of phases to functions: forward pass and training step."""
    import tensorflow as tf

    def encode(training):
        output = model(inputs, training=training)
        return output["sequence_output"] if isinstance(output, dict) else output

    @tf.function
    def forward():
        return tf.reduce_sum(encode(training=False))

    @tf.function
    def train():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(encode(training=True)))
        variables = [variable.value for variable in model.trainable_variables]
        gradients = tape.gradient(loss, variables, unconnected_gradients="zero")
        return [tf.convert_to_tensor(gradient) for gradient in gradients]

    return {"forward": lambda: forward().numpy(), "train": lambda: train()[0].numpy()}


def main(argv):
    """Arguments: kind ('bert', 'fnet', 'roformer'), then its settings as JSON."""
    from turn_loop import serve  # Beside this script.

    os.environ["KERAS_BACKEND"] = "tensorflow"
    serve(make_phases(*make_model(argv[1], **json.loads(argv[2]))))


if __name__ == "__main__":
    main(sys.argv)
