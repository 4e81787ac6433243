"""File systems for `atomic_files`: local ones, which have locks, and remote ones."""

import contextlib
import errno
import os
import platform
import re
import shutil
import threading

from etcmodel import posix_only

# Suffixes of names: of this library, and of its first edition.
_TEMPORARY = r"(\.[0-9a-f]+)?\.tmp|\.unfinished-[0-9a-f]{8,}"
_NO_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EBADF, errno.EROFS)  # Where it has no meaning.
_IS_TEMPORARY = re.compile(f"({_TEMPORARY})$")


def file_system(path):
    return RemoteFiles if "://" in os.fspath(path) else LocalFiles


class _OfThread(threading.local):
    owned = frozenset()  # Of files and folders whose locks it holds: (device, number).


_of_thread = _OfThread()


@contextlib.contextmanager
def naming(path):
    """Adds the file's name to system errors without one."""
    try:
        yield
    except OSError as error:
        if error.filename or not error.strerror:
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


def is_temporary(entry, name):
    """Whether an entry of a folder is a temporary name of the file or folder `name`: bool."""
    return bool(re.fullmatch(re.escape(name) + f"({_TEMPORARY})", entry))


class LocalFiles:
    """Operations on this machine's files."""

    renames_at_once = True  # A renamed file is at one of the two paths, never at both.

    @staticmethod
    def rename(source, target):
        os.replace(source, target)

    @staticmethod
    def exists(path):
        return os.path.lexists(path)

    @staticmethod
    def names(folder):
        with contextlib.suppress(OSError):  # No folder, or one that may not be listed.
            return os.listdir(folder or ".")
        return []

    @staticmethod
    def read(path):
        with open(path, "rb") as file:
            return file.read()

    @staticmethod
    def sync(path):
        """Waits until a file, or the names in a folder, would survive a power failure."""
        if os.path.isdir(path or ".") and not posix_only.has_open_folders():
            return
        descriptor = os.open(path or ".", os.O_RDONLY)
        try:
            with naming(path):
                os.fsync(descriptor)
        except OSError as error:
            if error.errno not in _NO_SYNC:
                raise
        finally:
            os.close(descriptor)

    @classmethod
    @contextlib.contextmanager
    def locked_file(cls, path, text):
        """Writes a file that is complete when it gets its name; holds its lock meanwhile."""
        with cls.open_text(f"{path}.tmp") as file:
            with contextlib.suppress(OSError):  # The file system has no locks.
                posix_only.lock(file)
            with naming(path):
                file.write(text)
                file.flush()
            cls.sync(f"{path}.tmp")
            cls.rename(f"{path}.tmp", path)
            yield

    @staticmethod
    @contextlib.contextmanager
    def locked(path):
        """Waits for the lock of a file; yields whether it is held, as where there are locks."""
        descriptor = _lock(path, wait=True)
        try:
            yield descriptor is not None
        finally:
            if descriptor is not None:
                os.close(descriptor)

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
        with _owned(descriptor):
            yield path

    @staticmethod
    @contextlib.contextmanager
    def alone_in(folder):
        with contextlib.ExitStack() as stack:
            if not _is_owned(folder or "."):  # Else it would wait for itself.
                stack.enter_context(_owned(_lock(folder or ".", wait=True)))
            yield

    @classmethod
    @contextlib.contextmanager
    def held(cls, path):
        cls.makedirs(os.path.dirname(path))
        is_there = False
        while not is_there:  # Else its last holder has removed it meanwhile.
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
            try:
                posix_only.lock(descriptor)
            except BlockingIOError as error:
                holder = os.read(descriptor, 1000).decode("utf-8", "replace").strip()
                os.close(descriptor)
                raise BlockingIOError(error.errno, holder or "another process", path) from error
            except OSError:  # The file system has no locks.
                break
            with contextlib.suppress(OSError):
                is_there = os.path.samestat(os.fstat(descriptor), os.stat(path))
            if not is_there:
                os.close(descriptor)
        try:
            with contextlib.suppress(OSError):  # A full disk: it is held without naming the holder.
                os.ftruncate(descriptor, 0)
                os.write(descriptor, f"process {os.getpid()} on {platform.node()}\n".encode())
            yield
        finally:
            cls.remove(path)
            os.close(descriptor)

    @staticmethod
    def remove(path):
        if os.path.isdir(path):
            shutil.rmtree(path, ignore_errors=True)
        else:
            with contextlib.suppress(OSError):
                os.remove(path)

    @classmethod
    def remove_abandoned(cls, paths, is_needed):
        """Removes leftovers of killed processes for those paths, unless `is_needed` of its path."""
        found = {}  # By folder, each listed only once for any number of paths.
        for path in paths:
            folder, name = os.path.split(path)
            if folder not in found:
                found[folder] = list(filter(_IS_TEMPORARY.search, os.listdir(folder or ".")))
            for entry in found[folder]:
                place = os.path.join(folder, entry)
                if entry == f"{name}.tmp" and os.path.isdir(place):
                    continue  # The first edition wrote files of such names; a folder is a user's.
                if is_temporary(entry, name) and not is_needed(place):
                    cls._remove_unless_held(place)

    @classmethod
    def _remove_unless_held(cls, path):
        descriptor = _lock(path)
        if descriptor is not None:
            cls.remove(path)
            os.close(descriptor)


