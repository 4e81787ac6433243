"""Processes that kill themselves right before one of their calls to the file system."""

import os
import signal
import sys
import traceback

_CALLS = ("open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.truncate", "os.listdir")


def run_until_call(number, act, folder):
    """Runs a function in a process of its own, which SIGKILL ends before a call of that number.

    Args:
        number: int, from 0, of Python's calls that open, make, rename, remove or list what is in
            the folder.
        act: function without arguments.
        folder: path.
    Returns:
        Whether it was killed: bool. Else it had come to its end before.
    Raises:
        AssertionError: if it failed otherwise.
    """
    process = os.fork()
    if not process:
        status = 1
        try:
            _kill_before(number, os.path.realpath(folder))
            act()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    _, status = os.waitpid(process, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return True
    assert os.waitstatus_to_exitcode(status) == 0, "it failed: see its output"
    return False


def _kill_before(number, folder):
    left = number

    def count(event, args):
        nonlocal left
        if event in _CALLS and any(_is_in(folder, value) for value in args[:2]):
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)
            left -= 1

    sys.addaudithook(count)


def _is_in(folder, path):
    return isinstance(path, (str, os.PathLike)) and os.path.realpath(path).startswith(folder)
