"""What the package promises of Python's versions holds for each of its pinned requirements."""

import importlib.metadata
import pathlib
import re
import sys

import pytest
from packaging import requirements, specifiers

ROOT = pathlib.Path(__file__).parents[1]
PYTHONS = [f"3.{minor}" for minor in range(8, 20)]


def promised():
    text = (ROOT / "setup.py").read_text(encoding="utf-8")
    return specifiers.SpecifierSet(re.search(r'python_requires="([^"]+)"', text)[1])


def pins():
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    return [requirements.Requirement(line) for line in lines if line and line[0] != "#"]


@pytest.mark.parametrize("pin", pins(), ids=lambda pin: pin.name)
def test_every_requirement_supports_all_versions_of_python_that_are_promised(pin):
    distribution = importlib.metadata.distribution(pin.name)
    assert pin.specifier.contains(distribution.version)
    supported = specifiers.SpecifierSet(distribution.metadata.get("Requires-Python") or "")
    missing = [version for version in PYTHONS if version in promised() and version not in supported]
    assert not missing


def test_the_python_of_the_tests_is_promised_and_the_linter_knows_the_oldest():
    assert f"{sys.version_info.major}.{sys.version_info.minor}" in promised()
    linted = re.search(r'target-version = "py(\d)(\d+)"', (ROOT / "pyproject.toml").read_text())
    oldest = next(version for version in PYTHONS if version in promised())
    assert f"{linted[1]}.{linted[2]}" == oldest
