"""The bar of a training and of an evaluation, on a pseudo-terminal."""

import functools
import io
import json
import logging
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time

import pytest
import tensorflow as tf

from etcmodel import progress_bar, training
from etcmodel.durations import format_duration
from etcmodel.training import progress
from tests.training import terminal, toy

pytestmark = pytest.mark.usefixtures("eagerly")

ROOT = pathlib.Path(__file__).parents[2]
SECONDS = 500  # Other programs may take most of the machine.


config = functools.partial(
    toy.config, num_train_epochs=4.0, save_checkpoints_steps=4, steps_per_summary=2
)


@pytest.fixture(scope="module")
def trained(records, tmp_path_factory):
    """A run with a terminal: its folder, and what was written to the terminal."""
    folder, task = tmp_path_factory.mktemp("run"), toy.ToyTask(records, evaluates=True)
    with pytest.MonkeyPatch.context() as patch:
        written, _ = terminal.showing(lambda: training.train(task, config(folder)), patch)
    return folder, written


def test_lines_stand_above_the_bar(trained):
    *lines, bar, cursor = terminal.screen(trained[1])
    assert lines[0] == "step 0/8  tracing the training step, once"
    assert [re.sub(r" \d.*", "", line[9:].strip()) for line in lines[1:]] == [
        "checkpoint saved: ckpt-4",
        "evaluated  error",
        "checkpoint saved: ckpt-8",
        "evaluated  error",
    ]
    assert re.fullmatch(r"100% \|█+\| step 8/8  loss \S+  \S+ examples/s  time left 0s", bar)
    assert cursor == ""


