"""The package's extras, such as `etcmodel[train]`: which one to install if one is missing.

TensorFlow is not needed.
"""

import contextlib
from collections.abc import Iterator


class MissingExtraError(ModuleNotFoundError):
    """A package that an extra of this one installs is missing."""


@contextlib.contextmanager
def needed(extra: str, reason: str = "") -> Iterator[None]:
    """Names the extra to install if an import in this block fails.

    Args:
        extra: str. Name of the extra that installs what the block imports.
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
