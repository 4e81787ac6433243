"""Loads a checkpoint's arrays into weights, strictly, for all formats and systems.

Only floats become weights, arrays that are copies of each other are compared, and nothing is
assigned before all checks pass.
"""

import numpy as np

from etcmodel.shown_values import listed

FLOATS = ("float16", "bfloat16", "float32", "float64")
_ROWS = 4096  # Rows of a table compared at a time, in float64.


def assign(source, weights, copies=None):
    """Sets variables from a checkpoint: all of them, or none.

    Args:
        source: `Source`.
        weights: as in `check_dtypes`, with matching shapes. If two names have one variable, the
            arrays must be equal.
        copies: as in `check`.
    Raises:
        ValueError: see `check_dtypes` and `check`.
    """
    check_dtypes(source, weights)
    firsts, shared = {}, {}
    for name, (variable, _) in weights.items():
        if (first := firsts.setdefault(id(variable), name)) != name:
            shared[name] = first
    check(source, (), {**shared, **(copies or {})})
    for name, (variable, is_transposed) in weights.items():
        value = np.asarray(source.read(name))
        value = value.T if is_transposed else value
        variable.assign(value.astype(variable.dtype.as_numpy_dtype, copy=False))


def check_dtypes(source, weights):
    """Checks the dtypes of arrays for variables; before shapes, as packed weights have other ones.

    Args:
        source: `Source`.
        weights: dict of name in the source to (variable, is_transposed): whether the source has the
            transpose.
    Raises:
        ValueError: naming arrays and dtypes, if some are not floats; or if a variable is not float,
            and its array has another dtype.
    """
    wanted = {name: variable.dtype for name, (variable, _) in weights.items()}
    check(source, [name for name, dtype in wanted.items() if dtype.is_floating])
    for name, dtype in wanted.items():
        if not dtype.is_floating and source.dtypes[name] != dtype.name:
            raise ValueError(
                f"{source.path!r}: {name} is of {source.dtypes[name]}. Wanted: {dtype.name}"
            )


def check(source, names, copies=None):
    """Checks arrays before they become weights.

    Args:
        source: `Source`.
        names: those that become weights.
        copies: dict of further names to those whose arrays they must repeat, or None. They are not
            loaded, and so they are read and compared here.
    Raises:
        ValueError: naming the arrays and their dtypes, if some are not floats; naming two and their
            largest difference, if one is not a copy of the other.
    """
    copies = copies or {}
    wanted = dict.fromkeys((*names, *copies, *copies.values()))
    wrong = [f"{x} ({source.dtypes[x]})" for x in wanted if source.dtypes[x] not in FLOATS]
    if wrong:
        raise ValueError(
            f"{source.path!r} has no floats where weights are wanted: {listed(wrong)}. Packed or "
            f"quantized weights are not read: take the model in one of {', '.join(FLOATS)}."
        )
    for name, original in copies.items():
        check_copy(source.path, name, source.read(name), original, source.read(original))


def check_copy(path, name, value, original, other):
    """Raises ValueError, naming both arrays, their file and largest difference, unless equal."""
    if problem := _difference(value, other):
        raise ValueError(
            f"{str(path)!r}: {name} is not {original}, but the model has one weight for both: "
            f"{problem}. Take a file in which they are equal, or a config that has both."
        )


def copies_in(shapes, copies, prefix=""):
    """Finds the arrays of a file that must be copies of others.

    Args:
        shapes: container of the names in the file.
        copies: dict of a name to that of its original, in files of models with a head.
        prefix: str. The prefix of names in such files, and in no others.
    Returns:
        dict of name to name, both in the file. If the file lacks an original, its first copy
        replaces it.
    """
    firsts, found = {}, {}
    for name, original in (*((x, x) for x in copies.values()), *copies.items()):
        for variant in (name, name.removeprefix(prefix)):
            if variant in shapes and firsts.setdefault(original, variant) != variant:
                found[variant] = firsts[original]
    return found


def notes_on(shapes, copies, obsolete, prefix=""):
    """Returns a report's notes on arrays that a model does not use, and need not: dict by name.

    Args:
        shapes, prefix: as in `copies_in`.
        copies: the result of `copies_in`.
        obsolete: names of arrays that no model uses, in files of models with a head.
    """
    notes = {name: f"{name} is a copy of {original}: left out" for name, original in copies.items()}
    for name in (*obsolete, *(name.removeprefix(prefix) for name in obsolete)):
        if name in shapes:
            notes[name] = f"{name} is obsolete: left out"
    return notes


def _difference(one, other):
    """How two arrays of floats differ, in words; '' if they are equal."""
    if one.shape != other.shape:
        return f"their shapes are {list(one.shape)} and {list(other.shape)}"
    one, other = np.atleast_1d(one), np.atleast_1d(other)
    if one.dtype == other.dtype and np.array_equal(one, other):
        return ""
    gaps = []
    for first in range(0, len(one), _ROWS):
        x, y = (part[first : first + _ROWS].astype(np.float64) for part in (one, other))
        is_other = (x != y) & ~(np.isnan(x) & np.isnan(y))
        with np.errstate(invalid="ignore"):  # Of infinities.
            gaps.append(np.max(np.abs(x - y), initial=0, where=is_other))
    largest = np.max(gaps, initial=0)
    return f"they differ by up to {largest:.3g}" if largest != 0 else ""
