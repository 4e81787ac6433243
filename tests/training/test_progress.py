"""The progress line and the metrics files."""

import io

import pytest
import tensorflow as tf

from etcmodel.training import progress as progress_lib

METRICS = {"loss": 1.2341, "learning_rate": 4.5e-5, "examples_per_second": 88.13}


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0s"), (59.4, "59s"), (92, "1m32s"), (11220, "3h07m"), (190800, "2d05h")],
)
def test_durations_show_two_units(seconds, text):
    assert progress_lib.format_duration(seconds) == text


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


def show(stream, steps):
    global_step = tf.Variable(0)
    progress = progress_lib.ProgressLine(
        global_step=global_step, num_steps=30, batch_size=4, stream=stream
    )
    for step in steps:
        global_step.assign(step)
        progress(METRICS)
    return stream.getvalue()


def test_a_terminal_shows_one_line_that_changes():
    text = show(Terminal(), [10, 20, 30])
    assert text.count("\r") == 3 and text.count("\n") == 1


def test_a_file_gets_the_first_line_the_last_and_few_between():
    lines = show(io.StringIO(), [10, 20, 30]).splitlines()
    assert [line.split("  ")[0] for line in lines] == ["step 10/30", "step 30/30"]
    assert lines[0].endswith("time left 1s")


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
