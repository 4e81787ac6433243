"""A plugin of pytest: property tests alone, each with as many examples as SOAK_EXAMPLES says.

`make soak-properties EXAMPLES=100000 SEED=1`. All tests give Hypothesis their own, small number of
examples, drawn alike in each run; here these are drawn by SOAK_SEED. How many were tried is told at
the end: they are fewer where there are no more.
"""

import functools
import os
import time

import hypothesis
import pytest

__all__ = ["scale", "tried"]

_tried = {}  # Examples by function; of this process.
_told = {}  # (examples, seconds, outcome) by test; of the process that prints.


def scale(test, number, seed):
    """Gives a property test another number of examples, and other ones.

    Args:
        test: function that `hypothesis.given` made.
        number: int. Examples.
        seed: int. Which ones.
    """
    # Not by the decorator, which refuses functions that have settings of their own.
    test._hypothesis_internal_use_settings = hypothesis.settings(
        test._hypothesis_internal_use_settings,
        max_examples=number,
        derandomize=False,
        database=None,
    )
    hypothesis.seed(seed)(test)
    if test in _tried:
        return
    inner = test.hypothesis.inner_test
    _tried[test] = 0

    @functools.wraps(inner)
    def counted(*arguments, **named):
        _tried[test] += 1
        return inner(*arguments, **named)

    test.hypothesis.inner_test = counted


def tried(test):
    """Examples that a test that was scaled has tried in this process: int."""
    return _tried[test]


def pytest_collection_modifyitems(config, items):
    number, seed = int(os.environ["SOAK_EXAMPLES"]), int(os.environ.get("SOAK_SEED", "0"))
    others = [item for item in items if not _is_property(item)]
    items[:] = [item for item in items if _is_property(item)]
    config.hook.pytest_deselected(items=others)
    for item in items:
        scale(item.function, number, seed)


def _is_property(item):
    return getattr(getattr(item, "function", None), "is_hypothesis_test", False)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    before, start = tried(item.function), time.monotonic()
    outcome = yield
    examples = tried(item.function) - before
    item.user_properties.append(("examples", examples))
    if isinstance(outcome.exception, KeyboardInterrupt):  # Of which there is no report.
        _told[item.nodeid] = (examples, time.monotonic() - start, "interrupted")


def pytest_runtest_logreport(report):
    examples = dict(report.user_properties).get("examples")
    if report.when == "call" and examples is not None:
        _told[report.nodeid] = (examples, report.duration, report.outcome)


def pytest_terminal_summary(terminalreporter):
    """Prints a line for each test, and one for all."""
    if not _told:
        return
    terminalreporter.section("examples tried")
    for name, (examples, seconds, outcome) in sorted(_told.items()):
        terminalreporter.write_line(f"{examples:9,} in {seconds:6.0f} s, {outcome}: {name}")
    total = sum(examples for examples, *_ in _told.values())
    terminalreporter.write_line(f"{total:9,} examples of {len(_told)} tests")
