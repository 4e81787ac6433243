"""Python as a command whose programs are there sooner: one server for each process of tests."""

import atexit
import os
import pathlib
import shlex
import socket
import subprocess
import sys
import tempfile

_HERE = pathlib.Path(__file__).parent
_servers = []  # At most one, and its folder; it ends when this process does, also if killed.


def _folder():
    """The folder with the server's socket and the commands."""
    if not _servers:
        folder = pathlib.Path(tempfile.mkdtemp(prefix="warm"))
        ask = [sys.executable, "-IS", _HERE / "client.py", folder / "socket", folder / "python"]
        for name, words in {
            "python": ask,
            "python3": [folder / "python"],
            "etcmodel": [folder / "python", "-m", "etcmodel"],
        }.items():
            line = shlex.join(map(str, words))
            (folder / name).write_text(f'#!/bin/sh\nexec {line} "$@"\n')
            (folder / name).chmod(0o755)
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(folder / "socket"))
            listener.listen(64)
            number = listener.fileno()
            server = subprocess.Popen(
                [sys.executable, _HERE / "server.py", str(number)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                pass_fds=[number],
            )
        atexit.register(server.communicate, timeout=60)
        _servers.append((server, folder))
    return _servers[0][1]


def python():
    """A command that stands for `sys.executable`, whose `-m` begins seconds sooner: str.

    Programs are forked from a process that has TensorFlow imported, see `server`, which is started
    when it is first asked for. It is not for tests of how programs start: of imports, messages of
    TensorFlow, signals by then; nor for programs that get SIGKILL or whose process is looked at,
    its group and limits: the command's process is another one than the program's.
    """
    return str(_folder() / "python")


def address():
    """The server's socket, for `client.start`: str."""
    return str(_folder() / "socket")


def environment(**variables):
    """That of commands and programs that find `python`, `python3` and `etcmodel` so: dict.

    TensorFlow's messages are as users have them: programs of the package keep them back.
    """
    paths = [str(_folder()), os.path.dirname(sys.executable), os.environ["PATH"]]
    return {**os.environ, "PATH": os.pathsep.join(paths), **variables}
