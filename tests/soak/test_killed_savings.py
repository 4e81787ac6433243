"""Whatever saves is killed at random moments, and then finds the disk full: nothing is lost.

`make soak-saving RUNS=60` kills more often than the tests do, and elsewhere with another SEED. A
small file system in memory is the disk, which only root may mount.
"""

import contextlib
import os
import random
import signal
import subprocess

import pytest

from tests.soak import saver

pytestmark = pytest.mark.slow

RUNS = int(os.environ.get("SOAK_RUNS", "0"))
SEED = int(os.environ.get("SOAK_SEED", "0"))
NUM_KILLS = max(1, RUNS // len(saver.WAYS))
SECONDS = 0.5  # In which a process is killed, after it has saved once, or
SECONDS_OF_MOVES = 0.0005  # after it has begun to give the files their names.
DISK = "48m"


@pytest.fixture
def disk(tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "none", str(folder)]
    if subprocess.run(command, capture_output=True).returncode:
        pytest.skip("only root may mount a small disk")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextlib.contextmanager
def full(disk):
    path, size = disk / "filler", 1 << 20
    with open(path, "wb", buffering=0) as file:
        while size:
            try:
                file.write(bytes(size))
            except OSError:
                size //= 2
    try:
        yield
    finally:
        path.unlink()


@pytest.mark.parametrize("name", saver.WAYS if RUNS else ["save_pretrained", "predict lines"])
def test_nothing_is_lost(name, server, disk, tmp_path):
    way, rng = saver.WAYS[name](), random.Random(f"{SEED} {name}")

    def save(first, **flags):
        flags = {"way": name, "folder": disk, "first": first, "count": 1, **flags}
        return server("tests.soak.saver", flags, tmp_path)

    def save_one(number):
        answer = save(number)
        assert answer["status"] == 0, answer["err"][-2000:]
        assert way.read(disk) == number
        assert not [path.name for path in disk.rglob("*") if "unfinished" in path.name]

    save_one(1)
    last, num_new, num_begun = 1, 0, 0
    for number in range(NUM_KILLS):
        amid_moves = number % 2 == 1
        seconds = rng.uniform(1e-6, SECONDS_OF_MOVES if amid_moves else SECONDS)
        answer = save(last + 1, count=10_000, seconds=seconds, amid_moves=amid_moves)
        assert answer["status"] == -signal.SIGALRM, answer["err"][-2000:]
        told = int(answer["out"].split()[-1])
        num_begun += bool(list(disk.rglob("moves*.json")))
        with full(disk):
            answer = save(told + 1)
            found = way.read(disk)
            assert found in (told, told + 1), (found, told)
            if answer["status"] == 0:  # What it completed left the room of the older one.
                assert found == told + 1
            else:
                told_last = answer["err"].splitlines()[-1]
                assert answer["status"] == 1 and told_last.startswith("error: "), told_last
        assert way.read(disk) == found
        num_new += found > told
        last = told + 1
        save_one(last)
    print(
        f"{name}: {NUM_KILLS} times killed, {num_begun} of them amid moves; on the full disk "
        f"the older one was there {NUM_KILLS - num_new} times, the newer {num_new} times"
    )
