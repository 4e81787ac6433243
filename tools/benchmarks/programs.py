"""Runs programs of the package as a user runs them."""

import subprocess
import sys

__all__ = ["run"]


def run(module, **flags):
    """What a program printed to its standard output: str.

    Args:
        module: str, such as "etcmodel.tools.make_demo_data".
        **flags: by their names without dashes. True and False are given as words.
    Raises:
        subprocess.CalledProcessError: if it fails.
    """
    command = [sys.executable, "-m", module, *(f"--{name}={x}" for name, x in flags.items())]
    print("$ python " + " ".join(command[1:]), file=sys.stderr, flush=True)
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
