"""Training that is killed at random moments beside a busy process, and resumed until it is done.

`make soak-training RUNS=40` kills more runs than the tests do, and others with another SEED.
"""

import os
import random
import subprocess
import sys
import time

import pytest

from tests.soak import killed_runs
from tests.training import toy

pytestmark = pytest.mark.slow

RUNS = int(os.environ.get("SOAK_RUNS", "0"))
SEED = int(os.environ.get("SOAK_SEED", "0"))
NUM_KILLS = 40 if RUNS else 4  # Of one run at most.
# Computes, and writes to the disk as checkpoints do; ends with the tests.
BUSY = """
import os, select, sys
while not select.select([sys.stdin], [], [], 0)[0]:
    content = bytes(x % 251 for x in range(1 << 18))
    with open(sys.argv[1], "wb") as file:
        file.write(content)
        os.fsync(file.fileno())
"""
TOY = {
    "num_train_epochs": 20 if RUNS else 6,
    "dropout": 0.3,
    "save_checkpoints_steps": 4,
    "steps_per_summary": 2,
    "keep_checkpoint_max": 2,
}
SUBJECTS = {"toy": TOY, "averages": {**TOY, "ema_decay": 0.9, "optimizer": "bert_adam"}}
PARTS = {"toy": 1, "averages": 2}  # One run where the first has so many.


@pytest.fixture(scope="module")
def busy(tmp_path_factory):
    path = tmp_path_factory.mktemp("busy") / "file"
    command = [sys.executable, "-c", BUSY, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE):
        yield  # It ends when its input does.


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder with the records that the runs read."""
    folder = tmp_path_factory.mktemp("killed")
    toy.write_records(str(folder))
    return folder


def signals(rng, seconds):
    """When which signals are sent: SIGKILL, a signal that stops in good order, or both."""
    moment = rng.uniform(0, seconds)
    kind = rng.randrange(4)
    if kind < 2:
        return [[moment, ("SIGKILL", "SIGTERM")[kind]]]
    first = [moment, rng.choice(("SIGTERM", "SIGINT"))]
    return [first, [rng.uniform(0, 0.2), ("SIGKILL", "SIGTERM")[kind == 3]]]


def train(server, name, files, output_dir, sent=()):
    flags = {**SUBJECTS[name], "records": "train-*.tfrecord", "output_dir": output_dir}
    return server("tests.training.toy", flags, files, sent)


def kill_until_done(server, name, files, output_dir, rng, seconds):
    """(number of processes that were ended, list of problems) of a run."""
    num_kills, found = 0, []
    for _ in range(NUM_KILLS):
        answer = train(server, name, files, output_dir, signals(rng, seconds))
        num_kills += answer["status"] != 0
        problems = killed_runs.problems_of_end(answer)
        problems += killed_runs.problems_of_folder(files / output_dir)
        found += [f"after process {num_kills}: {problem}" for problem in problems]
        if answer["status"] == 0:
            return num_kills, found
    answer = train(server, name, files, output_dir)
    return num_kills, found + [answer["err"][-2000:]] * (answer["status"] != 0)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", SUBJECTS if RUNS else ["toy"])
def test_a_run_that_is_killed_again_and_again_comes_to_the_same_end(name, server, busy, files):
    start = time.monotonic()
    answer = train(server, name, files, f"{name}_through")
    assert answer["status"] == 0, answer["err"][-2000:]
    seconds = (time.monotonic() - start) / 2  # Half of a run: so each comes further.
    num_kills, failures = 0, []
    for number in range(max(1, RUNS // PARTS[name])):
        output_dir = f"{name}_{number}"
        rng = random.Random(f"{SEED} {name} {number}")
        kills, found = kill_until_done(server, name, files, output_dir, rng, seconds)
        num_kills += kills
        if not found:
            found = killed_runs.differences(files / output_dir, files / f"{name}_through")
        failures += [f"run {number}: {problem}" for problem in found]
    print(f"{name}: {number + 1} runs, {num_kills} times ended, half a run {seconds:.1f} s")
    assert num_kills or RUNS == 0
    assert not failures, "\n".join(failures)
