"""Runs of whole programs: resumed after a kill, on two devices, on two workers."""

import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

import numpy as np
import pytest
import tensorflow as tf

from tests.training import toy

pytestmark = pytest.mark.slow

ROOT = pathlib.Path(__file__).parents[2]
SECONDS = 100


def start(records, output_dir, *flags, **environment):
    """Starts the toy program; its output goes to `<output_dir>.log`."""
    command = [sys.executable, "-m", "tests.training.toy", f"--records={records}"]
    command += [f"--output_dir={output_dir}", "--num_train_epochs=4", *flags]
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", **environment}
    with open(f"{output_dir}.log", "a") as log:
        return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log)


def finish(process, output_dir):
    assert process.wait(SECONDS) == 0, pathlib.Path(f"{output_dir}.log").read_text()[-3000:]


def final_values(output_dir):
    """Every variable of the last checkpoint by name, except the number of times one was saved."""
    reader = tf.train.load_checkpoint(str(output_dir))
    names = reader.get_variable_to_shape_map()
    skipped = ("_CHECKPOINTABLE_OBJECT_GRAPH", "save_counter/.ATTRIBUTES/VARIABLE_VALUE")
    return {name: reader.get_tensor(name) for name in names if name not in skipped}


def log_lines(output_dir, name, *, without=()):
    lines = (output_dir / f"{name}_metrics.jsonl").read_text().splitlines()
    return [{k: v for k, v in json.loads(x).items() if k not in without} for x in lines]


def wait_for(path):
    deadline = time.monotonic() + SECONDS
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} did not appear"
        time.sleep(0.02)


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    return toy.write_records(str(tmp_path_factory.mktemp("records")))


@pytest.fixture(scope="module")
def one_device(records, tmp_path_factory):
    """A run on one device; others must come to the same result."""
    output_dir = tmp_path_factory.mktemp("runs") / "one_device"
    finish(start(records, output_dir, "--save_checkpoints_steps=24"), output_dir)
    return output_dir


def assert_same_result(output_dir, expected_dir):
    values, expected = final_values(output_dir), final_values(expected_dir)
    assert values.keys() == expected.keys()
    for name in expected:
        np.testing.assert_allclose(values[name], expected[name], atol=1e-5, err_msg=name)
    losses, expected_losses = (
        [line["loss"] for line in log_lines(path, "train")] for path in (output_dir, expected_dir)
    )
    np.testing.assert_allclose(losses, expected_losses, rtol=1e-5)
    rates = ("examples_per_second",)
    for line, expected_line in zip(
        log_lines(output_dir, "eval", without=rates),
        log_lines(expected_dir, "eval", without=rates),
        strict=True,
    ):
        np.testing.assert_allclose(list(line.values()), list(expected_line.values()), rtol=1e-4)


def test_killed_and_resumed_run_equals_the_uninterrupted_one_bit_by_bit(records, tmp_path):
    flags = ("--dropout=0.3", "--save_checkpoints_steps=4", "--steps_per_summary=2")
    through, stopped = tmp_path / "through", tmp_path / "stopped"
    uninterrupted = start(records, through, *flags)
    killed = start(records, stopped, *flags, "--seconds_per_batch=0.3")
    wait_for(stopped / "ckpt-8.index")
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert not (stopped / "ckpt-24.index").exists()
    finish(start(records, stopped, *flags), stopped)
    finish(uninterrupted, through)

    values, expected = final_values(stopped), final_values(through)
    assert values.keys() == expected.keys()
    assert values["global_step/.ATTRIBUTES/VARIABLE_VALUE"] == 24
    for name in expected:
        np.testing.assert_array_equal(values[name], expected[name], err_msg=name)
    for log in ("train", "eval"):
        without = ("examples_per_second",)
        assert log_lines(stopped, log, without=without) == log_lines(through, log, without=without)
    best = (stopped / "best" / "best_metric.json").read_text()
    assert best == (through / "best" / "best_metric.json").read_text()


def test_two_mirrored_devices_equal_one(records, one_device, tmp_path):
    output_dir = tmp_path / "mirrored"
    flags = ("--distribution_strategy=mirrored", "--num_logical_cpus=2")
    process = start(records, output_dir, *flags, "--save_checkpoints_steps=24")
    finish(process, output_dir)
    assert_same_result(output_dir, one_device)


def test_two_workers_equal_one_device(records, one_device, tmp_path):
    output_dir = tmp_path / "workers"
    workers = [f"localhost:{port}" for port in free_ports(2)]
    processes = [
        start(
            records,
            output_dir,
            "--distribution_strategy=multi_worker_mirrored",
            "--save_checkpoints_steps=24",
            TF_CONFIG=json.dumps(
                {"cluster": {"worker": workers}, "task": {"type": "worker", "index": index}}
            ),
        )
        for index in range(2)
    ]
    for process in processes:
        finish(process, output_dir)
    assert_same_result(output_dir, one_device)
    assert not [name for name in os.listdir(output_dir) if "tmp" in name]


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("localhost", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports
