"""Whole programs, each forked from a process that has TensorFlow imported."""

import os
import pathlib
import select
import signal
import sys

import pytest

from tests.warm import client
from tests.warm import python as warm

SECONDS = 600  # Other programs may take most of the machine.
ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture(scope="module")
def server():
    """A function that runs a program in a folder, and sends it signals.

    It takes the program's module, a dict of its flags, the folder, and perhaps signals, a list of
    (seconds, name), each sent so many seconds after the one before. It returns a dict: "status",
    the exit code or minus the signal that ended it, "memory" in bytes at the peak, "out", "err",
    and "sent", the number of signals that were sent before it ended.
    """
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(ROOT)}

    def run(module, flags, folder, signals=()):
        given = [f"--{name}={value}" for name, value in flags.items()]
        out, err = (pathlib.Path(folder, name) for name in (".out", ".err"))
        with open(os.devnull) as nothing, open(out, "w") as output, open(err, "w") as errors:
            program = client.start(
                warm.address(),
                ["-m", module, *given],
                python=sys.executable,
                folder=folder,
                environment=environment,
                descriptors=[file.fileno() for file in (nothing, output, errors)],
            )
        assert program, "the server refused to start it"
        sent = _send(program.pid, signals)
        status, memory = program.wait(SECONDS)
        texts = {"out": out.read_text("utf-8", "replace"), "err": err.read_text("utf-8", "replace")}
        return {"status": status, "memory": memory, "sent": sent, **texts}

    return run


def _send(pid, signals):
    """Sends them unless the process has ended before; returns how many were sent."""
    process = os.pidfd_open(pid)
    try:
        for number, (seconds, name) in enumerate(signals):
            if select.select([process], [], [], seconds)[0]:
                return number
            signal.pidfd_send_signal(process, getattr(signal, name))
        return len(signals)
    finally:
        os.close(process)
