"""Prints losses and gradients of one batch, on one device and on two that share it, as JSON."""

import json

import numpy as np
import tensorflow as tf

from etcmodel.pretrain import model

BATCH, TOKENS, SENTENCES, SIZE = 4, 3, 2, 5


def make_batch():
    rng = np.random.default_rng(0)
    outputs = {
        "mlm_loss": rng.random([BATCH, TOKENS]),
        "cpc_predictions": rng.normal(size=[BATCH, SENTENCES, SIZE]),
        "cpc_targets": rng.normal(size=[BATCH, SENTENCES, SIZE]),
    }
    outputs = {name: tf.constant(values, tf.float32) for name, values in outputs.items()}
    outputs["mlm_token_ids"] = tf.constant(rng.integers(0, 2, [BATCH, TOKENS]), tf.int32)
    features = {
        "mlm_labels": tf.zeros([BATCH, TOKENS], tf.int32),
        # The devices have different numbers of real tokens and sentences.
        "mlm_mask": tf.constant([[1, 1, 1], [1, 1, 0], [1, 0, 0], [0, 0, 0]]),
        "cpc_mask": tf.constant([[1, 1], [1, 1], [1, 0], [0, 0]]),
    }
    return outputs, features


def losses_and_gradients(outputs, features):
    """Means of losses, and gradients by what a common factor of predictions and targets does."""
    factor = tf.Variable(np.linspace(0.5, 1.5, SIZE), dtype=tf.float32)

    def step(outputs, features):
        with tf.GradientTape() as tape:
            scaled = {
                **outputs,
                "cpc_predictions": outputs["cpc_predictions"] * factor,
                "cpc_targets": outputs["cpc_targets"] * tf.square(factor),
            }
            losses = model.pretraining_loss(scaled, features, mlm_weight=0.8, cpc_weight=0.2)
        return losses, tape.gradient(losses["loss"], factor)

    return step, factor


def on_one_device():
    outputs, features = make_batch()
    step, _ = losses_and_gradients(outputs, features)
    return tf.function(step)(outputs, features)


def on_two_devices():
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    outputs, features = make_batch()
    with strategy.scope():
        step, _ = losses_and_gradients(outputs, features)

    def share(values):
        def of_replica(context):
            first = context.replica_id_in_sync_group * BATCH // 2
            return {name: x[first : first + BATCH // 2] for name, x in values.items()}

        return strategy.experimental_distribute_values_from_function(of_replica)

    results = tf.function(lambda *args: strategy.run(step, args=args))(
        share(outputs), share(features)
    )
    return tf.nest.map_structure(
        lambda x: strategy.reduce(tf.distribute.ReduceOp.MEAN, x, axis=None), results
    )


if __name__ == "__main__":
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    both = [on_one_device(), on_two_devices()]
    print(json.dumps(tf.nest.map_structure(lambda x: x.numpy().tolist(), both)))
