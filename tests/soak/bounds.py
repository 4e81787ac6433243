"""How code meets an input: it returns, or refuses in one line, within bounds of time and memory."""

import dataclasses
import re
import resource
import signal
import traceback

__all__ = ["Met", "meet"]

SECONDS = 30.0  # A case takes 0.2 s on an idle machine.
MEMORY = 256 << 20  # At the peak, beyond what the process had before.
ADDRESSES = 4 << 30  # What is asked for beyond that is refused by the system.
LONGEST_LINE = 1000
_WAITS = 10
# What a user can do nothing with, within a message of ours.
_INTERNAL = re.compile(r"Traceback|File \"|object at 0x|\{\{node|Op:\w+|<class '")


class _TooLongError(BaseException):
    """No `Exception`: what is tried may handle these."""


@dataclasses.dataclass(frozen=True)
class Met:
    """What came of an input.

    Attributes:
        value: what was returned; None if the input was refused.
        line: str. What was said when it was refused.
        problem: str. What is wrong with that; "" for nothing.
        memory: int. Bytes at the peak, beyond what the process had before.
    """

    value: object = None
    line: str = ""
    problem: str = ""
    memory: int = 0


def meet(action, *, seconds=SECONDS, memory=MEMORY):
    """Calls a function of no arguments, which may raise anything; a `Met`."""
    before = _memory(reset=True)
    try:
        with _Within(seconds):
            met = Met(value=action())
    except (ValueError, OSError) as error:
        met = Met(line=str(error), problem=_problem_of(error))
    except _TooLongError as error:
        met = Met(problem=f"hangs: more than {seconds:.0f} s{_place(error)}")
    except MemoryError as error:
        met = Met(problem=f"memory: {error}{_place(error)}")
    except Exception as error:
        met = Met(problem=f"trace: {type(error).__name__}: {str(error)[:300]}{_place(error)}")
    taken = _memory() - before
    if taken > memory and not met.problem:
        met = dataclasses.replace(met, problem=f"memory: {taken >> 20} MB")
    return dataclasses.replace(met, memory=taken)


def _problem_of(error):
    line = str(error)
    if isinstance(error, UnicodeError):
        return f"trace: {type(error).__name__}: {line[:300]}{_place(error)}"
    if not line or "\n" in line:
        return f"message: not one line: {line[:300]!r}"
    if len(line) > LONGEST_LINE:
        return f"message: {len(line)} characters: {line[:150]!r}"
    if found := _INTERNAL.search(line):
        return f"message: it has {found[0]!r}: {line[:300]!r}"
    return ""


def _place(error):
    frames = [x for x in traceback.extract_tb(error.__traceback__) if "/etcmodel/" in x.filename]
    return "".join(f" at {x.filename.rpartition('/etcmodel/')[2]}:{x.name}" for x in frames[-1:])


def _memory(reset=False):
    """Bytes of the process at its peak, from now on if it is reset."""
    if reset:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
    with open("/proc/self/status") as file:
        return int(re.search(r"VmHWM:\s+(\d+) kB", file.read())[1]) << 10


class _Within:
    """Ends what takes too long, and what asks for too much memory, by an exception.

    Seconds are of the processor, so that a busy machine fails nothing; what waits has more of the
    clock's.
    """

    def __init__(self, seconds):
        self._seconds = seconds

    def __enter__(self):
        with open("/proc/self/statm") as file:
            size = int(file.read().split()[0]) * resource.getpagesize()
        self._limits = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (size + ADDRESSES, self._limits[1]))
        self._handlers = {x: signal.signal(x, _too_long) for x in (signal.SIGPROF, signal.SIGALRM)}
        signal.setitimer(signal.ITIMER_PROF, self._seconds)
        signal.setitimer(signal.ITIMER_REAL, _WAITS * self._seconds)

    def __exit__(self, *_):
        for timer in (signal.ITIMER_PROF, signal.ITIMER_REAL):
            signal.setitimer(timer, 0)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        resource.setrlimit(resource.RLIMIT_AS, self._limits)


def _too_long(signum, frame):
    raise _TooLongError
