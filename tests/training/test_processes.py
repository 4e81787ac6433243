"""Runs of whole programs: resumed after a kill, on two devices, on two workers."""

import contextlib
import json
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import sys
import time

import numpy as np
import pytest
import tensorflow as tf

from etcmodel import training
from etcmodel.tools.benchmarks import costs
from tests.training import collectives, toy
from tests.warm import python as warm

pytestmark = pytest.mark.slow

ROOT = pathlib.Path(__file__).parents[2]
NUM_NUMBERS = 5  # Three losses, the norm, and whether a worker is asked to stop.
SECONDS = 500  # Other programs may take most of the machine.


def start(records, output_dir, *flags, python=None, **environment):
    """Starts the toy program; its output goes to `<output_dir>.log`."""
    command = [python or warm.python(), "-m", "tests.training.toy", f"--records={records}"]
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


def wait_for_step(output_dir, step):
    """Waits until the metrics of a step are written."""
    deadline, path = time.monotonic() + SECONDS, output_dir / "train_metrics.jsonl"
    while not (path.exists() and f'"step": {step},' in path.read_text()):
        assert time.monotonic() < deadline, f"{path} has no line of step {step}"
        time.sleep(0.02)


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


@pytest.mark.slow_cases(1)
@pytest.mark.parametrize("optimizer", ["adamw", "bert_adam"])
def test_killed_and_resumed_run_equals_the_uninterrupted_one_bit_by_bit(
    records, tmp_path, optimizer
):
    flags = ("--dropout=0.3", "--save_checkpoints_steps=4", "--steps_per_summary=2")
    flags += (f"--optimizer={optimizer}",)
    through, stopped = tmp_path / "through", tmp_path / "stopped"
    uninterrupted = start(records, through, *flags)
    held = ("--held_batch=10", f"--held_until={tmp_path}/never")
    killed = start(records, stopped, *flags, *held, python=sys.executable)
    wait_for_step(stopped, 10)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert tf.train.latest_checkpoint(stopped).endswith("ckpt-8")
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


def test_devices_and_parts_count_by_what_their_losses_are_means_over(records, tmp_path):
    flags = ("--is_uneven", "--save_checkpoints_steps=24")
    divided = ("--gradient_accumulation_steps=2", "--num_logical_cpus=2")
    divided += ("--distribution_strategy=mirrored",)
    runs = {tmp_path / "whole": (), tmp_path / "divided": divided}
    for output_dir, further in runs.items():
        finish(start(records, output_dir, *flags, *further), output_dir)
    whole, parts = runs
    assert_same_result(parts, whole)


@pytest.mark.exhaustive
def test_the_averages_of_two_mirrored_devices_equal_those_of_one(records, one_device, tmp_path):
    flags = ("--save_checkpoints_steps=24", "--ema_decay=0.6")
    one, two = tmp_path / "one", tmp_path / "two"
    mirrored = ("--distribution_strategy=mirrored", "--num_logical_cpus=2")
    finish(start(records, one, *flags), one)
    finish(start(records, two, *flags, *mirrored), two)
    assert_same_result(two, one)
    average, plain = final_values(one), final_values(one_device)
    names = [x for x in plain if x.startswith("model/") and "OPTIMIZER_SLOT" not in x]
    assert max(np.abs(average[name] - plain[name]).max() for name in names) > 1e-3


@pytest.mark.exhaustive
def test_two_mirrored_devices_equal_one_with_bert_adam(records, tmp_path):
    """Whose clipping is of the mean gradient over the devices."""
    flags = ("--optimizer=bert_adam", "--save_checkpoints_steps=24", "--weight_decay_rate=0.1")
    two_devices = ("--distribution_strategy=mirrored", "--num_logical_cpus=2")
    runs = {tmp_path / "one": (), tmp_path / "two": two_devices}
    for output_dir, further in runs.items():
        finish(start(records, output_dir, *flags, *further), output_dir)
    one, two = runs
    assert_same_result(two, one)


def start_workers(records, output_dir, *flags, count=2):
    workers = [f"localhost:{port}" for port in free_ports(count)]
    return [
        start(
            records,
            output_dir,
            "--distribution_strategy=multi_worker_mirrored",
            *flags,
            TF_CONFIG=json.dumps(
                {"cluster": {"worker": workers}, "task": {"type": "worker", "index": index}}
            ),
        )
        for index in range(count)
    ]


