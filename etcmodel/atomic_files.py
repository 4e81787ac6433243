"""Files and folders that appear under their names only when they are complete.

They are written beside their place under a temporary name. What a killed process leaves there is
removed by the next one that writes to the same place: a live process holds a lock on its temporary
file or folder, which the system takes back when it ends. Where there are no locks, as on remote
(`gs://…`) and some network file systems, what was left stays. No TensorFlow is needed for local
files.
"""

import contextlib
import fcntl
import json
import os
import re
import shutil
import uuid

__all__ = ["alone_in", "new_file", "new_folder", "scratch_folder", "write_json", "write_text"]

# What may follow a name: of this library, and of its first edition.
_TEMPORARY = r"(\.[0-9a-f]+)?\.tmp|\.unfinished-[0-9a-f]+"


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
        _files(path).rename(temporary, path)


@contextlib.contextmanager
def new_folder(path):
    """Likewise for a folder; an older one that is not empty is not replaced.

    Yields:
        str. Name of an empty folder.
    """
    with _temporary(path, ".tmp", is_folder=True) as temporary:
        yield temporary
        _files(path).rename(temporary, path)


@contextlib.contextmanager
def scratch_folder(path):
    """Gives a folder beside `path`, for what is to be moved from there; it is gone at the end.

    Yields:
        str. Name of an empty folder.
    """
    with _temporary(path, "", is_folder=True) as temporary:
        yield temporary


@contextlib.contextmanager
def alone_in(folder):
    """Waits for other processes that are in such a block for the same folder, if it has locks."""
    with _files(folder).alone_in(folder):
        yield


def write_json(path, value):
    """Writes a value as indented JSON; folders are made."""
    write_text(path, [json.dumps(value, ensure_ascii=False, indent=1), "\n"])


def write_text(path, parts):
    """Writes strings one after the other, such as the lines of a JSONL file; folders are made.

    Args:
        path: str.
        parts: iterable of str.
    """
    with new_file(path) as temporary, _files(path).open_text(temporary) as file:
        for part in parts:
            file.write(part)


@contextlib.contextmanager
def _temporary(path, suffix, is_folder=False):
    path = os.fspath(path).rstrip("/")
    files = _files(path)
    files.makedirs(os.path.dirname(path))
    files.remove_abandoned(path)
    with files.made(lambda: _temporary_name(path, suffix), is_folder) as temporary:
        try:
            yield temporary
        finally:
            files.remove(temporary)


def _temporary_name(path, suffix):
    mark = uuid.uuid4().hex[:8]
    return f"{path}.{mark}{suffix}" if suffix else f"{path}.unfinished-{mark}"


def _files(path):
    return _RemoteFiles if "://" in os.fspath(path) else _LocalFiles


class _LocalFiles:
    """What is done with files of this machine."""

    @staticmethod
    def rename(source, target):
        os.replace(source, target)

    @staticmethod
    def open_text(path):
        return open(path, "w", encoding="utf-8")

    @staticmethod
    def makedirs(folder):
        os.makedirs(folder or ".", exist_ok=True)

    @staticmethod
    @contextlib.contextmanager
    def made(make_name, is_folder):
        while True:
            path = make_name()
            if is_folder:
                os.mkdir(path)
            else:
                open(path, "x").close()
            # Meanwhile, another process may have taken it for abandoned, and remove it.
            descriptor = _lock(path, wait=True)
            if descriptor is not None or os.path.exists(path):
                break
        try:
            yield path
        finally:
            if descriptor is not None:
                os.close(descriptor)

    @staticmethod
    @contextlib.contextmanager
    def alone_in(folder):
        descriptor = _lock(folder or ".", wait=True)
        try:
            yield
        finally:
            if descriptor is not None:
                os.close(descriptor)

    @staticmethod
    def remove(path):
        if os.path.isdir(path):
            shutil.rmtree(path, ignore_errors=True)
        else:
            with contextlib.suppress(OSError):
                os.remove(path)

    @classmethod
    def remove_abandoned(cls, path):
        folder, name = os.path.split(path)
        temporary = re.compile(re.escape(name) + f"({_TEMPORARY})")
        for entry in os.listdir(folder or "."):
            if temporary.fullmatch(entry):
                left = os.path.join(folder, entry)
                descriptor = _lock(left)
                if descriptor is not None:
                    cls.remove(left)
                    os.close(descriptor)


def _lock(path, wait=False):
    """A descriptor that holds the lock of a file or folder; None if it cannot be had."""
    with contextlib.ExitStack() as stack:
        try:
            # NFS locks only what is open for writing, which no folder can be.
            descriptor = os.open(path, os.O_RDONLY if os.path.isdir(path) else os.O_RDWR)
            stack.callback(os.close, descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            is_there = os.path.samestat(os.fstat(descriptor), os.stat(path))
        except OSError:  # Gone, or another's, or the file system has no locks.
            return None
        if not is_there:
            return None
        stack.pop_all()
        return descriptor


class _RemoteFiles:
    """Likewise for what TensorFlow reaches."""

    @staticmethod
    def rename(source, target):
        _gfile().rename(source, target, overwrite=True)

    @staticmethod
    def open_text(path):
        return _gfile().GFile(path, "w")

    @staticmethod
    def makedirs(folder):
        _gfile().makedirs(folder)

    @staticmethod
    @contextlib.contextmanager
    def made(make_name, is_folder):
        path = make_name()
        if is_folder:
            _gfile().makedirs(path)
        yield path

    @staticmethod
    def alone_in(folder):
        del folder
        return contextlib.nullcontext()

    @staticmethod
    def remove(path):
        if _gfile().isdir(path):
            _gfile().rmtree(path)
        elif _gfile().exists(path):
            _gfile().remove(path)

    @staticmethod
    def remove_abandoned(path):
        del path  # It may be a live process's of another machine.


def _gfile():
    import tensorflow as tf  # Slow to import.

    return tf.io.gfile
