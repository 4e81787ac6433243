"""Versions of what programs write to disk: what a later version wrote is refused, not misread.

No TensorFlow is needed.
"""

__all__ = ["ENTRY", "EXPORT", "RUN", "check"]

ENTRY = "format_version"  # Of a JSON object; what lacks it is of version 1.
EXPORT = RUN = 1


def check(values, newest, path):
    """Refuses what a later version of this package wrote.

    Args:
        values: dict that JSON held.
        newest: int. The last version that can be read.
        path: str. Where they were read.
    Raises:
        ValueError: naming the path, if the version is a later one, or none.
    """
    version = values.get(ENTRY, 1)
    if type(version) is not int or version < 1:
        raise ValueError(
            f"{path}: `{ENTRY}` must be an integer from 1 on. Received: {version!r}. Restore the "
            "file."
        )
    if version > newest:
        raise ValueError(
            f"{path}: `{ENTRY}` is {version}, and this version of etcmodel reads those up to "
            f"{newest}. Install the version that wrote it, or make it anew with this one."
        )
