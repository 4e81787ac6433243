"""Files and folders that appear under their names only when they are complete.

They are written beside their place under a temporary name. What a killed process leaves there is
removed by the next one that writes to the same place: a live process holds a lock on its temporary
file or folder, which the system takes back when it ends. Where there are no locks, as on remote
(`gs://…`) and some network file systems, what was left stays. No TensorFlow is needed for local
files.
"""

import contextlib
import errno
import itertools
import json
import os
import uuid

from etcmodel import file_systems

__all__ = [
    "alone_in",
    "check_writable",
    "held",
    "new_file",
    "new_folder",
    "prepared_json",
    "replace_files",
    "scratch_folder",
    "write_json",
    "write_text",
    "write_texts",
]


@contextlib.contextmanager
def new_file(path):
    """Gives a temporary name to write to; at the end, the file gets its own name.

    Args:
        path: str. An older file is replaced. Folders are made.
    Yields:
        str. The temporary name; an empty file of that name is there.
    Raises:
        OSError: if nothing can be written there.
    """
    with _temporary(path, ".tmp") as temporary:
        yield temporary
        file_systems.file_system(path).rename(temporary, path)


@contextlib.contextmanager
def new_folder(path):
    """Likewise for a folder; an older one that is not empty is not replaced.

    Yields:
        str. Name of an empty folder.
    """
    with _temporary(path, ".tmp", is_folder=True) as temporary:
        yield temporary
        file_systems.file_system(path).rename(temporary, path)


@contextlib.contextmanager
def scratch_folder(path):
    """Gives a folder beside `path`, for what is to be moved from there; it is gone at the end.

    Yields:
        str. Name of an empty folder.
    """
    with _temporary(path, "", is_folder=True) as temporary:
        yield temporary


def check_writable(path):
    """Finds out, before long work, whether a file of that name can be written.

    Raises:
        OSError: naming it, if not.
    """
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    with _temporary(path, ".tmp"):
        pass


def replace_files(moves, olds, folder):
    """Gives new files the place of old ones: of all of them, or after a failure of none.

    The old ones go first, in their order, and the new ones come in theirs: what a killed process
    leaves is no mixture.

    Args:
        moves: list of (path, its new path).
        olds: list of str. Paths of files that are to be gone.
        folder: str. A `scratch_folder` beside them, for the old ones until the new ones are there.
    """
    names = (os.path.join(folder, f"old-{number:05d}") for number in itertools.count())
    done = []
    try:
        for source, target in [*zip(olds, names, strict=False), *moves]:
            file_systems.gfile().rename(source, target, overwrite=True)
            done.append((source, target))
    except BaseException:
        for source, target in reversed(done):
            with contextlib.suppress(Exception):  # The first error tells more.
                file_systems.gfile().rename(target, source, overwrite=True)
        raise


@contextlib.contextmanager
def alone_in(folder):
    """Waits for other processes that are in such a block for the same folder, if it has locks."""
    with file_systems.file_system(folder).alone_in(folder):
        yield


@contextlib.contextmanager
def held(path):
    """Holds a lock file, which the death of the process frees, too; it is gone at the end.

    Where there are no locks, as on remote file systems, nothing is held.

    Args:
        path: str. Its folder is made.
    Raises:
        BlockingIOError: if another process holds it; tells which, as far as it is known.
    """
    with file_systems.file_system(path).held(os.fspath(path)):
        yield


def write_json(path, value):
    """Writes a value as indented JSON; folders are made."""
    with prepared_json(path, value):
        pass


@contextlib.contextmanager
def prepared_json(path, value):
    """Likewise, but the file gets its name at the end of the block: it is written before that."""
    with new_file(path) as temporary:
        _write(path, temporary, [json.dumps(value, ensure_ascii=False, indent=1), "\n"])
        yield


def write_text(path, parts):
    """Writes strings one after the other, such as the lines of a JSONL file; folders are made.

    Args:
        path: str.
        parts: iterable of str.
    """
    with new_file(path) as temporary:
        _write(path, temporary, parts)


def write_texts(texts):
    """Writes many files; a folder is listed once for leftovers, not again for each file.

    Args:
        texts: dict of path to str. Each file appears when it is complete; folders are made.
    """
    paths = {}
    for path in texts:
        paths.setdefault(file_systems.file_system(path), []).append(path)
    for files, of_system in paths.items():
        for folder in {os.path.dirname(path) for path in of_system}:
            files.makedirs(folder)
        files.remove_abandoned(of_system)
        for path in of_system:
            with _made(path, ".tmp") as temporary:
                _write(path, temporary, [texts[path]])
                files.rename(temporary, path)


def _write(path, temporary, parts):
    try:
        with file_systems.file_system(path).open_text(temporary) as file:
            for part in parts:
                file.write(part)
    except OSError as error:
        if error.filename or not error.strerror:
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error  # Else unnamed.


@contextlib.contextmanager
def _temporary(path, suffix, is_folder=False):
    path = os.fspath(path).rstrip("/")
    files = file_systems.file_system(path)
    files.makedirs(os.path.dirname(path))
    files.remove_abandoned([path])
    with _made(path, suffix, is_folder) as temporary:
        yield temporary


@contextlib.contextmanager
def _made(path, suffix, is_folder=False):
    files = file_systems.file_system(path)
    with files.made(lambda: _temporary_name(path, suffix), is_folder) as temporary:
        try:
            yield temporary
        finally:
            files.remove(temporary)


def _temporary_name(path, suffix):
    mark = uuid.uuid4().hex[:8]
    return f"{path}.{mark}{suffix}" if suffix else f"{path}.unfinished-{mark}"
