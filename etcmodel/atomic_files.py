"""Atomic writes: files and folders appear under their names only once they are complete.

They are written under a temporary name beside the final path. What a killed process leaves there is
removed by the next one that writes to the same path: a live process holds a lock on its temporary
file or folder, which the system releases when the process ends. Without locks, as on remote
(`gs://…`) and some network file systems, leftovers stay. TensorFlow is not needed for local files.

Files that belong together are replaced together (`replace_files`). The new ones are complete in a
`scratch_folder` beside the old ones, and a file there lists the moves to come, before the first one
is made: until then the old files are untouched, from then on each move can be repeated or undone by
renaming alone. The old files wait in the scratch folder, and are deleted after all new ones are in
place. The next reader or writer completes what a killed process has begun (`settle`).
"""

import contextlib
import errno
import json
import os
import re
import uuid

from absl import logging

from etcmodel import bounded_json, file_systems

_SCRATCH = re.compile(r"(.+)\.unfinished-[0-9a-f]{8,}")
_AHEAD, _BACK = "moves.json", "moves_back.json"  # The list of moves, by direction.
_MOVES, _OLDS, _OLD = "moves", "olds", "replaced-{:05d}"
_OLD_OF_EARLIER_VERSIONS = "old-00000"
# What is moved last: weights, a checkpoint's index, settings of shards.
_LAST_ENDINGS = ("", ".index", ".config.json")


@contextlib.contextmanager
def new_file(path):
    """Context manager: yields a temporary name, and renames the file at the end.

    Args:
        path: str. An existing file is replaced. Folders are created.
    Yields:
        str. The temporary name of an existing, empty file.
    Raises:
        OSError: if the file cannot be written.
    """
    with _temporary(path, ".tmp") as temporary:
        yield temporary
        file_systems.file_system(path).rename(temporary, path)


@contextlib.contextmanager
def new_folder(path):
    """Like `new_file`, for a folder; an existing one that is not empty is not replaced.

    Yields:
        str. Name of an empty folder.
    """
    with _temporary(path, ".tmp", is_folder=True) as temporary:
        yield temporary
        file_systems.file_system(path).rename(temporary, path)


@contextlib.contextmanager
def scratch_folder(path):
    """Context manager: a temporary folder beside `path`, for files to be moved from there.

    Moves that a killed process has begun there are completed first.

    Yields:
        str. Name of an empty folder.
    Raises:
        ValueError: see `settle`.
    """
    directory, name = os.path.split(os.fspath(path).rstrip("/"))
    settle(directory, lambda x: x == name)
    with _temporary(path, "", is_folder=True) as temporary:
        yield temporary
    # Now its path is taken.
    file_systems.file_system(path).remove_abandoned([os.path.join(directory, name)], _is_needed)


def temporary_names(path):
    """Returns temporary names beside `path`, of running and of killed processes."""
    directory, name = os.path.split(os.fspath(path).rstrip("/"))
    files = file_systems.file_system(path)
    return [x for x in files.names(directory) if file_systems.is_temporary(x, name)]


def check_writable(path):
    """Checks, before long work, whether a file of that name can be written.

    Raises:
        OSError: naming it, if not.
    """
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    with _temporary(path, ".tmp"):
        pass


def check_free(path):
    """Raises a ValueError if there is something at the path of an export, which replaces nothing.

    >>> from etcmodel import atomic_files
    >>> atomic_files.check_free("my_model")
    Traceback (most recent call last):
        ...
    ValueError: There is already something at 'my_model'; export elsewhere.
    """
    if os.path.lexists(path) or file_systems.gfile().exists(str(path)):
        raise ValueError(f"There is already something at {str(path)!r}; export elsewhere.")


