"""Checks the installed packages against the requirements."""

import importlib.metadata
import platform

from packaging import requirements, specifiers

from .findings import BROKEN, MISSING, OK, Finding

__all__ = ["findings"]

_NAME = "etcmodel"
_OF_OTHERS = ("all", "dev", "preprocess")  # Extras that combine or repeat others.


def findings():
    """Yields a `Finding` for Python, for each package of the core and for each extra."""
    try:
        distribution = importlib.metadata.distribution(_NAME)
    except importlib.metadata.PackageNotFoundError:
        yield Finding(BROKEN, _NAME, "not installed. Run: pip install .")
        return
    yield Finding(OK, _NAME, distribution.version)
    yield python_finding(distribution.metadata["Requires-Python"], platform.python_version())
    asked = [requirements.Requirement(line) for line in distribution.requires or ()]
    for requirement in asked:
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            yield core_finding(requirement, _installed(requirement.name))
    for extra in distribution.metadata.get_all("Provides-Extra") or ():
        if extra not in _OF_OTHERS:
            of_extra = [x for x in asked if _is_of(x, extra)]
            yield extra_finding(extra, of_extra, {x.name: _installed(x.name) for x in of_extra})


def python_finding(allowed, version):
    """Checks the version of Python against the allowed ones, such as ">=3.11,<3.13"."""
    if specifiers.SpecifierSet(allowed or "").contains(version):
        return Finding(OK, "python", version)
    return Finding(BROKEN, "python", f"{version}, but must be {allowed}.")


def core_finding(requirement, version):
    """Checks a required package.

    Args:
        requirement: `packaging.requirements.Requirement`.
        version: str, or None if it is not installed.
    """
    if version is None:
        return Finding(BROKEN, requirement.name, f"missing. Run: {_install(requirement)}")
    if not requirement.specifier.contains(version, prereleases=True):
        told = f"{version}, but must be {requirement.specifier}. Run: {_install(requirement)}"
        return Finding(BROKEN, requirement.name, told)
    return Finding(OK, requirement.name, version)


def extra_finding(extra, asked, versions):
    """Checks that all packages of an extra are installed in the required versions.

    Args:
        extra: str. Its name.
        asked: list of `packaging.requirements.Requirement`.
        versions: dict from a package's name to its version, or None if it is not installed.
    """
    what, install = f"extra {extra}", f"pip install '{_NAME}[{extra}]'"
    lacking = [x.name for x in asked if versions[x.name] is None]
    if lacking:
        return Finding(MISSING, what, f"without {', '.join(lacking)}. Run: {install}")
    others = [
        f"{x.name} {versions[x.name]}, not {x.specifier}"
        for x in asked
        if not x.specifier.contains(versions[x.name], prereleases=True)
    ]
    if others:
        return Finding(MISSING, what, f"has {', '.join(others)}. Run: {install}")
    return Finding(OK, what, ", ".join(f"{x.name} {versions[x.name]}" for x in asked))


def _install(requirement):
    return f"pip install '{requirement.name}{requirement.specifier}'"


def _is_of(requirement, extra):
    marker = requirement.marker
    return marker is not None and marker.evaluate({"extra": extra}) and "extra" in str(marker)


def _installed(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
