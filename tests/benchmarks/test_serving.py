"""The benchmarks of the HTTP server run whole, with few requests."""

import json
import pathlib
import re
import subprocess
import sys

import pytest
import tensorflow as tf

from benchmarks import serving, serving_load
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


def test_clients_ask_about_texts_of_many_lengths(tmp_path):
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *"abcdefgh"]
    (tmp_path / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    (tmp_path / "text.txt").write_text(" ".join("abcdefgh" * 40), encoding="utf-8")
    flags = {
        "texts": tmp_path / "text.txt",
        "vocab_file": tmp_path / "vocab.txt",
        "clients": "1,3",
        "seconds": 0.5,
        "shortest": 2,
        "longest": 200,
        "middle": 20,
        "hidden_size": 64,
        "num_hidden_layers": 1,
        "max_long_len": 64,
    }
    command = [sys.executable, "-m", "benchmarks.serving_load"]
    command += [f"--{name}={value}" for name, value in flags.items()]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    head, _, *rows = [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in done.stdout.splitlines()
    ]
    assert head[7:9] == ["to 20 words: p50, p95", "from 20: p50, p95"]
    for row, clients in zip(rows, (1, 3), strict=True):
        assert row[0] == str(clients) and int(row[1]) >= clients and row[9:11] == ["0", "0"]
        assert float(row[4]) <= float(row[5]) <= float(row[6]) < 60


def test_percentiles_are_of_the_answers():
    options = serving_load.ServingLoadOptions(texts=("a",), vocab_file=__file__, middle=10)
    came = [(5, 0.001 * n, 200) for n in range(1, 101)] + [(20, 9.0, 200), (20, 1.0, 503)]
    row = serving_load.cells(4, came, 10.0, 5e6, options)
    assert row[:4] == ["4", "101", "10.10", "52"] and row[9:] == ["1", "0", "5"]
    assert row[7] == "0.0505, 0.0951" and row[8] == "9"
