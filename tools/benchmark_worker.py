"""Measures one TensorFlow model for `benchmark`: one line of JSON per request on standard input.

A request names a phase ('forward', 'train', 'float32' or 'bfloat16'); the answer gives the seconds
of one run of it and the peak memory of this process until now. A process of its own for each model
keeps the memory figures apart; being told when to run lets the models take turns.
"""

import json
import os
import resource
import sys
import time

__all__ = ["flops", "serve"]

_MATMUL_SIZE = 2048


def flops(length, global_length, radius=84, layers=12, hidden=768, intermediate=3072):
    """Floating-point operations of a forward pass of unshared ETC, two for a multiply and add.

    Counted are matrix products: all projections of both inputs, the feed-forward layers, and query
    by key and probability by value over exactly the pairs within reach. Labels, normalization and
    the like are not counted; neither are pairs computed only to be masked.
    """
    long_projections = (
        (4 + 2) * length * hidden * hidden
    )  # Query, key, value, output; g2l key, value.
    global_projections = (4 + 2) * global_length * hidden * hidden
    feed_forward = 2 * (length + global_length) * hidden * intermediate
    pairs = length * (2 * radius + 1 + global_length) + global_length * (global_length + length)
    return 2 * layers * (long_projections + global_projections + feed_forward + 2 * pairs * hidden)


def serve(phases):
    """Answers requests until the input ends.

    Args:
        phases: dict of names to functions without arguments, which return when the work is done.
    """
    for line in sys.stdin:
        run = phases[json.loads(line)]
        start = time.perf_counter()
        run()
        answer = {
            "seconds": time.perf_counter() - start,
            "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        }
        print(json.dumps(answer), flush=True)


def _matmul_phases():
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


def _phases(encode, model):
    """Forward pass and training step (forward, backward, all gradients) of an encoder."""
    import tensorflow as tf

    forward = tf.function(lambda: [tf.reduce_sum(x) for x in encode(training=False)])

    @tf.function
    def train():
        with tf.GradientTape() as tape:
            loss = tf.add_n([tf.reduce_mean(tf.square(x)) for x in encode(training=True)])
        gradients = tape.gradient(loss, model.trainable_variables, unconnected_gradients="zero")
        return [tf.reduce_sum(tf.convert_to_tensor(gradient)) for gradient in gradients]

    def run(function):
        return lambda: [x.numpy() for x in function()]

    return {"forward": run(forward), "train": run(train)}


def _etc_phases(length, global_length, checkpointing, dropout):
    import numpy as np
    import tensorflow as tf

    from etcmodel.models import input_utils, modeling

    config = modeling.EtcConfig(
        vocab_size=30522,
        share_qkv_projections=False,
        use_hard_g2l_mask=True,
        grad_checkpointing_period=int(checkpointing),
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
    )
    model = modeling.EtcModel(config)
    model.build(None)
    tokens = tf.constant(np.random.default_rng(0).integers(0, config.vocab_size, [1, length]))
    sentences = tf.constant(np.arange(length) * global_length // length, tf.int32)[tf.newaxis]

    def encode(training):
        structure = input_utils.make_structure_from_example_ids(
            tf.ones([1, length], tf.int32),
            tf.ones([1, global_length], tf.int32),
            sentences,
            config.relative_pos_max_distance,
            use_hard_g2l_mask=True,
        )
        global_tokens = tf.ones([1, global_length], tf.int32)
        return model(tokens, global_tokens, structure=structure, training=training)

    return _phases(encode, model)


def _bert_phases(length, dropout):
    import tensorflow as tf
    from official.nlp.modeling import networks

    model = networks.BertEncoderV2(
        vocab_size=30522,
        max_sequence_length=length,
        output_dropout=dropout,
        attention_dropout=dropout,
    )
    inputs = {
        "input_word_ids": tf.random.uniform([1, length], maxval=30522, dtype=tf.int32),
        "input_mask": tf.ones([1, length], tf.int32),
        "input_type_ids": tf.zeros([1, length], tf.int32),
    }

    def encode(training):
        return [model(inputs, training=training)["sequence_output"]]

    encode(training=False)
    return _phases(encode, model)


def main(argv):
    """Arguments: kind ('matmul', 'etc', 'bert'), then its settings as JSON."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    kind, settings = argv[1], json.loads(argv[2])
    if settings.pop("bfloat16", False):
        import tf_keras

        tf_keras.mixed_precision.set_global_policy("mixed_bfloat16")
    makers = {"matmul": _matmul_phases, "etc": _etc_phases, "bert": _bert_phases}
    serve(makers[kind](**settings))


if __name__ == "__main__":
    main(sys.argv)
