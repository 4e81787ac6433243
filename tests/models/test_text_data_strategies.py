"""`fit`, `evaluate` and `predict` on texts on two devices, where batches are uneven."""

import json
import subprocess
import sys

import numpy as np
import pytest

pytestmark = pytest.mark.exhaustive


@pytest.fixture(scope="module", name="found")
def run(tmp_path_factory):
    """In a process of its own: logical devices must be made before anything else runs."""
    command = [sys.executable, "-m", "tests.models.two_devices", str(tmp_path_factory.mktemp("x"))]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.exhaustive
def test_two_devices_learn_what_one_does_with_their_weights(found):
    assert len(found["both"]) == len(found["alone"]) > 10
    for two, one in zip(found["both"], found["alone"], strict=True):
        np.testing.assert_allclose(two, one, rtol=1e-3, atol=1e-5)


def test_two_devices_predict_for_each_text_in_its_order(found):
    np.testing.assert_allclose(found["predicted"], found["logits"], rtol=1e-3, atol=1e-4)
    assert np.shape(found["predicted"]) == (12, 2) and np.ptp(found["predicted"]) > 0.1


def test_two_devices_count_each_text_once(found):
    right = np.argmax(found["logits"], -1) == found["labels"]
    assert found["results"]["accuracy"] == pytest.approx(np.mean(right))