@pytest.mark.slow_cases(1)
@pytest.mark.parametrize("count", [2, 4])
def test_workers_equal_one_device_and_sum_what_the_costs_tell(records, one_device, tmp_path, count):
    output_dir = tmp_path / "workers"
    flags = ("--save_checkpoints_steps=24",)
    for process in start_workers(records, output_dir, *flags, count=count):
        finish(process, output_dir)
    assert_same_result(output_dir, one_device)
    assert not [name for name in os.listdir(output_dir) if "tmp" in name]

    trained = toy.ToyTask(records).build_model().trainable_variables
    trained = sum(int(tf.size(x)) for x in trained if "unused" not in x.name)
    gradients = costs.Costs(trained, config=None).gradient_bytes
    told = collectives.read(pathlib.Path(f"{output_dir}.log").read_text())
    assert len(told) == count
    for graphs in told:  # One array of all gradients, and numbers beside it.
        assert graphs and all(sizes == [gradients, *[4] * NUM_NUMBERS] for sizes in graphs), told


def test_two_workers_with_an_average_go_on_with_changed_options_as_one_device(records, tmp_path):
    workers, one = tmp_path / "workers", tmp_path / "one"
    flags = ("--save_checkpoints_steps=24", "--ema_decay=0.6", "--num_train_epochs=2")
    for changes in ((), ("--change=learning_rate=0.003", "--change=num_train_epochs=3")):
        for process in start_workers(records, workers, *flags, *changes):
            finish(process, workers)
    options = {"save_checkpoints_steps": 24, "ema_decay": 0.6, "num_train_epochs": 2.0}
    options |= {"learning_rate": 0.01, "train_batch_size": 4}
    config = training.TrainingConfig(output_dir=str(one), **options)
    for changes in (None, {"learning_rate": 0.003, "num_train_epochs": 3.0}):
        training.train(toy.ToyTask(records, evaluates=True), config, changes=changes)
    assert_same_result(workers, one)
    assert final_values(workers)["global_step/.ATTRIBUTES/VARIABLE_VALUE"] == 18
    histories = [(folder / "history.json").read_text() for folder in (workers, one)]
    assert histories[0] == histories[1]
    assert not [name for name in os.listdir(workers) if "tmp" in name]


@pytest.mark.slow_cases(1)
@pytest.mark.parametrize("signaled", [[1], [0, 1]], ids=["other", "both"])
def test_two_workers_of_which_one_is_stopped_save_the_same_step(
    records, one_device, tmp_path, signaled
):
    output_dir = tmp_path / "workers"
    flags = ("--save_checkpoints_steps=24", "--steps_per_summary=4")
    go_on = tmp_path / "go_on"
    held = ("--held_batch=8", f"--held_until={go_on}")
    processes = start_workers(records, output_dir, *flags, *held)
    wait_for_step(output_dir, 8)  # All workers wait for the batch of the next one.
    for index in signaled:
        processes[index].send_signal(signal.SIGTERM)
    go_on.touch()
    codes = [process.wait(SECONDS) for process in processes]
    log = pathlib.Path(f"{output_dir}.log").read_text()
    expected = [128 + (signal.SIGTERM if i in signaled else signal.SIGINT) for i in range(2)]
    assert codes == expected, log[-3000:]
    (step,) = set(re.findall(r"interrupted: step (\d+) is saved\. The same command", log))
    assert 8 <= int(step) < 24 and log.count("interrupted: ") == 2 and "Traceback" not in log
    assert tf.train.latest_checkpoint(output_dir).endswith(f"ckpt-{step}")

    for process in start_workers(records, output_dir, *flags):
        finish(process, output_dir)
    values, expected = final_values(output_dir), final_values(one_device)
    for name in expected:
        np.testing.assert_allclose(values[name], expected[name], atol=1e-5, err_msg=name)
    assert not [name for name in os.listdir(output_dir) if "tmp" in name]


def free_ports(count):
    """Ports that the system gives to nobody who does not ask for them."""
    text = pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text()
    first_given = int(text.split()[0])
    candidates = random.SystemRandom().sample(range(first_given - 8000, first_given), 200)
    ports = []
    for port in candidates:
        with socket.socket() as one, contextlib.suppress(OSError):
            one.bind(("localhost", port))
            ports.append(port)
        if len(ports) == count:
            return ports
    raise AssertionError(f"hardly any port below {first_given} is free")
