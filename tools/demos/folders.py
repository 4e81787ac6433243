"""The folder of a demo, which each run makes anew."""

import pathlib
import shutil

__all__ = ["new_folder"]

_MARK = ".made_by_demo"  # What is removed was made by a demo, and is nobody's own.


def new_folder(path):
    """Makes a folder, in place of that of an earlier run.

    Args:
        path: str.
    Returns:
        `pathlib.Path`.
    Raises:
        ValueError: if there is a folder with something else in it, or a file.
    """
    folder = pathlib.Path(path)
    is_of_demo = (folder / _MARK).exists()
    if folder.exists() and not is_of_demo and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(
            f"--output_dir: {path!r} is no folder of an earlier demo; it would be removed. Give "
            "another one, or remove it yourself."
        )
    if is_of_demo:
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _MARK).touch()
    return folder
