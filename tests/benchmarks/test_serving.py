"""The benchmark of the HTTP server runs whole, with few requests."""

import json
import pathlib
import re
import subprocess
import sys

import pytest
import tensorflow as tf

from benchmarks import serving
from tests.serving.rest import text_models

pytestmark = pytest.mark.slow

ROOT = pathlib.Path(__file__).parents[2]


def test_it_counts_requests_rates_and_memory(tmp_path):
    export = text_models.export(str(tmp_path / "export"), "classify")
    request = tmp_path / "request.json"
    request.write_text(json.dumps({"instances": ["Route 66"]}), encoding="utf-8")
    command = [sys.executable, "-m", "benchmarks.serving", "--calls=2"]
    arguments = [f"--model_dir={export}", f"--request={request}", "--requests=16", "--clients=2"]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    requests, rates, calls, ratio, memory = done.stdout.splitlines()
    assert requests == "requests: 16, lost: 0"
    numbers = [len(re.findall(r"[\d.]+", line.split(":")[1])) for line in (rates, calls, memory)]
    assert numbers == [4, 5, 5]
    assert re.fullmatch(r"ratio: ([\d.]+, ){3}[\d.]+; median [\d.]+", ratio)


def test_without_an_export_a_tiny_one_is_made(tmp_path):
    loaded = tf.saved_model.load(serving._export_tiny(str(tmp_path / "export")))
    example = {name: tf.constant([x]) for name, x in serving._tiny_example(24).items()}
    (probabilities,) = loaded.signatures["dense_features"](**example)["probabilities"].numpy()
    assert probabilities.shape == (3,) and probabilities.sum() == pytest.approx(1)
