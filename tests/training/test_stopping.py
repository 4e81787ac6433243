"""Ctrl-C and SIGTERM while a run trains, and a second training in its directory."""

import dataclasses
import functools
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import tensorflow as tf

from etcmodel import atomic_files, program_end, training
from etcmodel.training import run as stopping
from etcmodel.training import run_directory
from tests.training import toy

pytestmark = pytest.mark.usefixtures("eagerly")

NUM_STEPS = 120
SECONDS = 60  # For what takes a moment.


# A run that is at its end before anything happens to it.
short = functools.partial(toy.config, num_train_epochs=1.0)


# A run that neither reports nor saves anything before its end.
config = functools.partial(
    toy.config, train_batch_size=4, num_train_epochs=20.0, steps_per_summary=NUM_STEPS
)


@pytest.fixture
def stops(monkeypatch):
    """The variables that tell the loops of runs to stop; their requests would keep whole runs."""
    made = []
    make = stopping.StopRequest.__init__

    def make_and_keep(self, *arguments):
        make(self, *arguments)
        made.append(self.is_due)

    monkeypatch.setattr(stopping.StopRequest, "__init__", make_and_keep)
    yield made
    made.clear()


class SignaledTask(toy.ToyTask):
    """Its process gets a signal while a batch is read, or while it evaluates."""

    signum = signal.SIGTERM
    at_batch = None
    stops = ()
    at_evaluation = told_otherwise = False
    at_eval_dataset = None
    num_eval_datasets = 0

    def train_dataset(self, request):
        def pass_on(label):
            self.num_batches += 1
            if self.num_batches == self.at_batch:
                os.kill(os.getpid(), self.signum)
                self.wait_until_it_is_noticed()
            return label

        def noticed(features):
            label = tf.numpy_function(pass_on, [features["label"]], tf.float32)
            return {**features, "label": tf.ensure_shape(label, features["label"].shape)}

        self.num_batches = 0
        return super().train_dataset(request).map(noticed, num_parallel_calls=1)

    def wait_until_it_is_noticed(self):
        """Else a thread that gets no time might let the loop step to its end."""
        deadline = time.monotonic() + SECONDS
        while not self.stops[-1].numpy() and time.monotonic() < deadline:
            time.sleep(0.001)

    def eval_dataset(self, batch_size):
        dataset = super().eval_dataset(batch_size)
        self.num_eval_datasets += 1
        return dataset and dataset.map(self.traced)

    def traced(self, features):
        if self.num_eval_datasets == self.at_eval_dataset:
            os.kill(os.getpid(), self.signum)
        return features

    def evaluate(self, predictions):
        if self.at_evaluation:
            try:
                os.kill(os.getpid(), self.signum)
            except KeyboardInterrupt:
                if self.told_otherwise:
                    raise AttributeError("no such name") from None  # As TensorFlow's C++ does.
                raise
        return super().evaluate(predictions)


