"""Versions of files that programs write: those of a later version are refused, not misread.

TensorFlow is not needed.
"""

ENTRY = "format_version"  # Of a JSON object; without it, the version is 1.
EXPORT = RUN = 1


def check(values, newest, path):
    """Refuses files written by a later version of this package.

    Args:
        values: dict read from JSON.
        newest: int. The latest version that can be read.
        path: str. The file they were read from.
    Raises:
        ValueError: naming the path, if the version is a later one, or invalid.
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
