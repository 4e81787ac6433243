"""Runs commands of `etcmodel` one after the other, as a user types them."""

import shlex
import subprocess
import sys

from etcmodel import program_end

__all__ = ["line", "run"]


def line(*words, **flags):
    """A command as it is typed: str."""
    return shlex.join(["etcmodel", *words, *_written(flags)])


def run(*words, others=(), **flags):
    """Shows a command and runs it; a signal is for the command, which saves and ends.

    Args:
        *words: str, such as "train", "classification".
        others: sequence of str. Further flags, which win.
        **flags: by their names without dashes; None is left out.
    Raises:
        SystemExit: with the status of a command that fails, which tells why itself.
        program_end.Interrupted: if a signal ended it.
    """
    arguments = [*words, *_written(flags), *others]
    print(f"\n$ {shlex.join(['etcmodel', *arguments])}", flush=True)
    received = []
    # In a session of its own it gets Ctrl-C once, from here: a second one would not let it save.
    process = subprocess.Popen(
        [sys.executable, "-m", "etcmodel", *arguments], start_new_session=True
    )

    def pass_on(signum, frame):
        del frame
        received.append(signum)
        process.send_signal(signum)

    with program_end.on_signals(pass_on):
        status = process.wait()
    if received:
        raise program_end.Interrupted("The same command continues", received[0])
    if status:
        sys.exit(status)


def _written(flags):
    return [f"--{name}={_text(value)}" for name, value in flags.items() if value is not None]


def _text(value):
    return str(value).lower() if isinstance(value, bool) else str(value)
