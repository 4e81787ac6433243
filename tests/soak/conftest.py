"""The process from which whole programs are forked."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

SECONDS = 600  # Other programs may take most of the machine.
ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture(scope="module")
def server():
    """A function that runs a program in a folder, and sends it signals; see `fork_server`."""
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    environment.pop("TF_CPP_MIN_LOG_LEVEL", None)
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.soak.fork_server"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )

    def run(module, flags, folder, signals=()):
        given = [f"--{name}={value}" for name, value in flags.items()]
        request = {"module": module, "flags": given, "folder": str(folder), "seconds": SECONDS}
        process.stdin.write(json.dumps({**request, "signals": signals}) + "\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    with process:
        yield run
        process.stdin.close()
