"""Runs the programs of the tasks: each in a process of its own, or in this one, which is faster."""

import os
import runpy
import subprocess
import sys
from unittest import mock

from absl import flags

from etcmodel import finetuning
from etcmodel.finetuning import command_line
from etcmodel.finetuning import program as program_lib
from tests.warm import python as warm


def flag_list(arguments):
    return [f"--{name}={value}" for name, value in arguments.items()]


def start_python(*arguments):
    return subprocess.Popen(
        [sys.executable, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"},
    )


def start(task, module, **arguments):
    return start_python("-m", f"etcmodel.tasks.{task}.{module}", *flag_list(arguments))


def run(task, module, **arguments):
    """What a program of a task printed, and what it logged, begun sooner than by `start`."""
    command = [warm.python(), "-m", f"etcmodel.tasks.{task}.{module}", *flag_list(arguments)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return finish(subprocess.Popen(command, **pipes, text=True))


def finish(process):
    """Waits for a program that must succeed: what it printed, and what it logged."""
    stdout, stderr = process.communicate()
    assert process.returncode == 0, stderr[-3000:]
    return stdout, stderr


def fine_tune(task, **arguments):
    """Runs a task's `run_finetuning`, with its own defaults, in this process."""

    def run_program(config_class, *, defaults=None, release=None):
        program = program_lib.Program(
            *command_line.load_task(config_class),
            flags.FlagValues(),
            release or finetuning.ReleaseFlags(),
        )
        program.define_flags(defaults or {})
        program.flag_values(["run_finetuning", *flag_list(arguments)])
        program.main([])

    with mock.patch.object(finetuning, "run_program", run_program):
        run_module(task)


def run_module(task):
    """Runs a task's `run_finetuning` as the main module."""
    runpy.run_module(f"etcmodel.tasks.{task}.run_finetuning", run_name="__main__")
