"""Features and outputs of the same example, whichever device made the outputs."""

import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from etcmodel.training import evaluator, task, trainer

ROOT = pathlib.Path(__file__).parents[2]


# Whole batches; a last one that is filled up; one of which the second device has nothing real.
CASES = [(8, 4), (11, 4), (5, 4), (1, 2)]


@pytest.fixture(scope="module")
def predictions():
    """For each case the rows of one device and those of two."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.training.two_devices", *(f"{n},{m}" for n, m in CASES)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(zip(CASES, json.loads(done.stdout.splitlines()[-1]), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize(("num_examples", "batch_size"), CASES)
def test_two_devices_give_each_example_its_own_strings_and_outputs(
    predictions, num_examples, batch_size
):
    one, two = predictions[num_examples, batch_size]
    per_device = batch_size // 2
    for number, rows in ((1, one), (2, two)):
        assert len(rows) == num_examples
        for i, row in enumerate(rows):
            in_batch = i % batch_size
            assert row == {
                "id": [f"é{i}"],
                "words": [f"{i}a", f"{i}b"],
                "x": [float(i)],
                "both": [-float(i)],
                "square": [float(i * i)],
                "device": [in_batch // per_device if number == 2 else 0],
                "rows": [batch_size // number],  # The same shape on all devices, in every step.
            }


def test_devices_must_divide_the_batch_of_a_prediction():
    class TwoDevices:
        def experimental_distribute_values_from_function(self, value_fn):
            return [value_fn(tf.distribute.get_replica_context()) for _ in range(2)]

        def experimental_local_results(self, values):
            return tuple(values)

    predictor = evaluator.Predictor(tf_keras.Sequential(), TwoDevices())
    with pytest.raises(ValueError, match="must be a multiple of 2 devices. Got: 3"):
        next(predictor(lambda batch_size: None, batch_size=3))


def test_a_functional_model_reads_the_features_it_names_strings_too():
    words = tf_keras.Input([], dtype=tf.string, name="words")
    model = tf_keras.Model({"words": words}, {"length": tf.strings.length(words)})
    features = {"words": tf.constant(["a", "bcd"]), "label": tf.constant([1, 2])}
    assert list(task.model_features(model, features, training=False)) == ["words"]
    predictor = evaluator.Predictor(model, tf.distribute.get_strategy())
    dataset = tf.data.Dataset.from_tensor_slices(features)
    rows = list(predictor(dataset.batch, batch_size=2))
    assert [(row["words"], row["length"], row["label"]) for row in rows] == [
        (b"a", 1, 1),
        (b"bcd", 3, 2),
    ]


def test_outputs_that_are_no_numbers_are_told():
    x = tf_keras.Input([], name="x")
    model = tf_keras.Model({"x": x}, {"root": tf.sqrt(x)})
    dataset = tf.data.Dataset.from_tensor_slices({"x": [4.0, 9.0, 0.0, -1.0]})
    found = evaluator.Predictor(model, tf.distribute.get_strategy())(dataset.batch, batch_size=2)
    assert [next(found)["root"] for _ in range(2)] == [2.0, 3.0]
    with pytest.raises(ValueError, match=r"output `root` is not a number \(NaN\)"):
        next(found)


def test_another_model_reads_all_features_but_strings():
    read = {}

    class Model(tf_keras.Model):
        def call(self, features, training=None):
            read.update(features)
            return {}

    features = {"id": tf.constant(["a"]), "x": tf.constant([1.0]), "hash": tf.constant([2])}
    trainer.call_model(Model(), features, training=False)
    assert sorted(read) == ["hash", "x"]
    np.testing.assert_array_equal(read["x"], [1.0])
