"""A terminal: a pseudo-terminal of the system, and what one would see on it."""

import contextlib
import fcntl
import os
import pty
import re
import struct
import sys
import termios
import threading

_COLUMNS = 100
_PART = re.compile(r"\x1b\[([A-Z])|([\r\n])|([^\x1b\r\n]+)")


@contextlib.contextmanager
def opened():
    """Yields a file descriptor that is a terminal, and the list of what was written there."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, _COLUMNS, 0, 0))
    written = []

    def read():
        with contextlib.suppress(OSError):  # The last one to write there is gone.
            while data := os.read(ours, 4096):
                written.append(data)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        yield theirs, written
    finally:
        os.close(theirs)
        reader.join()
        os.close(ours)


def showing(function, monkeypatch):
    """What is written to a terminal that is standard error during a call; its error, if any."""
    with opened() as (number, written):
        error = None
        with os.fdopen(os.dup(number), "w") as stream, monkeypatch.context() as patch:
            patch.setattr(sys, "stderr", stream)
            try:
                function()
            except ArithmeticError as raised:
                error = raised
    return written, error


def screen(written):
    """The lines that one sees in the end; the last is that of the cursor.

    Args:
        written: list of bytes.
    """
    lines, row, column = [""], 0, 0
    for code, control, text in _PART.findall(b"".join(written).decode()):
        if code == "A":
            row -= 1
        elif code:
            raise ValueError(f"an unknown code: {code}")
        elif control == "\r":
            column = 0
        elif control == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
        else:
            line = lines[row].ljust(column)
            lines[row] = line[:column] + text + line[column + len(text) :]
            column += len(text)
    return [line.rstrip() for line in lines]
