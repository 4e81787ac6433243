"""What a run tells while it goes: a line for people, JSON lines for programs."""

import json
import math
import sys
import time

import tensorflow as tf

from etcmodel import atomic_files

__all__ = ["MetricsLog", "ProgressLine", "format_duration", "format_progress"]

_SECONDS_BETWEEN_LINES = 5.0


def format_duration(seconds):
    """A time for people in its two largest units, such as 42s, 1m32s, 3h07m or 2d05h."""
    seconds = round(seconds)
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if days:
        return f"{days}d{hours % 24:02}h"
    if hours:
        return f"{hours}h{minutes % 60:02}m"
    if minutes:
        return f"{minutes}m{seconds % 60:02}s"
    return f"{seconds}s"


def format_progress(*, step, num_steps, loss, learning_rate, examples_per_second, seconds_left):
    """One line on where a training run stands, without a line end."""
    return (
        f"step {step}/{num_steps}  loss {loss:.4g}  lr {learning_rate:.2g}  "
        f"{examples_per_second:.3g} examples/s  time left {format_duration(seconds_left)}"
    )


class ProgressLine:
    """Shows the progress of training; an `orbit.Action`.

    On a terminal one line is rewritten; elsewhere a line is written every few seconds.

    Args:
        global_step: variable. Steps done.
        num_steps: int. Steps of the whole run.
        batch_size: int. Examples of one step.
        stream: text file. None: standard error.
    """

    def __init__(self, *, global_step, num_steps, batch_size, stream=None):
        self._global_step, self._num_steps = global_step, num_steps
        self._batch_size, self._stream = batch_size, stream or sys.stderr
        self._last_time = -_SECONDS_BETWEEN_LINES

    def __call__(self, metrics):
        step = int(self._global_step.numpy())
        rate = metrics["examples_per_second"]
        line = format_progress(
            step=step,
            num_steps=self._num_steps,
            loss=metrics.get("loss", math.nan),  # Left out where no step's was finite.
            learning_rate=metrics["learning_rate"],
            examples_per_second=rate,
            seconds_left=(self._num_steps - step) * self._batch_size / rate,
        )
        self._write(line, is_last=step >= self._num_steps)

    def _write(self, line, is_last):
        if self._stream.isatty():
            # "\x1b[K" clears what a longer line before it has left.
            self._stream.write(f"\r{line}\x1b[K" + ("\n" if is_last else ""))
        elif is_last or time.monotonic() - self._last_time >= _SECONDS_BETWEEN_LINES:
            self._stream.write(line + "\n")
            self._last_time = time.monotonic()
        self._stream.flush()


class MetricsLog:
    """A file of JSON lines, {"step": int, name: float, ...}, in the order of steps.

    Args:
        path: str. The file; made when the first line is written.
    """

    def __init__(self, path):
        self._path = path

    def append(self, step, metrics):
        """Adds the metrics (dict of floats) of a step."""
        line = json.dumps({"step": step, **metrics})
        with tf.io.gfile.GFile(self._path, "a") as file:
            file.write(line + "\n")

    def read(self):
        """All lines as dicts; one that a killed process left half written is not counted."""
        if not tf.io.gfile.exists(self._path):
            return []
        with tf.io.gfile.GFile(self._path) as file:
            lines = file.read().split("\n")[
                :-1
            ]  # Behind the last line end: nothing, or half a line.
        return [json.loads(line) for line in lines]

    def forget_after(self, step):
        """Drops the lines of later steps, which a resumed run is going to repeat."""
        kept = [line for line in self.read() if line["step"] <= step]
        if tf.io.gfile.exists(self._path):
            atomic_files.write_text(self._path, (json.dumps(line) + "\n" for line in kept))
