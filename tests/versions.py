"""Prints what `make test-versions` installs: `python -m tests.versions lowest` (or `newest`).

The lowest versions are those at which the ranges of setup.py begin; the newest are those that pip
finds within them. Neither has Model Garden, which would hold the newest TensorFlow back, nor Beam:
among the lowest, pip looks for longer than 15 minutes for what fits to both. The pinned versions
have them. The tests' own tools are of requirements-dev.txt, in the versions that pip finds.
"""

import importlib.metadata
import pathlib
import sys

from packaging import requirements

ROOT = pathlib.Path(__file__).parents[1]
TOOLS = ("hypothesis", "pytest", "pytest-xdist", "setuptools", "wheel")
LEFT_OUT = ("apache-beam", "google-crc32c", "tf-models-official")


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
    return sorted(line for name, line in found.items() if name not in LEFT_OUT)


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


if __name__ == "__main__":
    print(*lines(sys.argv[1], importlib.metadata.requires("etcmodel")), *TOOLS, sep="\n")
