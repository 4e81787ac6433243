"""Predicts on one device and on two, into which this program splits the CPU.

Arguments: pairs of numbers, of examples and of those in a batch. Prints a line of JSON: for each
pair the rows of one device and those of two.
"""

import json
import sys

import numpy as np
import tensorflow as tf
import tf_keras

from etcmodel.training import evaluator


class Model(tf_keras.Model):
    """Squares a number, and says on which device."""

    def call(self, features, training=None):
        x = features["x"]
        device = tf.distribute.get_replica_context().replica_id_in_sync_group
        return {
            "square": tf.square(x),
            "device": tf.fill(tf.shape(x), tf.cast(device, tf.int32)),
            "rows": tf.fill(tf.shape(x), tf.shape(x)[0]),
            # A name that the features have, too: that of the outputs wins.
            "both": -x,
        }


def make_dataset(num_examples):
    features = {
        "id": [f"é{i}" for i in range(num_examples)],
        "words": [[f"{i}a", f"{i}b"] for i in range(num_examples)],
        "x": [float(i) for i in range(num_examples)],
        "both": [float(i) for i in range(num_examples)],
    }
    dataset = tf.data.Dataset.from_tensor_slices(features)
    return lambda batch_size: dataset.batch(batch_size)


def predict(strategy, num_examples, batch_size):
    with strategy.scope():
        model = Model()
    predictor = evaluator.Predictor(model, strategy)
    rows = predictor(make_dataset(num_examples), batch_size)
    return [{name: _for_json(value) for name, value in row.items()} for row in rows]


def _for_json(value):
    values = np.ravel(value).tolist()
    return [x.decode() if isinstance(x, bytes) else x for x in values]


def main(pairs):
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    one = tf.distribute.OneDeviceStrategy("CPU:0")
    two = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    rows = []
    for pair in pairs:
        num_examples, batch_size = map(int, pair.split(","))
        rows.append([predict(strategy, num_examples, batch_size) for strategy in (one, two)])
    print(json.dumps(rows))


if __name__ == "__main__":
    main(sys.argv[1:])
