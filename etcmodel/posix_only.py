"""What only POSIX systems have, or Linux alone, each with a plain way for the others.

No other module of the package imports `fcntl`, or reads /proc. TensorFlow is not needed.
"""

import contextlib
import errno
import os
import signal

try:
    import fcntl
except ImportError:  # As on Windows.
    fcntl = None

_ASK_FOR_SIGNAL = 1  # PR_SET_PDEATHSIG of Linux.


def lock(file, *, wait=False):
    """Takes the lock of an open file or folder until it is closed.

    Args:
        file: file, or int. A descriptor.
        wait: bool. Whether to wait while another process holds the lock.
    Raises:
        BlockingIOError: if another process holds the lock, unless `wait`.
        OSError: where there are no locks: of the file system, or of the operating system.
    """
    if fcntl is None:
        raise OSError(errno.ENOTSUP, "this system has no locks of files")
    fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))


def has_open_folders():
    """Whether a folder can be opened, so that its names are synchronized to the disk: bool."""
    return hasattr(os, "O_DIRECTORY")


@contextlib.contextmanager
def held_back(signum=signal.SIGINT):
    """Delays a signal until after this block, and keeps it from processes started in it.

    Where signals cannot be delayed, nothing changes.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    previous = signal.pthread_sigmask(signal.SIG_BLOCK, {signum})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, previous)


def dying_with_parent(signum=signal.SIGTERM):
    """A function for `Popen(preexec_fn=…)`: the process gets this signal when its parent dies.

    None where that cannot be asked for, as on other systems than Linux.
    """
    import ctypes  # `import etcmodel` does not wait for it.

    try:
        prctl = ctypes.CDLL(None).prctl
    except (AttributeError, OSError, TypeError):
        return None
    return lambda: prctl(_ASK_FOR_SIGNAL, signum)


def usable_cores():
    """The number of processor cores that this process may use: int."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def processor_flags():
    """The names of the processor's instructions, as Linux has them: list of str, or empty."""
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
            return next((line.split() for line in file if line.startswith("flags")), [])
    except OSError:
        return []


def memory():
    """The machine's memory in bytes, and what is free of it: (int, int), or (None, None)."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            sizes = dict(line.split(":", 1) for line in file)
        return tuple(int(sizes[x].split()[0]) * 1024 for x in ("MemTotal", "MemAvailable"))
    except (OSError, KeyError, ValueError):
        return None, None
