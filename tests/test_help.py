"""What every program says of itself with --help, and how soon."""

import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[1]
# Processes that benchmarks start; nobody else calls them.
WORKERS = {f"tools.benchmarks.{x}worker" for x in ("", "keras_hub_", "torch_")}
WORKERS |= {"benchmarks.peers_worker"}
PROGRAMS = sorted(
    {
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for folder in ("tasks", "pretrain", "tools", "benchmarks")
        for path in (ROOT / folder).rglob("*.py")
        if "__main__" in path.read_text(encoding="utf-8")
    }
    - WORKERS
)
HEAVY = {"tensorflow", "tf_keras", "apache_beam"}
IS_REFERENCE = re.compile(r"Alias of --\w+\.|The release's .*--\w+|no effect: ")
IS_LENGTH = re.compile(r".*_(len|length|radius|size_in_\w+)$|.*timeout$")
UNIT = re.compile(r"token|word|sentence|character|second|n-gram|None: ", re.I)


def name_of(program):
    """The name of a program's module for `python -m`."""
    return program if program.startswith("benchmarks.") else f"etcmodel.{program}"


def help_of(program):
    """The program's help, and the names of the modules that it imported."""
    command = [sys.executable, "-X", "importtime", "-m", name_of(program), "--help"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout, set(re.findall(r"^import time:.*\| +(\w+)$", done.stderr, re.M))


def flags_in(text):
    """dict of a flag to its help in one line, white space removed at line ends."""
    blocks = re.findall(r"^  --(?:\[no\])?(\w+): (.*(?:\n    .*)*)", text, re.M)
    return {name: " ".join(help_text.split()) for name, help_text in blocks}


def test_there_are_the_programs_of_every_room():
    assert len(PROGRAMS) >= 20
    rooms = {program.split(".")[0] for program in PROGRAMS}
    assert rooms == {"tasks", "pretrain", "tools", "benchmarks"}


@pytest.mark.quick_cases(5)
@pytest.mark.parametrize("program", PROGRAMS)
def test_help_tells_each_default_and_unit_without_importing_tensorflow(program):
    text, imported = help_of(program)
    assert "absl" in imported and not imported & HEAVY
    flags = flags_in(text)
    assert flags
    example = text.split("\n\n")[1]
    assert re.search(rf"^  .*\b(python -m {name_of(program)}|etcmodel \w+)\b", example, re.M)
    for name, help_text in flags.items():
        has_default = re.search(r"\(default: |None|No default\.|Must be given\.", help_text)
        assert has_default or IS_REFERENCE.search(help_text), (name, help_text)
        assert len(help_text.split("(default")[0]) > 10, (name, help_text)
        if IS_LENGTH.match(name) and not IS_REFERENCE.search(help_text):
            assert UNIT.search(help_text), (name, help_text)
