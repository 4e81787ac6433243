"""Ends programs cleanly: on an error or a signal they print one line, and clean up.

TensorFlow is not needed.
"""

import contextlib
import os
import re
import signal
import sys
import threading

from etcmodel import extras
from etcmodel.shown_values import shortened

_ASSERTION = re.compile(r"assertion failed: \[(.*)\]")
# Where in a graph an error arose: no help to anyone who did not write it.
_GRAPH_LINE = re.compile(
    r"Graph execution error|Detected at node|File \"|\d+ (root|derived) error|\(\d+\) .*:$"
    r"|<stack traces unavailable>"
)
_OPERATION = re.compile(r"\{\{[^}]*\}\} ?|\[\[\{\{.*?\}\}\]\]|\[Op:\w+\].*")
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(KeyboardInterrupt):
    """The program is asked to end: Ctrl-C or SIGTERM.

    Args:
        message: str. Further information, such as what was saved.
        signum: int. The signal.
    """

    def __init__(self, message="", signum=signal.SIGINT):
        super().__init__(message)
        self.signum = signum


@contextlib.contextmanager
def ends_in_one_line(name="error"):
    """Reports what ends this block early in one line: an explanatory error, or a signal.

    Args:
        name: str. The beginning of an error's line.
    Raises:
        SystemExit: with 1 for a ValueError, an ArithmeticError, lack of memory, a package that is
            not installed, or an error of the system or of TensorFlow; with the shells' exit code
            for a program ended by a signal.
    """
    try:
        with on_signals(_raise_once()):
            yield
    except KeyboardInterrupt as error:
        print(f"interrupted: {error}" if str(error) else "interrupted", file=sys.stderr)
        sys.exit(128 + getattr(error, "signum", signal.SIGINT))
    except Exception as error:
        if not _says_enough(error):
            raise
        print(f"{name}: {shortened(error_line(error))}", file=sys.stderr)
        sys.exit(1)


def error_line(error):
    """Returns an exception's message: str.

    For an assertion that failed within a graph or a data set it is the assertion's message, without
    the lines that TensorFlow writes around it.

    >>> from etcmodel import training
    >>> training.error_line(ValueError("The file is empty."))
    'The file is empty.'
    """
    if isinstance(error, MemoryError):
        return f"there is not enough memory. {error}".strip()
    message = str(getattr(error, "message", error))
    if match := _ASSERTION.search(message):
        return match[1].replace("] [", " ")
    if _is_of_tensorflow(error):
        return _without_graph(message)
    return message


def _says_enough(error):
    kinds = (ValueError, OSError, ArithmeticError, MemoryError, extras.MissingExtraError)
    return isinstance(error, kinds) or _is_of_tensorflow(error)


def _is_of_tensorflow(error):
    return any(kind.__name__ == "OpError" for kind in type(error).__mro__)


def _without_graph(message):
    """The line of TensorFlow's message with the cause, without names of operations."""
    lines = [line.strip() for line in message.splitlines()]
    told = [line for line in lines if line and not _GRAPH_LINE.match(line)]
    return _OPERATION.sub("", told[0]) if told else message


def _raise_once():
    """A handler that lets cleanup finish."""
    is_first = True

    def handle(signum, frame):
        nonlocal is_first
        if is_first:
            is_first = False
            raise Interrupted(signum=signum)

    return handle


@contextlib.contextmanager
def on_signals(handle):
    """Calls `handle` (function of signal and frame) for either signal within this block.

    In threads other than the main one, which get no signals, nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = {signum: signal.signal(signum, handle) for signum in _SIGNALS}
    try:
        yield
    finally:
        for signum, handler in previous.items():
            signal.signal(signum, signal.SIG_DFL if handler is None else handler)


def end_at_once_on_signals():
    """Ends this process at either signal, with one line; for a program that has not yet begun.

    Imports then take seconds: there is nothing to clean up, and an exception would arise inside
    others' code. Signals that the process ignores stay ignored.
    """
    stderr = os.dup(2)  # While TensorFlow is imported, the descriptor 2 may be put aside.

    def end(signum, frame):
        with contextlib.suppress(Exception):
            sys.stdout.flush()
        os.write(stderr, b"interrupted\n")
        os._exit(128 + signum)

    if threading.current_thread() is threading.main_thread():
        for signum in _SIGNALS:
            if signal.getsignal(signum) in (signal.SIG_DFL, signal.default_int_handler):
                signal.signal(signum, end)