def replace_files(moves, folder, others=tuple):
    """Replaces old files by new ones: all of them, or after a failure none.

    The old ones are moved first, the last of the new names before the others, and the new ones come
    in order: no program ever finds a mixture.

    Args:
        moves: list of (path in `folder`, its new path). All new paths are beside `folder`.
        folder: str. A `scratch_folder`; it keeps the old files until the new ones are there.
        others: function without arguments that returns further paths, of files to remove if they
            exist. It is called while no other process moves files there.
    Raises:
        OSError: if a file cannot be moved; or a ValueError, if a foreign program interferes.
    """
    directory, files = os.path.dirname(folder), file_systems.file_system(folder)
    with alone_in(directory):
        olds = dict.fromkeys([*(path for _, path in reversed(moves)), *others()])
        names = {os.path.basename(path) for path in olds}
        for path in olds:
            if not is_beside(path, folder):
                raise ValueError(f"{path!r} must be in {directory!r}, with what belongs to it.")
        settle(directory, names.__contains__)
        plan = {
            _MOVES: [list(map(os.path.basename, move)) for move in moves],
            _OLDS: [os.path.basename(path) for path in olds if files.exists(path)],
        }
        if plan[_OLDS]:  # Else nothing could be lost.
            for path in (*(source for source, _ in moves), folder):
                files.sync(path)
        with files.locked_file(os.path.join(folder, _AHEAD), json.dumps(plan, indent=1)):
            try:
                _move(folder, plan)
            except BaseException:
                with contextlib.suppress(Exception):  # The first error is more informative.
                    _move_back(folder, plan)
                raise


def is_beside(path, folder):
    """Returns whether `replace_files` can move files of a `scratch_folder` to `path`: bool."""
    folders = (os.path.dirname(os.fspath(x)) for x in (path, folder))
    return len(set(map(os.path.abspath, folders))) == 1


def move_all(folder, last, others=()):
    """Applies `replace_files` to all files of a `scratch_folder`, keeping their names.

    Args:
        folder: str.
        last: str. Name of the file to move last: without it, programs ignore the rest.
        others: sequence of str. Names of older files to remove, too.
    """
    directory, names = os.path.dirname(folder), file_systems.file_system(folder).names(folder)
    names = sorted(names, key=lambda name: (name == last, name))
    moves = [(os.path.join(folder, name), os.path.join(directory, name)) for name in names]
    replace_files(moves, folder, lambda: [os.path.join(directory, name) for name in others])


def settle(directory, concerns=None):
    """Completes replacements that killed processes have begun in a folder; waits for live ones.

    Args:
        directory: str. It need not exist.
        concerns: function of a file's name: whether it is about to be read or written. None: all
            are.
    Raises:
        ValueError: in a line that says what to do, if such files cannot be moved, or it is unknown
            whether the process lives, as without locks.
    """
    directory = os.fspath(directory)
    for folder, plan, is_locked in _begun(directory, concerns):
        names = [_name_of(folder), *plan[_OLDS], *(target for _, target in plan[_MOVES])]
        is_concern = concerns is None or any(map(concerns, names))
        try:
            if not is_locked:
                raise OSError("it cannot be locked")
            _complete(folder, plan)
        except ValueError:
            if is_concern:
                raise
        except OSError as error:
            if is_concern:
                raise ValueError(
                    f"{folder!r} holds files of a saving that was killed, or goes on in another "
                    f"process ({error}). If none goes on there, complete it by "
                    f"`etcmodel.atomic_files.finish({directory!r})`, or take it back by "
                    f"`etcmodel.atomic_files.go_back({directory!r})`."
                ) from error


def finish(directory):
    """Like `settle`, also without locks: no other process may be writing there."""
    for folder, plan, _ in _begun(directory):
        _complete(folder, plan)


def go_back(directory):
    """Undoes a replacement that a killed process has begun: the opposite of `finish`.

    Raises:
        ValueError: if there is nothing to undo.
    """
    was_begun = False
    for folder, plan, _ in _begun(directory):
        was_begun = True
        _move_back(folder, plan)
        file_systems.file_system(folder).remove(folder)
    if not was_begun:
        raise ValueError(f"Nothing in {directory!r} is half replaced.")


def remains_of_older_versions(directory, concerns=None):
    """Reports needed leftovers of earlier versions that were killed while replacing files.

    Args:
        directory: str.
        concerns: as in `settle`, of the name of the main file, or of a checkpoint without suffix.
    Returns:
        str. A sentence for an error, or an empty one.
    """
    for folder in _scratch_folders(directory):
        if _is_needed(folder) and (concerns is None or concerns(_name_of(folder))):
            return (
                f"{folder!r} is of a saving by an earlier version that was killed: its `old-…` "
                "files are those of the older model, the weights first, and the others are "
                f"complete and of the newer one. To have that, move these to {directory!r}; or "
                "save anew."
            )
    return ""


