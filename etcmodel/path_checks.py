"""Refuses folder names that TensorFlow would take for patterns.

TensorFlow is not needed.
"""

import os

_SPECIAL = "*?[\\"


def check_no_pattern(path, name):
    """Refuses a path at which TensorFlow cannot find a checkpoint again.

    TensorFlow finds a checkpoint's files by a pattern that begins with their path: in "run [1]" it
    finds none, and when it deletes old ones in "run*", it removes those of other runs.

    Args:
        path: str or path, of a checkpoint or of its folder.
        name: str. Its name in the error: "`output_dir`".
    Raises:
        ValueError: naming the characters.
    """
    path = os.fspath(path)
    if found := [character for character in _SPECIAL if character in path]:
        raise ValueError(
            f"{name} must not have {' or '.join(found)} in it: to TensorFlow that is a pattern, "
            f"which may not find the checkpoint, or others too. Received: {path!r}"
        )
