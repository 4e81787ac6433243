"""Measures one TensorFlow model for `benchmark`: one line of JSON per request on standard input.

A request names a phase ('forward', 'train', 'float32' or 'bfloat16'); the answer gives the seconds
of one run of it and the peak memory of this process until now. A separate process for each model
separates the memory figures; running on request lets the models take turns.
"""

import json
import sys

from etcmodel.tools.benchmarks.turn_loop import serve

__all__ = [
    "encoder_functions",
    "etc_functions",
    "fetch",
    "graph_phases",
    "matmul_phases",
    "matmul_seconds_to_speed",
    "num_heads",
]

_MATMUL_SIZE = 2048
_HEAD_SIZE = 64


def num_heads(hidden):
    """Attention heads of a model of that size, as in BERT: int."""
    return max(hidden // _HEAD_SIZE, 1)


def matmul_phases():
    """dict of "float32" and "bfloat16" to functions of ten products of large matrices."""
    import tensorflow as tf

    def phase(dtype):
        matrix = tf.cast(tf.random.normal([_MATMUL_SIZE, _MATMUL_SIZE]), dtype)
        product = tf.function(lambda: tf.matmul(matrix, matrix))

        def run():
            for _ in range(10):
                result = product()
            result[0, 0].numpy()

        return run

    return {"float32": phase(tf.float32), "bfloat16": phase(tf.bfloat16)}


def matmul_seconds_to_speed(seconds):
    """Floating-point operations a second, from the seconds of a matrix phase."""
    return 10 * 2 * _MATMUL_SIZE**3 / seconds


def encoder_functions(encode, model):
    """Forward pass and training step (forward, backward, all gradients) of an encoder.

    Args:
        encode: function of `training`: list of tensors.
        model: Keras layer whose gradients are wanted.
    Returns:
        dict of functions without arguments: 'forward' returns a list of scalars, 'train' one of all
        gradients.
    """
    import tensorflow as tf

    def forward():
        return [tf.reduce_sum(x) for x in encode(training=False)]

    def train():
        with tf.GradientTape() as tape:
            loss = tf.add_n([tf.reduce_mean(tf.square(x)) for x in encode(training=True)])
        gradients = tape.gradient(loss, model.trainable_variables, unconnected_gradients="zero")
        return [tf.convert_to_tensor(gradient) for gradient in gradients]

    return {"forward": forward, "train": train}


def fetch(tensors):
    """Waits for the tensors; only the first is copied, as what is measured is not the copying."""
    return tensors[0].numpy()


def graph_phases(functions):
    """dict of names to functions that run these as graphs, and return when the work is done."""
    import tensorflow as tf

    def run(function):
        function = tf.function(function)
        return lambda: fetch(function())

    return {name: run(function) for name, function in functions.items()}


def etc_functions(
    length, global_length, checkpointing=False, dropout=0.0, layers=12, hidden=768, batch=1
):
    """ETC on random examples, unshared as the base model.

    Args:
        length: int. Long tokens.
        global_length: int. Global tokens.
        checkpointing: bool. Whether the backward pass computes activations again.
        dropout: float.
        layers: int.
        hidden: int. Size of both inputs.
        batch: int. Examples.
    Returns:
        dict of functions without arguments: 'forward' returns a list of scalars, 'train' one of all
        gradients.
    """
    import numpy as np
    import tensorflow as tf

    from etcmodel.models import input_utils, modeling

    config = modeling.EtcConfig(
        vocab_size=30522,
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=num_heads(hidden),
        intermediate_size=4 * hidden,
        share_qkv_projections=False,
        use_hard_g2l_mask=True,
        grad_checkpointing_period=int(checkpointing),
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
    )
    model = modeling.EtcModel(config)
    model.build(None)
    tokens = tf.constant(np.random.default_rng(0).integers(0, config.vocab_size, [batch, length]))
    sentences = np.arange(length) * global_length // length
    sentences = tf.constant(np.broadcast_to(sentences, [batch, length]), tf.int32)

    def encode(training):
        structure = input_utils.make_structure_from_example_ids(
            tf.ones([batch, length], tf.int32),
            tf.ones([batch, global_length], tf.int32),
            sentences,
            config.relative_pos_max_distance,
            use_hard_g2l_mask=True,
        )
        global_tokens = tf.ones([batch, global_length], tf.int32)
        return model(tokens, global_tokens, structure=structure, training=training)

    return encoder_functions(encode, model)


def _bert_functions(length, dropout, layers=12, hidden=768, batch=1):
    import tensorflow as tf
    from official.nlp.modeling import networks

    model = networks.BertEncoderV2(
        vocab_size=30522,
        hidden_size=hidden,
        num_layers=layers,
        num_attention_heads=num_heads(hidden),
        inner_dim=4 * hidden,
        max_sequence_length=length,
        output_dropout=dropout,
        attention_dropout=dropout,
    )
    inputs = {
        "input_word_ids": tf.random.uniform([batch, length], maxval=30522, dtype=tf.int32),
        "input_mask": tf.ones([batch, length], tf.int32),
        "input_type_ids": tf.zeros([batch, length], tf.int32),
    }

    def encode(training):
        return [model(inputs, training=training)["sequence_output"]]

    encode(training=False)
    return encoder_functions(encode, model)


def main(argv):
    """Arguments: kind ('matmul', 'etc', 'bert'), then its settings as JSON."""
    kind, settings = argv[1], json.loads(argv[2])
    if settings.pop("bfloat16", False):
        import tf_keras

        tf_keras.mixed_precision.set_global_policy("mixed_bfloat16")
    if kind == "matmul":
        serve(matmul_phases(**settings))
    else:
        makers = {"etc": etc_functions, "bert": _bert_functions}
        serve(graph_phases(makers[kind](**settings)))


if __name__ == "__main__":
    main(sys.argv)
