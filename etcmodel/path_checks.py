"""Names of folders that TensorFlow would take for patterns.

No TensorFlow is needed.
"""

import os

__all__ = ["check_no_pattern"]

_SPECIAL = "*?[\\"


def check_no_pattern(path, name):
    """Refuses a place where TensorFlow cannot find a checkpoint again.

    It looks for the files of one by a pattern that begins with their path: in "run [1]" it finds
    none, and where it makes room in "run*", it removes those of other runs.

    Args:
        path: str or path, of a checkpoint or of its folder.
        name: str. What it is, for the error: "`output_dir`".
    Raises:
        ValueError: naming the characters.
    """
    path = os.fspath(path)
    if found := [character for character in _SPECIAL if character in path]:
        raise ValueError(
            f"{name} must not have {' or '.join(found)} in it: to TensorFlow that is a pattern, "
            f"which may not find the checkpoint, or others too. Received: {path!r}"
        )