def _begun(directory, concerns=None):
    """Each incomplete replacement in a folder; waits for its process, if it lives.

    An invalid list of moves is an error if the main file is of concern, and else ignored.

    Yields:
        (scratch folder, its list of moves, whether its lock is held until the next one).
    """
    files = file_systems.file_system(directory)
    for folder in _scratch_folders(directory):
        if journal := _journal(files, folder):
            with files.locked(journal) as is_locked:
                if not files.exists(journal):  # Its process, or another reader, was faster.
                    continue
                try:
                    plan = _plan(journal)
                except ValueError:
                    if concerns is None or concerns(_name_of(folder)):
                        raise
                else:
                    yield folder, plan, is_locked


def _scratch_folders(directory):
    names = file_systems.file_system(directory).names(directory)
    return [os.path.join(directory, name) for name in sorted(names) if _SCRATCH.fullmatch(name)]


def _name_of(folder):
    return _SCRATCH.fullmatch(os.path.basename(folder))[1]


def _journal(files, folder):
    paths = (os.path.join(folder, name) for name in (_AHEAD, _BACK))
    return next(filter(files.exists, paths), None)


def _plan(journal):
    """The moves listed in a file; all are within its folder and the one above."""
    files = file_systems.file_system(journal)
    plan = bounded_json.load_object(files.read(journal), journal)
    moves, olds = plan.get(_MOVES), plan.get(_OLDS)
    is_list = isinstance(moves, list) and isinstance(olds, list)
    if is_list and all(isinstance(move, list) and len(move) == 2 for move in moves):
        names = [name for move in moves for name in move] + olds
        if all(isinstance(x, str) and x == os.path.basename(x) and x.strip(".") for x in names):
            return plan
    raise ValueError(f"{journal!r} is no list of moves, as this library writes it.")


def _complete(folder, plan):
    files = file_systems.file_system(folder)
    (_move if files.exists(os.path.join(folder, _AHEAD)) else _move_back)(folder, plan)
    files.remove(folder)
    logging.info("%s: completed what a killed process had begun.", folder)


def _places(folder, plan):
    """dicts of a file's path to that in the scratch folder: of new files, and of old ones."""
    directory = os.path.dirname(folder)
    new = {os.path.join(directory, y): os.path.join(folder, x) for x, y in plan[_MOVES]}
    names = (os.path.join(directory, name) for name in plan[_OLDS])
    return new, {path: os.path.join(folder, _OLD.format(i)) for i, path in enumerate(names)}


def _move(folder, plan):
    """Makes the remaining moves."""
    files, (new, old) = file_systems.file_system(folder), _places(folder, plan)
    if files.renames_at_once:
        _check_no_others(files, folder, new, old)
    for path, kept in old.items():
        if files.exists(path) and (path not in new or files.exists(new[path])):
            if not files.exists(kept):
                files.rename(path, kept)
            elif path not in new:  # Copied, and not yet removed.
                files.remove(path)
    for path, source in new.items():
        if files.exists(source):
            files.rename(source, path)
    files.sync(os.path.dirname(folder))
    files.remove(os.path.join(folder, _AHEAD))


def _check_no_others(files, folder, new, old):
    """Raises ValueError if a foreign program has put a file where one is to be moved to."""
    for path in {**new, **old}:
        is_new = path in new and not files.exists(new[path])
        is_old = path in old and not files.exists(old[path])
        if files.exists(path) and not is_new and not is_old:
            raise ValueError(
                f"{path!r} was written by another program while {folder!r}, of a saving that was "
                "killed, has a file for its place. Remove one of the two."
            )


def _move_back(folder, plan):
    """Undoes the moves made so far."""
    files, (new, old) = file_systems.file_system(folder), _places(folder, plan)
    ahead, back = (os.path.join(folder, name) for name in (_AHEAD, _BACK))
    if files.renames_at_once:
        _check_no_others(files, folder, new, old)
    if files.exists(ahead):
        files.rename(ahead, back)
    for path, source in reversed(new.items()):
        if files.exists(path) and not files.exists(source):
            files.rename(path, source)
        elif files.exists(path) and path not in old and not files.renames_at_once:
            files.remove(path)  # Copied, and not yet removed at its source.
    for path, kept in reversed(old.items()):
        if files.exists(kept):
            files.rename(kept, path)
    files.sync(os.path.dirname(folder))
    files.remove(back)


