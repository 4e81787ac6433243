"""The extras of the package, such as `etcmodel[train]`: what to install where one is missing.

No TensorFlow is needed.
"""

import contextlib
from collections.abc import Iterator

__all__ = ["MissingExtraError", "needed"]


class MissingExtraError(ModuleNotFoundError):
    """A package is not installed that an extra of this one brings."""


@contextlib.contextmanager
def needed(extra: str, reason: str = "") -> Iterator[None]:
    """Tells which extra to install if an import of this block fails.

    Args:
        extra: str. Name of the extra that brings what the block imports.
        reason: str. What needs it: a sentence.
    Raises:
        MissingExtraError: naming the package and the extra, if the package is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if isinstance(error, MissingExtraError):
            raise
        message = f"{reason} The package {error.name!r} is needed here and not installed.".lstrip()
        raise MissingExtraError(
            f"{message} It comes with the extra {extra!r}: pip install 'etcmodel[{extra}]'",
            name=error.name,
        ) from error
