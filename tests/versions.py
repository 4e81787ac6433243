"""Prints what `make test-versions` installs: `python -m tests.versions lowest` (or `newest`).

The lowest versions are those at which the ranges of setup.py begin; the newest are those that pip
finds within them. The tests' own tools have the versions of requirements-dev.txt in both.
"""

import importlib.metadata
import pathlib
import sys

from packaging import requirements

ROOT = pathlib.Path(__file__).parents[1]
LEFT_OUT = ("mkdocs-material", "mkdocstrings-python", "mypy", "ruff")


def lines(which, asked):
    """Requirements for pip: list of str.

    Args:
        which: "lowest" or "newest".
        asked: list of str, the package's requirements with their extras, as its metadata have them.
    """
    found = {}
    for requirement in map(requirements.Requirement, asked):
        extra = requirement.marker and requirement.marker.evaluate({"extra": "all"})
        if requirement.marker is None or extra:
            found[requirement.name] = (
                lowest(requirement) if which == "lowest" else newest(requirement)
            )
    return sorted(found.values())


def lowest(requirement):
    """The first version of a range, such as "numpy==2.1" of "numpy>=2.1".

    Raises:
        ValueError: if the range has no beginning.
    """
    for part in requirement.specifier:
        if part.operator in (">=", "=="):
            return f"{requirement.name}=={part.version}"
    raise ValueError(f"setup.py: {requirement} must say from which version on it is good.")


def newest(requirement):
    """The range itself."""
    return f"{requirement.name}{requirement.specifier}"


def tools():
    """The tests' own requirements, without linters and the documentation's: list of str."""
    text = (ROOT / "requirements-dev.txt").read_text(encoding="utf-8")
    return [x for x in text.splitlines() if x[:1].isalpha() and x.split("==")[0] not in LEFT_OUT]


if __name__ == "__main__":
    print(*lines(sys.argv[1], importlib.metadata.requires("etcmodel")), *tools(), sep="\n")
