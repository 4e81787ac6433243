"""Has a program started by the `server`, which has TensorFlow imported already.

    client.py SOCKET WORD ARGUMENTS…

is `WORD ARGUMENTS…`, where WORD starts Python: it has the same descriptors, folder, environment,
signals, output and exit code, and is there seconds sooner. What the server cannot do alike, such as
scripts and another environment for the import of TensorFlow, Python itself does.
"""

import contextlib
import json
import os
import resource
import signal
import socket
import sys

_PASSED_ON = (
    *(signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT),
    *(signal.SIGUSR1, signal.SIGUSR2, signal.SIGCONT),
)


class Program:
    """A program that the server has started.

    Attributes:
        pid: int.
    """

    def __init__(self, pid, connection, lines):
        self.pid, self._connection, self._lines = pid, connection, lines

    def wait(self, seconds=None):
        """(exit code, or minus the signal that ended it; bytes of memory at its peak).

        Raises:
            TimeoutError: it is still running after so many seconds; it is ended.
        """
        self._connection.settimeout(seconds)
        with self._connection, self._lines:
            line = self._lines.readline()
        # Nothing if the server has ended, and all programs with it.
        answer = json.loads(line) if line else {"status": -signal.SIGKILL, "memory": 0}
        return answer["status"], answer["memory"]


def start(address, arguments, *, python, folder, environment, descriptors=(0, 1, 2)):
    """Has a program started.

    Args:
        address: str. Path of the server's socket.
        arguments: list of str. Those of Python, such as ["-m", "etcmodel", "doctor"].
        python: str. What the program starts others by, its `sys.executable`.
        folder: path. Where it runs.
        environment: dict of str to str.
        descriptors: (int, int, int). Its standard input, output and error.
    Returns:
        `Program`, None if Python itself must start it.
    """
    mask = os.umask(0)
    os.umask(mask)
    request = {
        "arguments": list(arguments),
        "python": python,
        "folder": str(folder),
        "environment": dict(environment),
        "ignored": [x for x in _PASSED_ON if signal.getsignal(x) == signal.SIG_IGN],
        "mask": mask,
    }
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(address)
    socket.send_fds(connection, [b"\n"], descriptors)
    connection.sendall(json.dumps(request).encode() + b"\n")
    lines = connection.makefile("rb")
    pid = json.loads(lines.readline())["pid"]
    return Program(pid, connection, lines) if pid else None


def main(address, word, *arguments):
    previous = signal.pthread_sigmask(signal.SIG_BLOCK, _PASSED_ON)
    environment, folder = dict(os.environ), os.getcwd()
    program = start(address, arguments, python=word, folder=folder, environment=environment)
    if program is None:
        signal.pthread_sigmask(signal.SIG_SETMASK, previous)
        os.execv(sys.executable, [sys.executable, *arguments])

    def pass_on(signum, frame):
        del frame
        with contextlib.suppress(ProcessLookupError):  # It has just ended.
            os.kill(program.pid, signum)

    for signum in _PASSED_ON:
        if signal.getsignal(signum) != signal.SIG_IGN:
            signal.signal(signum, pass_on)
    signal.pthread_sigmask(signal.SIG_SETMASK, previous)
    status, _ = program.wait()
    if status >= 0:
        os._exit(status)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if status != -signal.SIGKILL:
        signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)


if __name__ == "__main__":
    main(*sys.argv[1:])
