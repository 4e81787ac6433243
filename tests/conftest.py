"""What is random is the same in each run; and a report of the reference cases."""

import contextlib
import functools
import gc
import importlib.util
import os
import pathlib
import random
import re
import signal
import sys
import weakref
from unittest import mock

import hypothesis
import numpy as np
import pytest
from hypothesis.internal.conjecture import providers

from tests import memory, without_extras
from tests.reference import cases

SEED = 0
# No test asks a hub on the network.
os.environ["HF_ENDPOINT"] = "http://127.0.0.1:9"

# What is busy beside the tests must not fail them.
hypothesis.settings.register_profile(
    "same",
    derandomize=True,
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("same")
# Else numbers and strings of all modules of ours that are imported by then are among the examples,
# and which these are depends on the tests that ran before.
providers._get_local_constants = lambda: providers._local_constants


def pytest_addoption(parser):
    parser.addoption(
        "--part",
        default="1/1",
        metavar="N/M",
        help="the Nth of M parts of the modules: what TensorFlow keeps ends with its process",
    )
    parser.addoption(
        "--cases",
        default="1/1",
        metavar="N/M",
        help="the Nth of M parts of the chosen tests, also of one module, for the same reason",
    )


def pytest_configure(config):
    # Shells start what runs in the background with Ctrl-C ignored, which programs leave so.
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.addinivalue_line("markers", "reference(topic): runs one reference case, named `case`")
    config.pluginmanager.register(_ReferenceReport())
    config.pluginmanager.register(_SkippedWithoutExtras())
    config.pluginmanager.register(_CasesOfPart())


def pytest_make_parametrize_id(val):
    """Bytes that are no text, by their length: what packs may write the time into them.

    The processes must find the same names, or none of them begins.
    """
    if isinstance(val, bytes) and not (val.isascii() and val.decode().isprintable()):
        return f"{len(val)}-bytes"
    return None


def pytest_ignore_collect(collection_path, config):
    """Leaves the modules of the wanted part: others are not even imported."""
    number, parts = map(int, config.getoption("part").split("/"))
    if parts == 1 or collection_path.is_dir():
        return None
    return None if collection_path in _modules()[number - 1 :: parts] else True


@functools.cache
def _modules():
    return sorted(pathlib.Path(__file__).parent.rglob("test_*.py"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Marks the cases that are not quick."""
    for item in items:
        if item.path.parent.name == "benchmarks":
            item.add_marker("benchmark")
    _mark_cases(items, "quick_cases", "slow")
    slow = [item for item in items if item.get_closest_marker("slow")]
    _mark_cases(slow, "slow_cases", "exhaustive")
    for item in items:
        if item.get_closest_marker("exhaustive"):
            item.add_marker("slow")


def _mark_cases(items, which, others):
    """Of a test with the marker `which` so many, evenly spread, stay; the `others` get a marker."""
    tests = {}
    for item in items:
        if item.get_closest_marker(which):
            tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for cases_of_test in tests.values():
        (number,) = cases_of_test[0].get_closest_marker(which).args
        kept = {place * len(cases_of_test) // number for place in range(number)}
        for place, item in enumerate(cases_of_test):
            if place not in kept:
                item.add_marker(others)


def pytest_collection_finish():
    """Else each collection of garbage looks through all that is imported, which stays."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure():
    """Else pytest and Python look through all objects several times for garbage before they end."""
    memory.end_freeing()
    gc.freeze()  # Each module's garbage is gone already: see `_freed_memory`.


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup():
    """Seeds weights, dropout and all else, also of fixtures, whichever tests ran before.

    What programs set for all of their process, precision and tiling, is as at first, too.
    """
    random.seed(SEED)
    np.random.seed(SEED)
    memory.end_iterators_at_once()
    memory.free_iterators_in_a_thread()
    if "tf_keras" in sys.modules:  # Not to be imported for tests that do without.
        _keep_kernels()
        sys.modules["tf_keras"].utils.set_random_seed(SEED)
        sys.modules["tf_keras"].mixed_precision.set_global_policy("float32")
    if "etcmodel.ops.tiles" in sys.modules:
        tiles = sys.modules["etcmodel.ops.tiles"]
        tiles.set_tiling(tiles.Tiling())


@functools.cache
def _keep_kernels():
    """Has TensorFlow drop its kernels with a new seed only if some of them draw numbers.

    It drops them all, as those that draw keep where they are. Each test would make all of them
    again, and optimize again each graph that tests share: that took a third of the time.
    """
    from tensorflow.python import pywrap_tfe
    from tensorflow.python.eager import context
    from tensorflow.python.framework import func_graph, ops, random_seed

    drawn = [True]  # Since the last seed; who did before the first is not known.
    drawing = weakref.WeakSet()  # Graphs with operations that draw: each run of them does.
    get_seed, set_seed = random_seed.get_seed, context.Context._set_global_seed

    def watched(op_seed):  # What each operation that draws calls when it is made.
        if context.executing_eagerly():
            drawn[:] = [True]
        else:
            graph = ops.get_default_graph()
            while isinstance(getattr(graph, "outer_graph", None), func_graph.FuncGraph):
                graph = graph.outer_graph
            drawing.add(graph)
        return get_seed(op_seed)

    def set_and_keep(self, seed):
        kept = mock.patch.object(pywrap_tfe, "TFE_ContextClearCaches")
        with contextlib.nullcontext() if drawn or drawing else kept:
            set_seed(self, seed)
        drawn.clear()

    random_seed.get_seed, context.Context._set_global_seed = watched, set_and_keep


@pytest.fixture(autouse=True)
def _own_environment():
    """Takes back what a test sets, and the code that it calls: others start programs with it."""
    with mock.patch.dict(os.environ):
        yield


@pytest.fixture(scope="module", autouse=True)
def _freed_memory():
    """Else a process that runs all slow tests needs as much as all of them together."""
    yield
    memory.free()


class _CasesOfPart:
    """Leaves the tests of the wanted part, after others were left out by their markers."""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items, config):
        number, parts = map(int, config.getoption("cases").split("/"))
        begin, end = (len(items) * x // parts for x in (number - 1, number))
        config.hook.pytest_deselected(items=items[:begin] + items[end:])
        items[:] = items[begin:end]


class _SkippedWithoutExtras:
    """Skips what ends for want of a package of an extra: `make test-versions` lacks some."""

    def __init__(self):
        asked = (*without_extras.EXTRAS, "pandas", "tensorflow_serving")
        names = "|".join(name for name in asked if importlib.util.find_spec(name) is None) or "(?!)"
        self._told = re.compile(rf"No module named '({names})\b|The package '({names})\b")

    @pytest.hookimpl(hookwrapper=True)
    def pytest_make_collect_report(self, collector):
        self._skip((yield).get_result(), collector.path)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item):
        self._skip((yield).get_result(), item.path)

    def _skip(self, report, path):
        if report.outcome == "failed" and (told := self._told.search(str(report.longrepr))):
            report.outcome, report.longrepr = "skipped", (str(path), 0, f"Skipped: {told[0]}")


class _ReferenceReport:
    """Gathers the outcomes of tests with the marker `reference`, by topic and case.

    They travel as properties of the reports: those reach the process that prints, whichever
    process ran the test.
    """

    def __init__(self):
        self._outcomes = {}

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item):
        report = (yield).get_result()
        marker = item.get_closest_marker("reference")
        if marker is not None and (report.when == "call" or not report.passed):
            key = (marker.args[0], item.callspec.params["case"]["name"])
            report.user_properties.append(("reference", key))

    def pytest_runtest_logreport(self, report):
        for name, value in report.user_properties:
            if name == "reference":
                self._outcomes[tuple(value)] = report.outcome

    def pytest_terminal_summary(self, terminalreporter):
        """Prints a line per topic and kind: cases passed of all there are, and those not run."""
        if not self._outcomes:
            return
        terminalreporter.section(f"reference cases of {cases.reference_root()}")
        for topic in sorted({topic for topic, _ in self._outcomes}):
            for kind, names in cases.names_by_kind(topic).items():
                outcomes = {name: self._outcomes.get((topic, name)) for name in names}
                terminalreporter.write_line(f"{topic} {kind}: {_summary(outcomes)}")


def _summary(outcomes):
    """How many cases passed, and which were not run; `outcomes` by name, None where not run."""
    num_passed = sum(outcome == "passed" for outcome in outcomes.values())
    line = f"{num_passed} of {len(outcomes)} passed"
    not_run = [name for name, outcome in outcomes.items() if outcome is None]
    if not_run:
        shown = ", ".join(not_run[:5])
        line += f", {len(not_run)} not run: {shown}{' …' if len(not_run) > 5 else ''}"
    return line