def _is_needed(path):
    """Whether the leftovers of a killed process have the only copy of something."""
    files, match = file_systems.file_system(path), _SCRATCH.fullmatch(os.path.basename(path))
    if not match:
        return False
    if _journal(files, path):
        return True
    # Earlier versions kept no list, and had moved old files only if they are there.
    place = os.path.join(os.path.dirname(path), match[1])
    is_moved = files.exists(os.path.join(path, _OLD_OF_EARLIER_VERSIONS))
    return is_moved and not any(files.exists(place + ending) for ending in _LAST_ENDINGS)


@contextlib.contextmanager
def alone_in(folder):
    """Waits for other processes in such a block for the same folder, if it has locks."""
    with file_systems.file_system(folder).alone_in(folder):
        yield


@contextlib.contextmanager
def held(path):
    """Holds a lock file, which is also freed if the process dies; it is removed at the end.

    Without locks, as on remote file systems, nothing is held.

    Args:
        path: str. Its folder is created.
    Raises:
        BlockingIOError: naming the process, if known, if another one holds it.
    """
    with file_systems.file_system(path).held(os.fspath(path)):
        yield


def write_json(path, value):
    """Writes a value as indented JSON; folders are created.

    >>> from etcmodel import finetuning
    >>> finetuning.write_json("found/metrics.json", {"accuracy": 0.5})
    >>> print(open("found/metrics.json").read())
    {
     "accuracy": 0.5
    }
    """
    write_text(path, [json.dumps(value, ensure_ascii=False, indent=1), "\n"])


@contextlib.contextmanager
def prepared_copy(source, path):
    """Copies a file at once; the copy gets its name at the end of the block."""
    with new_file(path) as temporary:
        file_systems.gfile().copy(source, temporary, overwrite=True)
        yield


def write_text(path, parts):
    """Writes strings one after the other, such as the lines of a JSONL file; creates folders.

    Args:
        path: str.
        parts: iterable of str.

    >>> from etcmodel import finetuning
    >>> finetuning.write_text("found/lines.txt", ["one\\n", "two\\n"])
    >>> open("found/lines.txt").read()
    'one\\ntwo\\n'
    """
    with new_file(path) as temporary:
        _write(path, temporary, parts)


def write_texts(texts):
    """Writes many files; lists a folder for leftovers only once, not again for each file.

    Args:
        texts: dict of path to str. Each file appears once it is complete; folders are created.
    """
    paths = {}
    for path in texts:
        paths.setdefault(file_systems.file_system(path), []).append(path)
    for files, of_system in paths.items():
        for folder in {os.path.dirname(path) for path in of_system}:
            files.makedirs(folder)
        files.remove_abandoned(of_system, _is_needed)
        for path in of_system:
            with _made(path, ".tmp") as temporary:
                _write(path, temporary, [texts[path]])
                files.rename(temporary, path)


def _write(path, temporary, parts):
    with (
        file_systems.naming(path),
        file_systems.file_system(path).open_text(temporary) as file,
    ):
        for part in parts:
            file.write(part)


@contextlib.contextmanager
def _temporary(path, suffix, is_folder=False):
    path = os.fspath(path).rstrip("/")
    files = file_systems.file_system(path)
    files.makedirs(os.path.dirname(path))
    files.remove_abandoned([path], _is_needed)
    with _made(path, suffix, is_folder) as temporary:
        yield temporary


@contextlib.contextmanager
def _made(path, suffix, is_folder=False):
    files = file_systems.file_system(path)
    with files.made(lambda: _temporary_name(path, suffix), is_folder) as temporary:
        try:
            yield temporary
        finally:
            if not _is_needed(temporary):
                files.remove(temporary)


def _temporary_name(path, suffix):
    mark = uuid.uuid4().hex[:8]
    return f"{path}.{mark}{suffix}" if suffix else f"{path}.unfinished-{mark}"
