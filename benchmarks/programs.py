"""Runs programs of the package as a user would."""

import shlex
import subprocess
import sys

__all__ = ["epochs", "failure", "run"]


def epochs(num_steps, batch_size, num_examples):
    """The --num_train_epochs of so many steps, whose number is rounded down from it: float."""
    return (num_steps + 0.5) * batch_size / num_examples


def run(module, **flags):
    """Runs a program and returns its standard output: str.

    Args:
        module: str, such as "etcmodel.tools.make_demo_data".
        **flags: by their names without dashes. True and False are given as words.
    Raises:
        ChildProcessError: if it fails; the program prints the reason itself.
    """
    command = [sys.executable, "-m", module, *(f"--{name}={x}" for name, x in flags.items())]
    print("$ python " + " ".join(command[1:]), file=sys.stderr, flush=True)
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise failure(command, done.returncode)
    return done.stdout


def failure(command, status):
    """The `ChildProcessError` of a command (list of str) that ended with another status than 0."""
    return ChildProcessError(f"the program ended with status {status}: {shlex.join(command)}")
