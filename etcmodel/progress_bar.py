"""Progress by time: bars on terminals, lines elsewhere."""

import contextlib
import logging
import sys
import threading
import time

from etcmodel import extras
from etcmodel.durations import format_duration

with extras.needed("train"):
    import tqdm

_SECONDS_BETWEEN_COUNTS = 0.1
_SECONDS_OF_SILENCE = 20.0
_FORMAT = "{percentage:3.0f}% |{bar}| {desc}"
_FORMAT_WITHOUT_TOTAL = "{desc} {n_fmt}{unit}  {rate_fmt}"
_FORMAT_WITH_TOTAL = "{desc} |{bar}| {n_fmt}/{total_fmt}{unit}  {rate_fmt}  time left {remaining}"


def is_open(stream):
    """Whether a text file can be written: standard error is None or closed in some programs."""
    return stream is not None and not getattr(stream, "closed", False)


def is_terminal(stream):
    """Whether a text file, which may be None or closed, is a terminal."""
    return is_open(stream) and stream.isatty()


def write_line(stream, line):
    """Writes a line to a text file at once, if it is open."""
    if is_open(stream):
        stream.write(line + "\n")
        stream.flush()


@contextlib.contextmanager
def told_by_time(tell):
    """Calls a function every twenty seconds during the block, in a separate thread.

    Args:
        tell: function that takes the time since the start of the block, in readable form.
    """
    is_done, start = threading.Event(), time.monotonic()

    def run():
        while not is_done.wait(_SECONDS_OF_SILENCE):
            tell(format_duration(time.monotonic() - start))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_done.set()
        thread.join()


class _Tqdm(tqdm.tqdm):
    monitor_interval = 0  # No thread that redraws bars.


class Bar:
    """A bar in the last line of a terminal, below lines that are written in the meantime.

    Args:
        total: int. The value of a full bar.
        stream: text file, a terminal.
    """

    def __init__(self, total, stream):
        self._total, self._stream, self._bar = total, stream, None

    def show(self, done, text):
        """Draws the bar; the first call draws it below the existing output.

        Args:
            done: int. The value reached, out of `total`.
            text: str. Text beside the bar.
        """
        if self._bar is None:
            self._bar = _Tqdm(
                desc=text,
                total=self._total,
                initial=done,
                file=self._stream,
                bar_format=_FORMAT,
                dynamic_ncols=True,
            )
            return
        self._bar.n = done
        self._bar.set_description_str(text)

    def write(self, line):
        """Writes a line above the bar."""
        if self._bar is not None:
            self._bar.clear()
        self._stream.write(line + "\n")
        self._stream.flush()
        if self._bar is not None:
            self._bar.refresh()

    def close(self):
        """Keeps the bar on the screen and ends its line."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None


@contextlib.contextmanager
def counted(what, *, total=None, unit="examples", stream=None):
    """Shows how many items are done.

    On a terminal, it is a line that disappears at the end; log messages appear above it. Elsewhere,
    a line is written every twenty seconds.

    Args:
        what: str. The activity, such as "evaluating".
        total: int. Total number of items. None: not known.
        unit: str. The name of the items.
        stream: text file. None: standard error.
    Yields:
        Function that takes the number of further items done.
    """
    stream = stream or sys.stderr
    if not is_terminal(stream):
        with _told(what, total, unit, stream) as add:
            yield add
        return
    bar_format = _FORMAT_WITHOUT_TOTAL if total is None else _FORMAT_WITH_TOTAL
    bar = _Tqdm(
        desc=what,
        total=total,
        unit=f" {unit}",
        mininterval=_SECONDS_BETWEEN_COUNTS,
        file=stream,
        bar_format=bar_format,
        dynamic_ncols=True,
        leave=False,
    )
    with bar, _clear_of_logs(bar):
        yield bar.update


@contextlib.contextmanager
def _told(what, total, unit, stream):
    """`counted` where there is no terminal."""
    done, of_all = 0, "" if total is None else f" of {total}"

    def add(number):
        nonlocal done
        done += number

    with told_by_time(lambda t: write_line(stream, f"still {what}: {done}{of_all} {unit}, {t}")):
        yield add


@contextlib.contextmanager
def _clear_of_logs(bar):
    """Clears the bar before a line is logged, until it is drawn again, to keep them apart."""

    def clear(record):
        bar.clear()
        return True

    handlers = list(logging.getLogger().handlers)
    for handler in handlers:
        handler.addFilter(clear)
    try:
        yield
    finally:
        for handler in handlers:
            handler.removeFilter(clear)