@pytest.mark.usefixtures("in_graphs")
@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_stopped_saves_its_step_and_goes_on_from_there(
    records, tmp_path, stops, signum
):
    task = SignaledTask(records, dropout=0.3)
    task.signum, task.at_batch, task.stops = signum, 9, stops
    stopped, through = config(tmp_path / "stopped"), config(tmp_path / "through")
    handlers = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with pytest.raises(program_end.Interrupted, match=r"step \d+ is saved\. The same") as error:
        training.train(task, stopped)
    assert error.value.signum == signum
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == handlers
    step = int(re.search(r"step (\d+)", str(error.value))[1])
    assert 0 < step <= 9
    names = sorted(os.listdir(stopped.output_dir))
    data = [f"ckpt-{step}.data-00000-of-00001", f"ckpt-{step}.index"]
    metrics = ["run_config.json", "train_metrics.jsonl"]
    assert names == ["checkpoint", *data, metrics[0], "train", metrics[1]]

    task.at_batch = None
    training.train(task, stopped)
    training.train(task, through)
    values, expected = toy.values(stopped.output_dir), toy.values(through.output_dir)
    assert values.keys() == expected.keys()
    for name in expected:
        np.testing.assert_array_equal(values[name], expected[name], err_msg=name)
    lines = (tmp_path / "stopped" / "train_metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == [step, NUM_STEPS]


@pytest.mark.usefixtures("in_graphs")
@pytest.mark.exhaustive
def test_a_stopped_run_evaluates_at_the_steps_of_one_that_was_not(records, tmp_path, stops):
    task = SignaledTask(records, evaluates=True)
    task.at_batch, task.stops = 9, stops
    run = dataclasses.replace(config(tmp_path), save_checkpoints_steps=48)
    with pytest.raises(program_end.Interrupted):
        training.train(task, run)
    task.at_batch = None
    training.train(task, run)
    lines = (tmp_path / "eval_metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == [48, 96, NUM_STEPS]


class SignalingCallback(training.Callback):
    """Its process gets a signal right after the metrics of a step are written."""

    def __init__(self, task):
        self.task = task

    def on_summary(self, step, metrics):
        os.kill(os.getpid(), signal.SIGTERM)
        self.task.wait_until_it_is_noticed()


def test_a_signal_after_the_metrics_of_a_step_adds_none_of_no_step(records, tmp_path, stops):
    task = SignaledTask(records)
    task.stops = stops
    run = dataclasses.replace(config(tmp_path), steps_per_summary=2)
    with pytest.raises(program_end.Interrupted, match="step 2 is saved"):
        training.train(task, run, callbacks=[SignalingCallback(task)])
    (line,) = map(json.loads, (tmp_path / "train_metrics.jsonl").read_text().splitlines())
    assert line["step"] == 2 and "loss" in line


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("told_otherwise", [False, True])
def test_an_evaluation_is_stopped_at_once_and_made_up_for(records, tmp_path, told_otherwise):
    task = SignaledTask(records, evaluates=True)
    task.at_evaluation, task.told_otherwise = True, told_otherwise
    run = short(tmp_path)
    with pytest.raises(program_end.Interrupted, match="step 2 is saved"):
        training.train(task, run)
    assert not (tmp_path / "eval_metrics.jsonl").exists()
    task.at_evaluation = False
    assert training.train(task, run)["count"] == toy.NUM_EXAMPLES


def test_an_evaluation_is_stopped_while_its_data_are_traced(records, tmp_path):
    task = SignaledTask(records, evaluates=True)
    task.at_eval_dataset = 2  # The first one is only looked at, before the run.
    with pytest.raises(program_end.Interrupted, match="step 2 is saved"):
        training.train(task, short(tmp_path))


def test_a_second_training_in_the_directory_is_refused(records, tmp_path):
    run = short(tmp_path)
    with run_directory.alone_training(str(tmp_path)):
        before = sorted(os.listdir(tmp_path))
        message = rf"{tmp_path}: process {os.getpid()} on .* is training there\. Wait for its end"
        with pytest.raises(ValueError, match=message):
            training.train(toy.ToyTask(records), run)
        assert sorted(os.listdir(tmp_path)) == before
    training.train(toy.ToyTask(records), run)
    assert "training.lock" not in os.listdir(tmp_path)


def test_errors_within_are_not_taken_for_a_held_lock(tmp_path):
    with (
        pytest.raises(BlockingIOError, match="mine"),
        run_directory.alone_training(str(tmp_path)),
    ):
        raise BlockingIOError(11, "mine")


def test_a_killed_process_holds_no_lock(tmp_path):
    path = str(tmp_path / "x.lock")
    code = (
        "import sys\nfrom etcmodel import atomic_files\nwith atomic_files.held(sys.argv[1]):\n"
        "    print(flush=True)\n    sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        with pytest.raises(BlockingIOError, match=f"process {process.pid} on .*x.lock"):  # noqa: SIM117
            with atomic_files.held(path):
                pass
        process.kill()
        process.wait()
    assert pathlib.Path(path).exists()
    with atomic_files.held(path):
        pass
    assert not pathlib.Path(path).exists()
