"""A process that makes models one after another gets their memory back."""

import ctypes
import gc
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from tensorflow.python.framework import ops

from etcmodel import serving
from tests.models import head_cases

pytestmark = pytest.mark.slow
ROOT = pathlib.Path(__file__).parents[2]
NUM_FITS, NUM_BEFORE = 12, 4  # Until then TensorFlow's own pools fill.
MOST_GROWTH = 60e6  # Bytes.


def made():
    model = head_cases.make("sequence")
    model.compile(tf_keras.optimizers.Adam(1e-2))
    return model


def fit(tmp_path):
    made().fit(*head_cases.data("sequence", 8), batch_size=4, verbose=0)


def step(tmp_path):
    """A step of one's own, with recomputed layers."""
    model = head_cases.make("sequence", grad_checkpointing_period=1)
    optimizer = tf_keras.optimizers.Adam(1e-2)
    features, labels = head_cases.data("sequence", 4)

    @tf.function
    def train(features):
        with tf.GradientTape() as tape:
            logits = model(features, training=True)
            loss = tf_keras.losses.sparse_categorical_crossentropy(labels, logits, from_logits=True)
        weights = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))

    train(tf.nest.map_structure(tf.constant, features))


def predict(tmp_path):
    """Each length is traced anew."""
    model = made()
    for length in (4, 8, 12):
        features, _ = head_cases.data("sequence", 4)
        model.predict({name: x[:, :length] for name, x in features.items()}, verbose=0)
        model.predict_function = None


def export(tmp_path):
    model = made()
    features, _ = head_cases.data("sequence", 4)
    model(features)
    serving.export_saved_model(
        model,
        str(tmp_path / "export"),
        features={
            name: tf.io.FixedLenFeature(x.shape[1:], tf.int64) for name, x in features.items()
        },
        assets={},
    )


@pytest.mark.parametrize("use", [fit, step, predict, export], ids=lambda use: use.__name__)
@pytest.mark.slow_cases(1)
def test_no_gradient_of_a_model_stays(use, tmp_path):
    gc.collect()
    before = set(ops.gradient_registry.list())
    use(tmp_path)
    tf_keras.backend.clear_session()
    for _ in range(3):  # A graph goes after that around it.
        gc.collect()
    assert set(ops.gradient_registry.list()) <= before


@pytest.mark.exhaustive
def test_fits_one_after_another_take_no_more_memory():
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    found = subprocess.run(
        [sys.executable, "-m", __name__], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert found.returncode == 0, found.stderr[-2000:]
    sizes = np.array([float(line) for line in found.stdout.split()])
    assert len(sizes) == NUM_FITS
    assert sizes[NUM_BEFORE:].max() - sizes[NUM_BEFORE - 1] < MOST_GROWTH, sizes


if __name__ == "__main__":
    for _ in range(NUM_FITS):
        fit(None)
        tf_keras.backend.clear_session()
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)
        with open("/proc/self/statm") as file:
            print(int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE"), flush=True)
