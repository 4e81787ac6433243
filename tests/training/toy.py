"""A task small enough to be trained in a second, and a program that trains it."""

import os

import numpy as np
import tensorflow as tf
import tf_keras
from absl import app, flags

from etcmodel import options, program_end, training
from etcmodel.ops import dropout as dropout_ops
from tests.training import collectives

NUM_EXAMPLES = 24
VOCAB_SIZE = 5
NUM_INPUTS = 4
_FEATURES = {
    "inputs": tf.io.FixedLenFeature([NUM_INPUTS], tf.float32),
    "token_id": tf.io.FixedLenFeature([], tf.int64),
    "label": tf.io.FixedLenFeature([], tf.float32),
}


class Dropout(tf_keras.layers.Layer):
    """Dropout whose masks depend on the step's seed."""

    def __init__(self, rate):
        super().__init__()
        self.rate = rate

    def call(self, x, training=None):
        return dropout_ops.dropout(x, self.rate) if training else x


def write_records(directory, num_files=3):
    """Writes the examples in TFRecord files; returns their pattern."""
    random = np.random.default_rng(0)
    for number in range(num_files):
        with tf.io.TFRecordWriter(os.path.join(directory, f"train-{number}.tfrecord")) as writer:
            for _ in range(NUM_EXAMPLES // num_files):
                inputs = random.normal(size=NUM_INPUTS)
                feature = {
                    "inputs": _floats(inputs),
                    "token_id": tf.train.Feature(
                        int64_list=tf.train.Int64List(value=[random.integers(VOCAB_SIZE)])
                    ),
                    "label": _floats([inputs.sum()]),
                }
                example = tf.train.Example(features=tf.train.Features(feature=feature))
                writer.write(example.SerializeToString())
    return os.path.join(directory, "train-*.tfrecord")


def _floats(values):
    return tf.train.Feature(float_list=tf.train.FloatList(value=values))


def config(output_dir, **fields):
    """The `TrainingConfig` of a short run."""
    given = {"learning_rate": 0.01, "train_batch_size": 12, "num_train_epochs": 2.0, **fields}
    return training.TrainingConfig(output_dir=str(output_dir), **given)


def values(output_dir):
    """The variables of a run's latest checkpoint: dict of arrays."""
    reader = tf.train.load_checkpoint(str(output_dir))
    names = [name for name in reader.get_variable_to_shape_map() if "save_counter" not in name]
    return {n: reader.get_tensor(n) for n in names if n != "_CHECKPOINTABLE_OBJECT_GRAPH"}


class ToyTask(training.Task):
    """Predicts the sum of the inputs, less than well.

    Args:
        records: str. Pattern of the TFRecord files.
        dropout: float. Dropout rate.
        held_batch: int. Number of the batch, from 0, that is held back; -1: none.
        held_until: str. The file that lets it through when it is there.
        evaluates: bool. Whether there is evaluation data (the training examples).
        is_uneven: bool. Whether the loss is a mean over the examples with a label above 0.
    """

    best_metric = "error"
    higher_is_better = False
    num_train_examples = NUM_EXAMPLES

    def __init__(
        self,
        records,
        *,
        dropout=0.0,
        held_batch=-1,
        held_until="",
        evaluates=False,
        is_uneven=False,
    ):
        self.records, self.dropout, self.evaluates = records, dropout, evaluates
        self.is_uneven = is_uneven
        self.held_batch, self.held_until = held_batch, held_until

    def build_model(self):
        inputs = tf_keras.Input([NUM_INPUTS], name="inputs")
        token_id = tf_keras.Input([], dtype=tf.int64, name="token_id")
        embedded = tf_keras.layers.Embedding(VOCAB_SIZE, 8)(token_id)
        hidden = tf_keras.layers.Dense(8, activation="tanh")(inputs) + embedded
        hidden = tf_keras.layers.LayerNormalization(name="layer_norm")(hidden)
        hidden = Dropout(self.dropout)(hidden)
        logit = tf_keras.layers.Dense(1, dtype="float32")(hidden)
        unused = tf_keras.layers.Dense(1, name="unused")(hidden)
        outputs = {"sum": logit[:, 0], "unused": unused}
        return tf_keras.Model({"inputs": inputs, "token_id": token_id}, outputs)

    def loss(self, outputs, features):
        error = outputs["sum"] - features["label"]
        if self.is_uneven:
            counts = tf.cast(features["label"] > 0, tf.float32)
            error *= counts
            scale = tf.math.divide_no_nan(
                tf.cast(tf.size(counts), tf.float32), tf.reduce_sum(counts)
            )
        else:
            scale = 1.0
        squared, absolute = (scale * tf.reduce_mean(x) for x in (error**2, tf.abs(error)))
        return {"loss": squared + absolute, "squared": squared, "absolute": absolute}

    def loss_weight(self, features):
        return tf.math.count_nonzero(features["label"] > 0) if self.is_uneven else None

    def train_dataset(self, request):
        batches = training.training_batches(self.records, self._parse, request, shuffle_buffer=8)
        if self.held_batch < 0:
            return batches

        def wait():
            # Not in Python, for which TensorFlow would wait in vain when the process ends.
            files = tf.io.matching_files(self.held_until)
            return tf.while_loop(
                lambda files: tf.equal(tf.size(files), 0),
                lambda files: (tf.io.matching_files(self.held_until),),
                (files,),
                shape_invariants=(tf.TensorShape([None]),),
            )[0]

        def held(number, features):
            files = tf.cond(tf.equal(number, self.held_batch), wait, lambda: tf.constant([""]))
            with tf.control_dependencies([files]):
                return tf.nest.map_structure(tf.identity, features)

        return batches.enumerate().map(held)

    def eval_dataset(self, batch_size):
        if not self.evaluates:
            return None
        files = sorted(tf.io.gfile.glob(self.records))
        return tf.data.TFRecordDataset(files).map(self._parse).batch(batch_size)

    def evaluate(self, predictions):
        errors = [abs(p["sum"] - p["label"]) for p in predictions]
        return {"error": np.mean(errors), "count": len(errors)}

    def run_config(self):
        return {"dropout": self.dropout}

    @staticmethod
    def _parse(record):
        return tf.io.parse_single_example(record, _FEATURES)


OPTIONS = options.ProgramFlags(
    {"training": training.TrainingConfig, "program": options.ResumeOptions},
    defaults={"learning_rate": 0.01, "train_batch_size": 4},
)


def main(unused_argv):
    """Trains the task as the flags say."""
    values = flags.FLAGS
    if values.num_logical_cpus > 1:
        cpu = tf.config.list_physical_devices("CPU")[0]
        logical = [tf.config.LogicalDeviceConfiguration()] * values.num_logical_cpus
        tf.config.set_logical_device_configuration(cpu, logical)
    config = training.TrainingConfig(**OPTIONS.values("training"))
    task = ToyTask(
        values.records,
        dropout=values.dropout,
        held_batch=values.held_batch,
        held_until=values.held_until,
        evaluates=True,
        is_uneven=values.is_uneven,
    )
    with program_end.ends_in_one_line(), collectives.told():
        strategy = training.build_strategy(config)
        changes = training.parse_changes(values.change)
        print(training.train(task, config, strategy, changes=changes))


if __name__ == "__main__":
    OPTIONS.define()
    flags.DEFINE_string("records", None, "TFRecord files.")
    flags.DEFINE_float("dropout", 0.0, "Dropout rate.")
    flags.DEFINE_integer("held_batch", -1, "Number of the batch that is held back.")
    flags.DEFINE_string("held_until", "", "File that lets it through.")
    flags.DEFINE_bool("is_uneven", False, "Whether the loss is over some examples alone.")
    flags.DEFINE_integer("num_logical_cpus", 1, "Devices into which the CPU is split.")
    app.run(main)
