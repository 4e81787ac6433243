"""What a program does before it imports TensorFlow."""

import os
import pathlib
import subprocess
import sys

import pytest

CHECKPOINT = pathlib.Path(__file__).parent / "fixtures/first_edition/checkpoints/tf2/ckpt"
COMMAND = """
import atexit, sys
atexit.register(lambda: print(*sys.modules))
from etcmodel.cli import main
main.main()
"""
BEGUN = """
import os
from etcmodel import program_start
program_start.begin()
print(os.environ["TF_USE_LEGACY_KERAS"])
"""


def run(*arguments, **environment):
    """(standard output, standard error) of a Python process."""
    inherited = {k: v for k, v in os.environ.items() if k != "TF_USE_LEGACY_KERAS"}
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        check=True,
        env={**inherited, **environment},
    )
    return done.stdout, done.stderr


@pytest.mark.parametrize(("given", "wanted"), [({}, "1"), ({"TF_USE_LEGACY_KERAS": "0"}, "0")])
def test_keras_2_is_taken_unless_the_user_has_chosen(given, wanted):
    assert run("-c", BEGUN, **given)[0].strip() == wanted


@pytest.mark.slow
def test_no_command_waits_for_keras_3(tmp_path):
    flags = [f"--input={CHECKPOINT}", f"--output_dir={tmp_path}/converted"]
    output, _ = run("-c", COMMAND, "convert", *flags, "--output_format=safetensors")
    modules = output.splitlines()[-1].split()
    assert "tf_keras" in modules
    assert "keras" not in modules


def test_the_commands_own_help_waits_for_nothing_that_only_programs_need():
    output, _ = run("-c", COMMAND, "--help")
    assert not {"absl", "ctypes", "numpy"}.intersection(output.splitlines()[-1].split())
