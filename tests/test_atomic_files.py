"""Files appear whole or not at all, and what a killed process left is gone after the next one."""

import contextlib
import errno
import fcntl
import os
import signal
import subprocess
import sys
import threading

import pytest

from etcmodel import atomic_files

WRITERS = {
    "new_file": atomic_files.new_file,
    "new_folder": atomic_files.new_folder,
    "scratch_folder": atomic_files.scratch_folder,
}
# Holds a temporary file or folder until it is killed.
HOLD = """
import sys
from etcmodel import atomic_files
with getattr(atomic_files, sys.argv[1])(sys.argv[2]) as temporary:
    print(temporary, flush=True)
    sys.stdin.read()
"""


@contextlib.contextmanager
def another_process(writer, path):
    """A live process that writes to `path`, and the temporary name that it uses."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, writer, path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        yield process, process.stdout.readline().strip()


def entries(folder):
    return sorted(os.listdir(folder))


def test_a_file_appears_when_it_is_complete(tmp_path):
    path = tmp_path / "new" / "file"
    atomic_files.write_text(path, ["a", "b"])
    with atomic_files.new_file(str(path)) as temporary:
        with open(temporary, "w") as file:
            file.write("c")
        assert path.read_text() == "ab"
    assert path.read_text() == "c" and entries(path.parent) == ["file"]


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")

    def parts():
        yield "new"
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        atomic_files.write_text(path, parts())
    assert path.read_text() == "old" and entries(tmp_path) == ["file"]


def test_json_is_written_as_people_read_it(tmp_path):
    atomic_files.write_json(tmp_path / "x.json", {"é": [1]})
    assert (tmp_path / "x.json").read_text(encoding="utf-8") == '{\n "é": [\n  1\n ]\n}\n'


def test_folders_appear_whole_or_are_scratch(tmp_path):
    with atomic_files.new_folder(str(tmp_path / "kept")) as temporary:
        open(os.path.join(temporary, "a"), "w").close()
        assert not (tmp_path / "kept").exists()
    with atomic_files.scratch_folder(str(tmp_path / "gone")) as temporary:
        open(os.path.join(temporary, "b"), "w").close()
    assert entries(tmp_path) == ["kept"] and entries(tmp_path / "kept") == ["a"]


@pytest.mark.parametrize("writer", WRITERS)
def test_what_a_killed_process_left_is_removed_by_the_next_and_a_live_ones_is_not(writer, tmp_path):
    path = str(tmp_path / "x")
    with another_process(writer, path) as (process, temporary):
        assert temporary.startswith(path)
        with WRITERS[writer](path):
            assert os.path.exists(temporary)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert os.path.exists(temporary)
    with WRITERS[writer](str(tmp_path / "other")):
        pass
    assert os.path.exists(temporary)  # Of another place.
    with contextlib.suppress(OSError), WRITERS[writer](path):  # A folder of the name is there.
        assert not os.path.exists(temporary)
    assert not os.path.exists(temporary)


@pytest.mark.parametrize("writer", WRITERS)
def test_a_file_system_without_locks_is_written_to_and_nothing_of_others_is_removed(
    writer, tmp_path, monkeypatch
):
    def no_locks(descriptor, operation):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    path = str(tmp_path / "x")
    others = f"{path}.12ab34cd.tmp"
    open(others, "w").close()
    with atomic_files.alone_in(str(tmp_path)), WRITERS[writer](path) as temporary:
        assert os.path.exists(temporary) and temporary != others
    assert os.path.exists(others) and not os.path.exists(temporary)
    assert os.path.exists(path) == (writer != "scratch_folder")


def test_files_are_open_for_writing_when_they_are_locked_as_nfs_needs_it(tmp_path, monkeypatch):
    real_flock = fcntl.flock

    def flock_of_nfs(descriptor, operation):
        if fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            raise OSError(errno.EBADF, "Bad file descriptor")
        real_flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", flock_of_nfs)
    (tmp_path / "x.12ab34cd.tmp").write_text("abandoned")
    with atomic_files.new_file(str(tmp_path / "x")) as live:
        atomic_files.write_text(tmp_path / "x", ["new"])
        assert os.path.exists(live)
        assert entries(tmp_path) == sorted(["x", os.path.basename(live)])


def test_what_another_process_takes_for_abandoned_is_made_again(tmp_path, monkeypatch):
    real_flock, removed = fcntl.flock, []

    def after_a_removal(descriptor, operation):
        if not removed:
            removed.extend(tmp_path.iterdir())
            removed[0].unlink()
        real_flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", after_a_removal)
    atomic_files.write_text(tmp_path / "x", ["new"])
    assert removed and (tmp_path / "x").read_text() == "new"


def test_one_at_a_time_is_alone_in_a_folder(tmp_path):
    order = []

    def second():
        with atomic_files.alone_in(str(tmp_path)):
            order.append("second")

    thread = threading.Thread(target=second)
    with atomic_files.alone_in(str(tmp_path)):
        thread.start()
        thread.join(0.2)
        order.append("first")
    thread.join()
    assert order == ["first", "second"] and entries(tmp_path) == []
    with atomic_files.alone_in("memory://nowhere"):
        pass


def test_who_is_alone_in_a_folder_may_say_so_again(tmp_path):
    with (
        atomic_files.alone_in(str(tmp_path)),
        atomic_files.alone_in(str(tmp_path)),
        atomic_files.scratch_folder(str(tmp_path / "x")) as folder,
        atomic_files.alone_in(folder),
    ):
        pass
    thread = threading.Thread(target=lambda: fcntl.flock(os.open(tmp_path, 0), fcntl.LOCK_EX))
    thread.start()
    thread.join(10)
    assert not thread.is_alive()  # It is free again.


def test_leftovers_of_the_first_edition_are_removed_and_other_files_are_not(tmp_path):
    (tmp_path / "x.unfinished-12ab34cd").mkdir()
    (tmp_path / "x.unfinished-12ab34cd" / "shard-00000").write_text("")
    for name in ("x.tmp", "x.4711.tmp"):
        (tmp_path / name).write_text("")
    others = ["x-1.tmp", "x.json", "x.json.tmp", "x.old.tmp", "xx.tmp"]
    for name in others:
        (tmp_path / name).write_text("")
    atomic_files.write_text(tmp_path / "x", ["new"])
    assert entries(tmp_path) == sorted(["x", *others])


def test_a_folder_that_is_called_temporary_is_a_users(tmp_path):
    (tmp_path / "x.tmp").mkdir()
    (tmp_path / "x.tmp" / "raw.json").write_text("[]")
    with atomic_files.scratch_folder(str(tmp_path / "x")):
        pass
    assert entries(tmp_path) == ["x.tmp"] and entries(tmp_path / "x.tmp") == ["raw.json"]


def test_files_that_tensorflow_reaches_are_written_alike(tmp_path):
    path = f"file://{tmp_path}/new/x.json"
    atomic_files.write_json(path, [1])
    with pytest.raises(ValueError, match="stop"), atomic_files.new_folder(f"{path}.folder"):
        raise ValueError("stop")
    assert entries(tmp_path / "new") == ["x.json"]


def test_many_files_are_written_with_one_look_for_leftovers_in_a_folder(tmp_path, monkeypatch):
    first, second = tmp_path / "a", tmp_path / "b"
    first.mkdir()
    for name in ("x.tmp", "y.txt.12ab.tmp", "other.tmp"):
        (first / name).write_text("")
    listed, listdir = [], os.listdir

    def counted(folder):
        listed.append(folder)
        return listdir(folder)

    texts = {first / "x": "1", first / "y.txt": "2", second / "x": "3"}
    with monkeypatch.context() as patched:
        patched.setattr(os, "listdir", counted)
        atomic_files.write_texts({str(path): text for path, text in texts.items()})
    assert listed == [str(first), str(second)]
    assert {path: path.read_text() for path in texts} == texts
    assert entries(first) == ["other.tmp", "x", "y.txt"] and entries(second) == ["x"]
