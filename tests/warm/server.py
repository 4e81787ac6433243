"""Starts programs, each in a process of its own that has TensorFlow imported already.

    server.py DESCRIPTOR

A program that is forked here is like one that Python starts: nothing was computed before the fork,
no module that was imported is the program's, and it was to have the environment in which all was
imported; else it is refused. The descriptor is that of a socket that listens. The server ends when
its standard input does.
"""

import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import shutil
import signal
import socket
import sys
import types

# Imported before the first fork; none of them computes anything.
_TASKS = (
    *("hotpotqa", "nq", "openkp", "wikihop", "triviaqa"),
    *("classification", "majority_tagging", "numerical_reasoning", "summarization"),
    *("squad", "token_classification", "coreference"),
)
WARM = (
    *(f"etcmodel.tasks.{task}.{part}" for task in _TASKS for part in ("task", "predict")),
    *(f"etcmodel.tasks.{task}.features" for task in ("hotpotqa", "nq", "openkp", "wikihop")),
    *("etcmodel.finetuning.program", "etcmodel.pretrain.task", "etcmodel.pretrain.features"),
    *("etcmodel.training.run", "etcmodel.training.evaluator", "etcmodel.checkpoints.conversion"),
)
# Read when they are used. What any other variable tells may be read by an import.
READ_LATER = {
    *("PATH", "PWD", "OLDPWD", "SHLVL", "_", "PYTHONPATH", "PYTEST_CURRENT_TEST"),
    *("CUDA_VISIBLE_DEVICES", "COLUMNS", "LINES", "TF_CONFIG"),
}
# What the package sets where nobody asks for TensorFlow's messages.
LEVEL = "TF_CPP_MIN_LOG_LEVEL"


class Server:
    """Forks programs and tells how they end.

    Args:
        listener: socket that listens.
        environment: dict. That in which all was imported.
    """

    def __init__(self, listener, environment):
        self._listener, self._environment = listener, environment
        self._running = {}  # (pid, socket) by a descriptor of the process.
        self._asking = {}  # The same descriptor by the socket's.

    def serve(self):
        """The request, in each forked process. This one ends here."""
        while True:
            waiting = [0, self._listener, *self._running, *self._asking]
            for ready in select.select(waiting, [], [])[0]:
                if ready == 0:
                    self._end()
                elif ready is self._listener:
                    request = self._accept()
                    if request is not None:
                        return request
                elif ready in self._running:
                    self._tell(ready)
                elif ready in self._asking:  # Who asked was killed.
                    os.kill(self._running[self._asking.pop(ready)][0], signal.SIGKILL)

    def _end(self):
        for pid, _ in self._running.values():
            os.kill(pid, signal.SIGKILL)
        shutil.rmtree(os.path.dirname(self._listener.getsockname()), ignore_errors=True)
        os._exit(0)

    def _accept(self):
        """The request, in a forked process; None in this one."""
        connection, _ = self._listener.accept()
        _, descriptors, _, _ = socket.recv_fds(connection, 1, 3)
        with connection.makefile("rb") as lines:
            line = lines.readline()
        request = json.loads(line) if line else None
        pid = os.fork() if request and self._is_as_here(request) else None
        if pid == 0:
            self._take_over(connection, descriptors)
            return request
        for descriptor in descriptors:
            os.close(descriptor)
        _send(connection, {"pid": pid})
        if pid:
            process = os.pidfd_open(pid)
            self._running[process] = pid, connection
            self._asking[connection.fileno()] = process
        else:
            connection.close()
        return None

    def _is_as_here(self, request):
        option, module, *_ = [*request["arguments"], "", ""]
        found = sys.modules.get(module)
        if option != "-m" or found is not None and not hasattr(found, "__path__"):
            return False
        wanted, here = request["environment"], self._environment
        other = {x for x in wanted.keys() | here.keys() if wanted.get(x) != here.get(x)}
        other -= READ_LATER
        # A program that was quiet may have started this one.
        is_quiet = LEVEL not in here and wanted.get(LEVEL) == "3" and other <= {LEVEL}
        return not other or is_quiet

    def _take_over(self, connection, descriptors):
        """Has the program's descriptors and no other; in a forked process."""
        for number, descriptor in enumerate(descriptors):
            os.dup2(descriptor, number)
        for each in (self._listener, connection, *(x for _, x in self._running.values())):
            each.detach()
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))

    def _tell(self, process):
        pid, connection = self._running.pop(process)
        os.close(process)
        self._asking.pop(connection.fileno(), None)
        _, status, usage = os.wait4(pid, 0)
        status = os.waitstatus_to_exitcode(status)
        _send(connection, {"status": status, "memory": usage.ru_maxrss << 10})
        connection.close()


def _send(connection, answer):
    with contextlib.suppress(BrokenPipeError):  # Who asked was killed.
        connection.sendall(json.dumps(answer).encode() + b"\n")


def _python_path(environment):
    return [x for x in environment.get("PYTHONPATH", "").split(os.pathsep) if x]


def _without_first_frame(kind, error, traceback):
    """Shows an error without the server."""
    sys.__excepthook__(kind, error.with_traceback(traceback.tb_next), traceback.tb_next)


def begin(request, path):
    """Makes this process like one of Python that has begun with the request's arguments.

    Args:
        request: dict, as `client.start` makes it.
        path: list of str. Where Python finds modules but for the folder and PYTHONPATH.
    Returns:
        str. The module to run.
    """
    _, module, *flags = request["arguments"]
    os.chdir(request["folder"])
    os.umask(request["mask"])
    os.environ.clear()
    os.environ.update(request["environment"])
    for signum in request["ignored"]:
        signal.signal(signum, signal.SIG_IGN)
    sys.stdout.reconfigure(line_buffering=sys.stdout.isatty() or sys.stdout.line_buffering)
    sys.excepthook = _without_first_frame
    sys.path[:] = [os.getcwd(), *_python_path(os.environ), *path]
    sys.executable = request["python"]
    sys.orig_argv = [sys.executable, *request["arguments"]]
    sys.argv = ["-m", *flags]
    sys.modules["numpy"].random.seed()  # Else all programs draw the same.
    sys.modules["__main__"] = types.ModuleType("__main__")
    importlib.invalidate_caches()
    if module.partition(".")[0] == "etcmodel":
        importlib.reload(sys.modules["etcmodel"])  # It sees that it is to be a program.
    return module


def main():
    listener, environment = socket.socket(fileno=int(sys.argv[1])), dict(os.environ)
    del sys.path[0]  # This module's folder: no program has it.
    path = [x for x in sys.path if x not in _python_path(environment)]
    from etcmodel import quiet

    quiet.quiet_tensorflow()
    for name in WARM:
        with contextlib.suppress(ModuleNotFoundError):  # `make test-versions` lacks Model Garden.
            importlib.import_module(name)
    gc.freeze()  # Else each program looks through all of this for garbage, and copies it so.
    return begin(Server(listener, environment).serve(), path)


if __name__ == "__main__":
    runpy._run_module_as_main(main())  # What `python -m` calls.
