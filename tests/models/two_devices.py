"""Trains a classifier on texts on two devices, into which this program splits the CPU, and on one.

Prints a line of JSON: what each has learnt, and what two devices tell. The argument is a folder for
the vocabulary.
"""

import json
import pathlib
import sys

import numpy as np
import tensorflow as tf

from tests.models import text_cases

SIZES = (4, 3, 4, 1)  # Of batches: of the last one the second device gets nothing.
TEXTS = ["a b. c d.", "the wey.", "e", "long f g h i? j.", "k l m", "n. o. p", "q r"]
TEXTS += TEXTS[:5]
LABELS = np.array([0, 1, 1, 0, 1, 0, 0, 1, 0, 0, 1, 1])


def weights_on_two_devices():
    """How much each text weighs in Keras's mean of two devices, in that of one device.

    Each device takes the mean over its own texts, and the step the mean over both devices.
    """
    weights = []
    for size in SIZES:
        first = min(size, SIZES[0] // 2)
        for share in (first, size - first):
            weights += [size / 2 / max(share, 1)] * share
    return np.array(weights, np.float32)


def dataset(*parts):
    """The batches, of 7 examples and of 5."""
    first, second = (
        tf.data.Dataset.from_tensor_slices(tuple(x[part] for x in parts)).batch(SIZES[0])
        for part in (slice(7), slice(7, None))
    )
    return first.concatenate(second)


def main(folder):
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    processor = text_cases.processor(pathlib.Path(folder), relation_names=())
    alone = text_cases.classifier(processor, is_eager=True)
    alone.fit(dataset(TEXTS, LABELS, weights_on_two_devices()), verbose=0)
    with tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope():
        model = text_cases.classifier(processor, is_eager=False)
    data = dataset(TEXTS, LABELS)
    model.fit(data, verbose=0)
    model.run_eagerly = True  # What follows would take as long to trace.
    found = {
        "alone": [x.tolist() for x in alone.get_weights()],
        "both": [x.tolist() for x in model.get_weights()],
        "logits": alone(processor(TEXTS)).numpy().tolist(),
        "predicted": model.predict(data, verbose=0).tolist(),
        "labels": LABELS.tolist(),
        "results": model.evaluate(data, return_dict=True, verbose=0),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
