"""Progress reports during training: a bar or lines for people, JSON lines for programs."""

import collections
import functools
import json
import math
import statistics
import sys
import time

import tensorflow as tf

from etcmodel import atomic_files, bounded_json, progress_bar
from etcmodel.durations import format_duration
from etcmodel.pictures import metric_names

_SECONDS_BETWEEN_LINES = 5.0
_NUM_RECENT = (
    15  # The median of these reports gives the remaining time, so one slow step does not matter.
)


def format_progress(
    *, step, num_steps, loss, learning_rate=None, examples_per_second=None, seconds_left=None
):
    """The progress of a training run as text without a line end; None: not known, or not shown."""
    line = f"step {step}/{num_steps}  loss {loss:.4g}"
    if learning_rate is not None:
        line += f"  lr {learning_rate:.2g}"
    if examples_per_second is not None:
        line += f"  {examples_per_second:.3g} examples/s"
    if seconds_left is not None:
        line += f"  time left {format_duration(seconds_left)}"
    return line


def format_metrics(metrics):
    """A table of metrics for people: lines of names and rounded values.

    Args:
        metrics: dict of floats.
    """
    values = {_in_words(name): _rounded(name, value) for name, value in metrics.items()}
    name_width = max(map(len, values), default=0)
    value_width = max(map(len, values.values()), default=0)
    return "\n".join(
        f"{name:<{name_width}}  {value:>{value_width}}" for name, value in values.items()
    )


def _in_words(name):
    """The name; in words if it is a path with letters for kinds (`counts/N_A`)."""
    return metric_names.describe(name).name if "/" in name else name


def _rounded(name, value):
    is_whole = math.isfinite(value) and float(value).is_integer()
    is_count = is_whole and (abs(value) > 1 or name.startswith("counts/"))
    return f"{value:.0f}" if is_count else f"{value:.4f}"


def show_metrics(metrics):
    """Prints metrics: for people a table, for programs one line of exact JSON.

    The JSON goes to standard output and the table to standard error. If standard output is a
    terminal, only the table is printed, there.

    Args:
        metrics: dict of floats.

    >>> from etcmodel import training
    >>> training.show_metrics({"accuracy": 0.5})
    {"accuracy": 0.5}
    """
    if sys.stdout.isatty():
        print(format_metrics(metrics))
    else:
        print(format_metrics(metrics), file=sys.stderr, flush=True)
        print(json.dumps(metrics))


class ProgressLine:
    """Shows the progress of training; an `orbit.Action`.

    On a terminal, it is a bar in the last line; elsewhere, a line is written every few seconds.
    During a long loop of steps, it also reports progress at regular times. The remaining time is
    that of the remaining steps, by the median of recent ones. It does not include evaluations, nor
    the tracing before the first step.

    Args:
        global_step: variable. Steps done.
        num_steps: int. Steps of the whole run.
        batch_size: int. Examples per step.
        stream: text file. None: standard error.
    """

    def __init__(self, *, global_step, num_steps, batch_size, stream=None):
        self._global_step, self._num_steps = global_step, num_steps
        self._batch_size, self._stream = batch_size, stream or sys.stderr
        self._bar = None
        if progress_bar.is_terminal(self._stream):
            self._bar = progress_bar.Bar(num_steps, self._stream)
        self._first_step = None  # The first step of this process.
        self._last_time = -_SECONDS_BETWEEN_LINES
        self._recent_rates = collections.deque(maxlen=_NUM_RECENT)

    def begin(self):
        """Explains the time before the first step."""
        self._first_step = self._step
        self.tell("tracing the training step, once")

    def during_steps(self):
        """A context that lasts as long as a loop of steps, in which lines are written by time."""
        return progress_bar.told_by_time(self._tell_still)

    def _tell_still(self, time_passed):
        step = self._step
        doing = "tracing the training step" if step == self._first_step else "training"
        line = f"step {step}/{self._num_steps}  still {doing}, {time_passed}"
        if self._bar:
            self._bar.show(step, line)
        else:
            progress_bar.write_line(self._stream, line)

    def __call__(self, metrics):
        step, rate = self._step, metrics.get("examples_per_second")
        if rate is not None:
            self._recent_rates.append(rate)
        seconds_left = None
        if self._recent_rates:
            examples_left = (self._num_steps - step) * self._batch_size
            seconds_left = examples_left / statistics.median(self._recent_rates)
        show = functools.partial(
            format_progress,
            step=step,
            num_steps=self._num_steps,
            loss=metrics.get("loss", math.nan),  # Missing if no step had a finite loss.
            examples_per_second=rate,
            seconds_left=seconds_left,
        )
        if self._bar:  # In a narrow terminal it leaves no room for more.
            self._bar.show(step, show())
        else:
            line = show(learning_rate=metrics["learning_rate"])
            self._write_sometimes(line, is_last=step >= self._num_steps)

    def tell(self, text):
        """Writes a separate line, such as that a checkpoint was saved."""
        line = f"step {self._step}/{self._num_steps}  {text}"
        if self._bar:
            self._bar.write(line)
        else:
            progress_bar.write_line(self._stream, line)

    def close(self):
        """Ends the line of the bar, so that the next output starts on a new line."""
        if self._bar:
            self._bar.close()

    @property
    def _step(self):
        return int(self._global_step.numpy())

    def _write_sometimes(self, line, is_last):
        if is_last or time.monotonic() - self._last_time >= _SECONDS_BETWEEN_LINES:
            progress_bar.write_line(self._stream, line)
            self._last_time = time.monotonic()


class MetricsLog:
    """A file of JSON lines, {"step": int, name: float, ...}, in the order of steps.

    Args:
        path: str. The file, which is created with the first line.
    """

    def __init__(self, path):
        self._path = path

    def append(self, step, metrics):
        """Adds the metrics (dict of floats) of a step."""
        line = json.dumps({"step": step, **metrics}) + "\n"
        text = self._text()
        with tf.io.gfile.GFile(self._path, "a") as file:
            # A line left incomplete by a killed process must not be joined with this one.
            file.write(line if text.endswith("\n") or not text else "\n" + line)

    def append_new(self, step, metrics):
        """Adds the metrics of a step, unless this or another process has added that step."""
        if all(line["step"] != step for line in self.read()):
            self.append(step, metrics)

    def read(self):
        """All lines as dicts, except lines that a killed process left incomplete.

        Raises:
            ValueError: naming file and line, if a complete line does not hold metrics of a step.
        """
        numbered = enumerate(map(_parsed, self._text().split("\n")), 1)
        lines = {number: line for number, line in numbered if line is not None}
        for number, line in lines.items():
            if not (isinstance(line, dict) and type(line.get("step")) is int):
                raise ValueError(
                    f"{self._path}: line {number} is no JSON object with an integer `step`: the "
                    "file is not of a run. Restore it, or move it away."
                )
        return list(lines.values())

    def forget_after(self, step):
        """Removes the lines of later steps, which a resumed run will repeat."""
        text = self._text()
        kept = [line for line in self.read() if line["step"] <= step]
        kept_text = "".join(json.dumps(line) + "\n" for line in kept)
        if (
            kept_text != text
        ):  # Otherwise the file is not written: other processes may be adding a line.
            atomic_files.write_text(self._path, [kept_text])

    def _text(self):
        if not tf.io.gfile.exists(self._path):
            return ""
        with tf.io.gfile.GFile(self._path, "rb") as file:
            return file.read().decode("utf-8", "replace")


def _parsed(line):
    """The value of a complete line, else None."""
    try:
        return bounded_json.loads(line)
    except ValueError:
        return None