def test_the_bar_tells_steps_rate_and_time_left(trained):
    folder, written = trained
    text = b"".join(written).decode()
    log = (folder / "train_metrics.jsonl").read_text().splitlines()
    reports = {line["step"]: line for line in map(json.loads, log)}
    rates = []
    for step in (2, 4, 6, 8):
        rates.append(reports[step]["examples_per_second"])
        middle = sorted(rates)
        rate = (middle[(len(middle) - 1) // 2] + middle[len(middle) // 2]) / 2
        left = format_duration((8 - step) * 12 / rate)
        expected = (
            f"step {step}/8  loss {reports[step]['loss']:.4g}  {rates[-1]:.3g} examples/s  "
            f"time left {left}"
        )
        frames = [frame for frame in text.split("\r") if f"step {step}/8  loss" in frame]
        assert frames, step
        for frame in frames:
            percentage, bar, told = frame.split("|")
            assert percentage.strip() == f"{100 * step / 8:.0f}%"
            assert told.split("\n")[0].strip() == expected
            full = re.match("█*", bar)[0]
            assert abs(len(full) / len(bar) - step / 8) <= 1 / len(bar)


def test_an_evaluation_counts_and_is_gone_at_the_end(records, trained, monkeypatch):
    run = config(trained[0], eval_batch_size=4)
    task = toy.ToyTask(records, evaluates=True)
    monkeypatch.setattr(progress_bar, "_SECONDS_BETWEEN_COUNTS", 0.0)
    written, _ = terminal.showing(lambda: training.evaluate(task, run), monkeypatch)
    assert re.search(rb"evaluating 24 examples +\S+ examples/s", b"".join(written))
    assert terminal.screen(written) == [""]


def test_a_count_with_a_total_has_a_bar(monkeypatch):
    monkeypatch.setattr(progress_bar, "_SECONDS_BETWEEN_COUNTS", 0.0)

    def count():
        with progress_bar.counted("reading", total=4, unit="pages") as add:
            for _ in range(4):
                add(1)

    written, _ = terminal.showing(count, monkeypatch)
    assert "reading |██" in b"".join(written).decode() and b"2/4 pages" in b"".join(written)
    assert terminal.screen(written) == [""]


def test_what_is_logged_stands_above_a_count(monkeypatch):
    monkeypatch.setattr(progress_bar, "_SECONDS_BETWEEN_COUNTS", 0.0)

    def count():
        handler = logging.StreamHandler(sys.stderr)
        with monkeypatch.context() as patch:
            patch.setattr(logging.getLogger(), "handlers", [handler])
            with progress_bar.counted("reading") as add:
                add(1)
                logging.warning("skipped the second")
                add(1)
        assert not handler.filters

    written, _ = terminal.showing(count, monkeypatch)
    assert b"reading 2 examples" in b"".join(written)
    assert terminal.screen(written) == ["skipped the second", ""]


@pytest.mark.parametrize("stream", [None, io.StringIO()], ids=["none", "closed"])
def test_without_standard_error_nothing_is_shown(stream, monkeypatch):
    if stream:
        stream.close()
    monkeypatch.setattr(sys, "stderr", stream)
    with progress_bar.counted("reading") as add:
        add(1)
    shown = progress.ProgressLine(global_step=tf.Variable(2), num_steps=2, batch_size=1)
    shown.begin()
    shown({"loss": 1.0, "learning_rate": 0.1})
    shown.close()


class Lines(io.StringIO):
    """A file of which one can wait for a line."""

    def __init__(self):
        super().__init__()
        self.has_lines = threading.Event()

    def write(self, text):
        super().write(text)
        if self.getvalue().count("\n") >= 2:
            self.has_lines.set()


@pytest.mark.parametrize(("step", "doing"), [(7, "tracing the training step"), (9, "training")])
def test_a_long_loop_tells_by_time_how_far_it_is(step, doing, monkeypatch):
    monkeypatch.setattr(progress_bar, "_SECONDS_OF_SILENCE", 0.01)
    stream, global_step = Lines(), tf.Variable(7)
    shown = progress.ProgressLine(
        global_step=global_step, num_steps=30, batch_size=1, stream=stream
    )
    shown.begin()
    with shown.during_steps():
        global_step.assign(step)
        assert stream.has_lines.wait(SECONDS)
    told = stream.getvalue()
    assert told.splitlines()[-1] == f"step {step}/30  still {doing}, 0s"
    assert stream.getvalue() == told  # Nothing comes later.


def test_a_long_count_is_told_by_time_off_a_terminal(monkeypatch):
    monkeypatch.setattr(progress_bar, "_SECONDS_OF_SILENCE", 0.01)
    stream = Lines()
    with progress_bar.counted("evaluating", total=9, unit="pages", stream=stream) as add:
        add(2)
        assert stream.has_lines.wait(SECONDS)
    assert set(stream.getvalue().splitlines()) == {"still evaluating: 2 of 9 pages, 0s"}


def test_training_and_evaluating_tell_by_time_on_a_terminal_and_off_it(
    records, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(progress_bar, "_SECONDS_OF_SILENCE", 0.005)
    task = toy.ToyTask(records, evaluates=True)
    training.train(task, config(tmp_path / "file", num_train_epochs=2.0))
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "step 0/4  tracing the training step, once"
    assert re.fullmatch(r"step 0/4  still tracing the training step, \d+s", lines[1])
    assert [line for line in lines if line.startswith("still evaluating: ")]
    run = config(tmp_path / "terminal", num_train_epochs=2.0)
    written, _ = terminal.showing(lambda: training.train(task, run), monkeypatch)
    assert b"  0% |" in b"".join(written)
    assert b"step 0/4  still tracing the training step, " in b"".join(written)
    assert not [line for line in terminal.screen(written) if "still" in line]


class WrongTask(toy.ToyTask):
    """Its evaluation fails after some examples."""

    def evaluate(self, predictions):
        for _, _ in zip(range(5), predictions, strict=False):
            pass
        raise ArithmeticError("no metric")


def test_after_an_error_the_cursor_is_in_an_empty_line(records, tmp_path, monkeypatch):
    task = WrongTask(records, evaluates=True)
    written, error = terminal.showing(lambda: training.train(task, config(tmp_path)), monkeypatch)
    assert str(error) == "no metric"
    *_, bar, cursor = terminal.screen(written)
    assert bar.startswith(" 50% |") and "step 4/8" in bar and cursor == ""
    assert not [line for line in terminal.screen(written) if "evaluating" in line]


@pytest.mark.slow
def test_a_program_that_is_stopped_ends_its_bar_and_tells_so_below(records, tmp_path):
    command = [sys.executable, "-m", "tests.training.toy", f"--records={records}"]
    command += [f"--output_dir={tmp_path}/run", "--num_train_epochs=100000"]
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    with terminal.opened() as (number, written):
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=number
        )
        deadline = time.monotonic() + SECONDS
        while b"step 20/600000  loss" not in b"".join(written):
            assert process.poll() is None and time.monotonic() < deadline, b"".join(written)
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        assert process.wait(SECONDS) == 128 + signal.SIGINT
    *_, saved, bar, told, cursor = terminal.screen(written)
    step = re.fullmatch(r"step (\d+)/600000  checkpoint saved: ckpt-\1", saved)[1]
    assert re.fullmatch(r"  0% \|.*\| step \d+/600000  loss .* examples/s  time left \w+", bar)
    assert told == (
        f"interrupted: step {step} is saved. The same command continues the run in "
        f"'{tmp_path}/run'."
    )
    assert cursor == ""
