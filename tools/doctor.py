"""Reports versions, devices and missing packages, and runs a self-test.

    python -m etcmodel.tools.doctor

Each line begins with ok, missing (something optional) or broken. If anything is broken, the exit
code is 1. The self-test checks the values of a small encoder and of one training step, and measures
their speed; it takes about ten seconds.
"""

import dataclasses
import sys

from etcmodel.options import Options, option, run_program

from .diagnosis.findings import BROKEN


@dataclasses.dataclass(frozen=True, kw_only=True)
class DoctorOptions(Options):
    """The options of the checks."""

    self_test: bool = option(
        True, "Run a self-test that checks values and measures speed; takes about ten seconds."
    )


def run(options):
    """Prints each finding as it is made; exits with 1 if something is broken."""
    num_broken = 0
    for finding in _findings(options.self_test):
        num_broken += finding.state == BROKEN
        print(finding, flush=True)
    print(f"broken: {num_broken}" if num_broken else "nothing is broken")
    if num_broken:
        sys.exit(1)


def _findings(with_self_test):
    from .diagnosis import installation, machine

    is_broken = False
    for finding in (*installation.findings(), *machine.findings()):
        is_broken |= finding.state == BROKEN
        yield finding
    if with_self_test and not is_broken:
        from .diagnosis import self_test

        yield from self_test.findings()


if __name__ == "__main__":
    run_program(DoctorOptions, run, section="doctor")
