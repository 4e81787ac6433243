"""What is POSIX's alone has one module, and the core works where the system has none of it."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[1]
POSIX = re.compile(
    r"^\s*(?:import|from) (?:fcntl|grp|pwd|resource|syslog|termios)\b|open\(\"/proc|"
    r"\b(?:os\.(?:fork|killpg|sched_getaffinity|set_blocking|setsid)|pthread_sigmask)\b",
    re.M,
)
# `turn_loop` runs where this package is not.
MAY = {"etcmodel/posix_only.py", "tools/benchmarks/turn_loop.py"}
# Of each room of the core some tests, and what saves, locks and ends at signals.
TESTS = [
    "ops/test_sliding_window.py",
    "layers/test_heads.py",
    "models/test_initialization.py",
    "text/test_tokenization.py",
    "options/test_fields.py",
]


def test_one_module_names_what_is_of_posix_alone():
    found = {
        path.relative_to(ROOT).as_posix()
        for top in ("etcmodel", "tasks", "pretrain", "tools")
        for path in (ROOT / top).rglob("*.py")
        if POSIX.search(path.read_text(encoding="utf-8"))
    }
    assert found == MAY


@pytest.mark.slow
def test_the_core_works_without_it(tmp_path):
    """Every module is imported, files are saved in one step, and core tests pass."""
    (tmp_path / "test_all.py").write_text(WITHOUT)
    tests = [str(ROOT / "tests" / name) for name in TESTS]
    command = [sys.executable, "-m", "pytest", "-p", "tests.without_posix", "-x", "-m", "not slow"]
    done = subprocess.run(
        [*command, str(tmp_path / "test_all.py"), *tests],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
    )
    assert done.returncode == 0, done.stdout[-4000:]


WITHOUT = """
import importlib
import os
import pkgutil

import pytest

import etcmodel
from etcmodel import atomic_files, extras, onednn, posix_only


def test_every_module_is_imported():
    for module in pkgutil.walk_packages(etcmodel.__path__, "etcmodel."):
        if not module.name.endswith("__main__"):
            try:
                importlib.import_module(module.name)
            except extras.MissingExtraError:  # Of an environment with fewer extras.
                pass


def test_what_there_is_not_has_a_plain_way(tmp_path):
    assert posix_only.fcntl is None and onednn.instructions() == ()
    assert posix_only.memory() == (None, None) and posix_only.usable_cores() == os.cpu_count()
    with posix_only.held_back(), pytest.raises(OSError, match="no locks of files"):
        posix_only.lock(0)
    with atomic_files.new_file(tmp_path / "a") as path:
        with open(path, "w") as file:
            file.write("whole")
    assert (tmp_path / "a").read_text() == "whole" and os.listdir(tmp_path) == ["a"]
"""