@contextlib.contextmanager
def _owned(descriptor):
    """Records that this thread holds a lock, or none for None, and frees it at the end."""
    if descriptor is None:
        yield
        return
    stat = os.fstat(descriptor)
    before = _of_thread.owned
    _of_thread.owned = before | {(stat.st_dev, stat.st_ino)}
    try:
        yield
    finally:
        _of_thread.owned = before
        os.close(descriptor)


def _is_owned(path):
    with contextlib.suppress(OSError):
        stat = os.stat(path)
        return (stat.st_dev, stat.st_ino) in _of_thread.owned
    return False


def _lock(path, wait=False):
    """A descriptor that holds the lock of a file or folder; None if it is not available."""
    with contextlib.ExitStack() as stack:
        try:
            # NFS locks only files open for writing, which no folder can be.
            descriptor = os.open(path, os.O_RDONLY if os.path.isdir(path) else os.O_RDWR)
            stack.callback(os.close, descriptor)
            posix_only.lock(descriptor, wait=wait)
            is_there = os.path.samestat(os.fstat(descriptor), os.stat(path))
        except OSError:  # Gone, or another's, or the file system has no locks.
            return None
        if not is_there:
            return None
        stack.pop_all()
        return descriptor


class RemoteFiles:
    """The same for files that TensorFlow can access."""

    renames_at_once = False  # Buckets copy, and then remove.

    @staticmethod
    def rename(source, target):
        gfile().rename(source, target, overwrite=True)

    @staticmethod
    def exists(path):
        # TensorFlow's in-memory file system takes the start of a name for a folder.
        return gfile().exists(path) and not gfile().isdir(path)

    @staticmethod
    def names(folder):
        return [x.rstrip("/") for x in gfile().listdir(folder)] if gfile().isdir(folder) else []

    @staticmethod
    def read(path):
        with gfile().GFile(path, "rb") as file:
            return file.read()

    @staticmethod
    def sync(path):
        del path  # A bucket keeps closed files.

    @classmethod
    @contextlib.contextmanager
    def locked_file(cls, path, text):
        with cls.open_text(f"{path}.tmp") as file:
            file.write(text)
        cls.rename(f"{path}.tmp", path)
        yield

    @staticmethod
    def locked(path):
        return contextlib.nullcontext(False)

    @staticmethod
    def open_text(path):
        return gfile().GFile(path, "w")

    @staticmethod
    def makedirs(folder):
        gfile().makedirs(folder)

    @staticmethod
    @contextlib.contextmanager
    def made(make_name, is_folder):
        path = make_name()
        if is_folder:
            gfile().makedirs(path)
        yield path

    @staticmethod
    def alone_in(folder):
        return contextlib.nullcontext()

    @staticmethod
    def held(path):
        return contextlib.nullcontext()

    @staticmethod
    def remove(path):
        if gfile().isdir(path):
            gfile().rmtree(path)
        elif gfile().exists(path):
            gfile().remove(path)

    @staticmethod
    def remove_abandoned(paths, is_needed):
        del paths, is_needed  # They may belong to a live process on another machine.


def gfile():
    """TensorFlow's file system, which takes seconds to import."""
    import tensorflow as tf  # Slow to import.

    return tf.io.gfile
