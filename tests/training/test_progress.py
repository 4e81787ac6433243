"""The progress line and the metrics files."""

import io
import json
import math
import sys

import tensorflow as tf

from etcmodel.training import progress as progress_lib

METRICS = {"loss": 1.2341, "learning_rate": 4.5e-5, "examples_per_second": 88.13}


# Of a loop of one step, which was traced.
SLOW_FIRST_METRICS = {"loss": 1.2341, "learning_rate": 4.5e-5}


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_reads_well():
    line = progress_lib.format_progress(
        step=120,
        num_steps=1000,
        loss=1.2341,
        learning_rate=4.5e-5,
        examples_per_second=88.13,
        seconds_left=92,
    )
    assert line == "step 120/1000  loss 1.234  lr 4.5e-05  88.1 examples/s  time left 1m32s"


def test_what_is_not_known_is_not_shown():
    line = progress_lib.format_progress(step=1, num_steps=9, loss=1.0, learning_rate=0.1)
    assert line == "step 1/9  loss 1  lr 0.1"


def show(stream, steps, rates=None):
    global_step = tf.Variable(0)
    progress = progress_lib.ProgressLine(
        global_step=global_step, num_steps=30, batch_size=4, stream=stream
    )
    progress.begin()
    for step, rate in zip(steps, rates or [4.0] * len(steps), strict=True):
        global_step.assign(step)
        progress({**METRICS, "examples_per_second": rate} if rate else SLOW_FIRST_METRICS)
    return stream.getvalue()


def test_a_file_gets_the_first_line_the_last_and_few_between(monkeypatch):
    monkeypatch.setattr(progress_lib.time, "monotonic", lambda: 1000.0)
    lines = show(io.StringIO(), [10, 20, 30]).splitlines()
    starts = [line.split("  ")[0] for line in lines]
    assert starts == ["step 0/30", "step 10/30", "step 30/30"]
    assert lines[0] == "step 0/30  tracing the training step, once"
    assert lines[1].endswith("time left 20s")  # 20 steps of 4 examples, 4 examples a second.


def times_left(rates):
    bars = show(Terminal(), range(1, 1 + len(rates)), rates).split("\r")[1:]
    return [bar.partition("time left ")[2].strip() for bar in bars]


def test_the_time_left_is_that_of_the_median_step():
    # While only the step that was traced is done, nothing is known.
    assert times_left([None, 4.0]) == ["", "28s"]
    # A single slow report, as beside a checkpoint, changes little.
    assert times_left([4.0, 4.0, 0.01, 4.0]) == ["29s", "28s", "27s", "26s"]


def test_the_time_left_follows_a_lasting_change():
    assert times_left([4.0] * 5 + [1.0] * 15)[-1] == "40s"


METRICS_OF_AN_EVALUATION = {"em": 1.0, "long_f1": 0.123456789012345, "count": 500.0, "loss": 123.45}


def test_a_table_of_metrics_is_readable():
    assert progress_lib.format_metrics(METRICS_OF_AN_EVALUATION).splitlines() == [
        "em         1.0000",
        "long_f1    0.1235",
        "count         500",
        "loss     123.4500",
    ]
    # Letters that stand for kinds of answers are told in words, and one answer is 1.
    counts = {"counts/N_A": 1.0, "percentages/N_A": 0.25, "loss/mlm": 1.0}
    assert progress_lib.format_metrics(counts).splitlines() == [
        "Number of answers, no answered with other answers       1",
        "Share of answers, no answered with other answers   0.2500",
        "Loss, masked words                                 1.0000",
    ]
    assert progress_lib.format_metrics({"a": math.nan}) == "a  nan"
    assert progress_lib.format_metrics({}) == ""


def test_programs_read_exact_metrics_and_people_the_table(capsys):
    progress_lib.show_metrics(METRICS_OF_AN_EVALUATION)
    shown = capsys.readouterr()
    assert json.loads(shown.out) == METRICS_OF_AN_EVALUATION
    assert shown.err == progress_lib.format_metrics(METRICS_OF_AN_EVALUATION) + "\n"


def test_a_terminal_shows_the_table_alone(monkeypatch, capsys):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    progress_lib.show_metrics(METRICS_OF_AN_EVALUATION)
    assert terminal.getvalue() == progress_lib.format_metrics(METRICS_OF_AN_EVALUATION) + "\n"
    assert not capsys.readouterr().err


def test_metrics_log_forgets_what_will_be_repeated(tmp_path):
    path = tmp_path / "metrics.jsonl"
    log = progress_lib.MetricsLog(str(path))
    assert log.read() == []
    log.forget_after(0)
    for step in (2, 4, 6):
        log.append(step, {"loss": step / 2})
    with path.open("a") as file:
        file.write('{"step": 8, "lo')  # The process was killed here.
    log.forget_after(4)
    assert log.read() == [{"step": 2, "loss": 1.0}, {"step": 4, "loss": 2.0}]
