"""The memory of a program by how much it has read, and a small run of the benchmark."""

import json
import subprocess
import sys

import pytest

from benchmarks import preprocessing_memory
from etcmodel.tools import make_demo_data

READER = """
import sys
held = []
with open(sys.argv[1], "rb", buffering=0) as file:
    for megabytes in (0, 60):
        file.read(1 << 20)
        held.append(b"x" * (megabytes << 20))
        print("ready", flush=True)
        sys.stdin.readline()
"""


def test_peaks_are_the_most_until_a_share_is_read():
    samples = [(0, 5), (10, 3), (40, 9), (50, 4), (100, 11), (100, 2)]
    assert preprocessing_memory.peaks(samples, 100) == [5, 9, 11]
    assert preprocessing_memory.peaks([(30, 7)], 100) == [0, 7, 7]


def test_a_program_is_followed_by_its_place_in_the_file(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(bytes(2 << 20))
    command = [sys.executable, "-c", READER, str(path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as process:
        found = []
        for _ in range(2):
            process.stdout.readline()
            found.append(preprocessing_memory.sample(process.pid, str(path)))
            process.stdin.write("\n")
            process.stdin.flush()
        preprocessing_memory.follow(process, str(path), seconds=0.01)
        assert process.returncode == 0
    (first, before), (second, after) = found
    assert (first, second) == (1 << 20, 2 << 20)
    assert 50 << 20 < after - before < 70 << 20


@pytest.mark.slow
def test_the_benchmark_runs_a_data_sets_program_and_leaves_nothing(tmp_path, capsys):
    made = make_demo_data.make_demo_data(
        dataset="wikihop", output_dir=str(tmp_path / "data"), num_train=2, num_dev=1, seed=0
    )
    (tmp_path / "large").mkdir()
    options = preprocessing_memory.MemoryOptions(
        dataset="wikihop",
        source=made["train"],
        vocab_file=made["vocab"],
        megabytes=0.2,
        folder=str(tmp_path / "large"),
    )
    flags = ["--long_seq_length=256", "--global_seq_length=64"]
    preprocessing_memory.main(options, flags)
    *_, row, in_json = capsys.readouterr().out.splitlines()
    found = json.loads(in_json)
    assert row.startswith("| wikihop | 0 |")
    assert found["num_examples"] == found["num_records"] > 100
    assert found["megabytes"] >= 0.2 and found["peaks"][-1] > 100e6
    assert found["peaks"] == sorted(found["peaks"])
    assert not list((tmp_path / "large").iterdir())
    with pytest.raises(ChildProcessError, match="^the program ended with status 1: "):
        preprocessing_memory.measure(options, ["--long_seq_length=none"])
