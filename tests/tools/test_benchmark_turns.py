"""Models that take turns: what their seconds are of, and what happens when one dies."""

import pathlib
import sys
import threading

import pytest

from etcmodel.tools.benchmarks import turns

CLOCKS = ("time", "processor")
# In a process of its own, without this package.
WAITING = """
import sys, threading
sys.path.insert(0, sys.argv[1])
import turn_loop
turn_loop.serve({"forward": lambda: threading.Event().wait(0.1)})
"""


def test_the_processors_clock_does_not_count_waiting():
    seconds = [turns.ClockOptions(clock=clock).seconds for clock in CLOCKS]
    before = [clock() for clock in seconds]
    threading.Event().wait(0.1)
    passed, worked = (clock() - start for clock, start in zip(seconds, before, strict=True))
    assert passed >= 0.1 > worked >= 0


def test_a_worker_tells_the_seconds_that_are_wanted():
    folder = pathlib.Path(turns.__file__).parent
    worker = turns.Worker("waiting", [sys.executable, "-c", WAITING, str(folder)])
    found = {}
    for worker.clock in CLOCKS:
        _, found[worker.clock], _ = turns.take_turns([worker], "forward", 1)
    worker.close()
    (passed,), (worked,) = (times["waiting"] for times in found.values())
    assert passed >= 0.1 > worked >= 0


def test_one_that_was_never_asked_needs_no_end():
    turns.Worker("idle", [sys.executable]).close()


def test_what_a_dead_one_did_not_read_is_dropped():
    dead = turns.Worker("dead", [sys.executable, "-c", ""])
    for _ in range(2):
        with pytest.raises(RuntimeError, match="dead died during train"):
            dead.measure("train")
    dead.close()
