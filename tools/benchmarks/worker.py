"""Measures one TensorFlow model for `benchmark`: one line of JSON per request on standard input.

A request names a phase ('forward', 'train', or one of `matmul_phases`); the answer gives the
seconds of one run of it and the peak memory of this process until now. A separate process for each
model separates the memory figures; running on request lets the models take turns.
"""

import json
import sys

from etcmodel.tools.benchmarks.turn_loop import serve

__all__ = [
    "MATMUL",
    "encoder_functions",
    "etc_functions",
    "fastest_products",
    "fetch",
    "graph_phases",
    "matmul_phases",
    "matmul_seconds_to_speed",
    "num_global_tokens",
    "num_heads",
]

MATMUL = {"size": 2048, "number": 10}  # So many products of square matrices of this size.
_HEAD_SIZE = 64


def num_heads(hidden):
    """Attention heads of a model of that size, as in BERT: int."""
    return max(hidden // _HEAD_SIZE, 1)


def num_global_tokens(length):
    """Global tokens of a long input of that length: a 16th of it, from 1 to 512: int."""
    return min(max(1, length // 16), 512)


def matmul_phases():
    """Functions of ten products of large matrices, by TensorFlow and by NumPy's library.

    Returns:
        dict of "float32", "bfloat16" (TensorFlow's) and "numpy" (in float32) to functions.
    """
    import numpy as np
    import tensorflow as tf

    def phase(dtype):
        matrix = tf.cast(tf.random.normal([MATMUL["size"]] * 2), dtype)
        product = tf.function(lambda: tf.matmul(matrix, matrix))

        def run():
            for _ in range(MATMUL["number"]):
                result = product()
            result[0, 0].numpy()

        return run

    def in_numpy(matrix):
        for _ in range(MATMUL["number"]):
            np.dot(matrix, matrix)

    array = np.random.default_rng(0).standard_normal([MATMUL["size"]] * 2, np.float32)
    of_numpy = {"numpy": lambda: in_numpy(array)}
    return {"float32": phase(tf.float32), "bfloat16": phase(tf.bfloat16), **of_numpy}


def fastest_products(speeds, dtype):
    """What a share is of, so that a slow library does not flatter a model.

    Args:
        speeds: dict of `matmul_phases` to operations a second.
        dtype: "float32" or "bfloat16".
    Returns:
        float. In float32 the faster of TensorFlow and NumPy.
    """
    return max(speeds[dtype], speeds["numpy"] if dtype == "float32" else 0.0)


def matmul_seconds_to_speed(seconds):
    """Floating-point operations a second, from the seconds of a matrix phase."""
    return MATMUL["number"] * 2 * MATMUL["size"] ** 3 / seconds


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
