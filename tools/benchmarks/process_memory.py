"""Samples the memory of a process and its children, and how far they read a file (Linux)."""

import contextlib
import os
import time

__all__ = ["follow", "peaks", "sample"]


def _processes(pid):
    """Ids of a process and of all below it."""
    found = [pid]
    for process in found:
        with contextlib.suppress(OSError):  # It may have ended meanwhile.
            for task in os.listdir(f"/proc/{process}/task"):
                with open(f"/proc/{process}/task/{task}/children", encoding="ascii") as file:
                    found += map(int, file.read().split())
    return found


def _memory(pid):
    """Bytes of a process; shared memory is divided between its users."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        return sum(1024 * int(line.split()[1]) for line in file if line.startswith("Pss:"))


def _position(pid, path):
    """Where a process reads an open file, in bytes; 0 if it has not opened it."""
    for number in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(OSError):
            if os.path.samefile(f"/proc/{pid}/fd/{number}", path):
                with open(f"/proc/{pid}/fdinfo/{number}", encoding="ascii") as file:
                    return int(file.readline().split()[1])
    return 0


def sample(pid, path):
    """How far a process, or one that it started, has read a file, and the memory of all of them.

    Args:
        pid: int.
        path: str.
    Returns:
        (position, memory), int, in bytes; 0 for a file that none of them has open, and for the
        memory of processes that have ended.
    """
    memory = position = 0
    for process in _processes(pid):
        with contextlib.suppress(OSError):
            memory += _memory(process)
            position = max(position, _position(process, path))
    return position, memory


def follow(process, path, seconds=0.2):
    """Watches a process until it ends.

    Args:
        process: `subprocess.Popen`.
        path: str. See `sample`.
        seconds: float. Time between two samples.
    Returns:
        list of (position, memory), as of `sample`; positions do not fall.
    """
    samples, furthest = [], 0
    while process.poll() is None:
        position, memory = sample(process.pid, path)
        furthest = max(furthest, position)
        if memory:
            samples.append((furthest, memory))
        time.sleep(seconds)
    return samples


def peaks(samples, size, shares=(0.1, 0.5, 1.0)):
    """The peak memory until given fractions of a file are read.

    Args:
        samples: of `follow`.
        size: int. Of the file, in bytes.
        shares: tuple of float.
    Returns:
        list of int, in bytes; 0 where there is no sample by then.
    """
    return [
        max((memory for position, memory in samples if position <= share * size), default=0)
        for share in shares
    ]
