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

__all__ = ["Bar", "counted", "is_open", "is_terminal", "told_by_time", "write_line"]

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
    """Calls a function every twenty seconds while the block lasts, in a thread of its own.

    Args:
        tell: function of the time since the block began, as people read it.
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
    """A bar in the last line of a terminal, below the lines that are written meanwhile.

    Args:
        total: int. What is a whole bar.
        stream: text file, a terminal.
    """

    def __init__(self, total, stream):
        self._total, self._stream, self._bar = total, stream, None

    def show(self, done, text):
        """Draws the bar, at the first call below what is there.

        Args:
            done: int. How much of `total`.
            text: str. To be beside it.
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
        """Leaves the bar as it is, and ends its line."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None


@contextlib.contextmanager
def counted(what, *, total=None, unit="examples", stream=None):
    """Shows how many have been done of something.

    On a terminal it is a line, which is gone at the end; what is logged meanwhile stands above it.
    Elsewhere a line is written every twenty seconds.

    Args:
        what: str. What is done, such as "evaluating".
        total: int. How many there are. None: not known.
        unit: str. What is counted.
        stream: text file. None: standard error.
    Yields:
        Function of an int, that so many more are done.
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
    """`counted` elsewhere than on a terminal."""
    done, of_all = 0, "" if total is None else f" of {total}"

    def add(number):
        nonlocal done
        done += number

    with told_by_time(lambda t: write_line(stream, f"still {what}: {done}{of_all} {unit}, {t}")):
        yield add


@contextlib.contextmanager
def _clear_of_logs(bar):
    """Clears a bar, until it is drawn anew, before a line is logged, which would go on in it."""

    def clear(record):
        del record
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
