"""Reports, after a run, how many of all reference cases of each topic and kind were checked."""

import pytest

from tests.reference import cases


def pytest_configure(config):
    config.addinivalue_line("markers", "reference(topic): runs one reference case, named `case`")
    config.pluginmanager.register(_ReferenceReport())


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
