"""Reports, after a run, how many reference cases of each topic and kind were checked."""

import collections

import pytest

from tests.reference import cases

_OUTCOMES = pytest.StashKey[dict]()


def pytest_configure(config):
    config.addinivalue_line("markers", "reference(topic): runs one reference case, named `case`")
    config.stash[_OUTCOMES] = {}


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    """Remembers the outcome of each test that carries the marker `reference`."""
    report = (yield).get_result()
    marker = item.get_closest_marker("reference")
    if marker is None or (report.when != "call" and report.passed):
        return
    case = item.callspec.params["case"]
    item.config.stash[_OUTCOMES][marker.args[0], case["name"]] = report.outcome


def pytest_terminal_summary(terminalreporter, config):
    """Prints a line per topic and kind: cases passed of all, and the names not run."""
    outcomes = config.stash[_OUTCOMES]
    if not outcomes:
        return
    terminalreporter.section(f"reference cases of {cases.reference_root()}")
    for topic in sorted({topic for topic, _ in outcomes}):
        for kind, names in _names_by_kind(topic).items():
            passed = [name for name in names if outcomes.get((topic, name)) == "passed"]
            pending = [name for name in names if (topic, name) not in outcomes]
            line = f"{topic} {kind}: {len(passed)} of {len(names)} passed"
            if pending:
                line += f", {len(pending)} not run: {', '.join(pending[:5])}"
                line += " …" if len(pending) > 5 else ""
            terminalreporter.write_line(line)


def _names_by_kind(topic):
    names = collections.defaultdict(list)
    for case in cases.load_cases(topic):
        names[cases.kind_of(case)].append(case["name"])
    return names
