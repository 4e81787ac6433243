"""A program as a sweep runs them, without a model: what it does, its flags say.

It evaluates at the steps 10, 20 and 30, where `loss` is --x times 10 / step.
"""

import json
import os
import pathlib
import signal
import sys

ROOT = pathlib.Path(__file__).parents[2]
STARTS, SAVED = "starts.txt", "saved.txt"
# A sweep in a process of its own, of a folder, a space as Python writes it, and processes.
DRIVER = """
import sys
from etcmodel import program_end
from etcmodel.tools.sweeps import study
from tests.tools import sweep_program
with program_end.ends_in_one_line():
    space = dict(x.split("=") for x in sys.argv[2:])
    study.sweep(sweep_program.plan(sys.argv[1], **{k: v.split(",") for k, v in space.items()}))
"""


def plan(folder, about=None, **choices):
    """The `Plan` of a sweep of this program over these choices."""
    from etcmodel.tools.sweeps.space import Choices, Plan  # A trial starts faster without.

    return Plan(
        folder=str(folder),
        program="fake",
        command=(sys.executable, __file__),
        title="fake",
        space={name: Choices(tuple(values)) for name, values in choices.items()},
        seconds_between_looks=0.01,
        **(about or {}),
    )


def main(flags):
    folder = pathlib.Path(flags["output_dir"])
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / STARTS, "a") as file:
        file.write(f"{os.getppid()}\n")
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # Until it is waited for.
    signal.alarm(300)  # No test hangs.
    does = flags.get("does", "finish")
    if does == "fail":
        print("a line before")
        sys.exit("error: there is no luck in it\n")
    if does == "die":
        print("step 3", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    notes = {"best_metric": "loss", "higher_is_better": False}
    unfinished = folder / "run_config.json.tmp"  # The sweep looks at any time.
    unfinished.write_text(json.dumps({"notes": notes}))
    unfinished.rename(folder / "run_config.json")
    is_first = len((folder / STARTS).read_text().splitlines()) == 1
    if does == "meet":  # Goes on only beside the other one.
        os.close(
            os.open(folder.parents[1] / "pipe", os.O_RDONLY if x_of(flags) == 1 else os.O_WRONLY)
        )
    evaluate(folder, flags, 10)
    if does in ("KILL", "TERM") and is_first:
        os.kill(os.getppid(), getattr(signal, f"SIG{does}"))
        stop(folder)
    if does == "HANG" and is_first:  # Is stopped twice, the second time while it saves.
        os.kill(os.getppid(), signal.SIGINT)
        signal.sigwait({signal.SIGTERM})
        os.kill(os.getppid(), signal.SIGINT)
        signal.pause()
    if does == "wait" and x_of(flags) == 9:  # Until it is pruned.
        stop(folder)
    evaluate(folder, flags, 20)
    evaluate(folder, flags, 30)


def x_of(flags):
    return float(flags.get("x", 1))


def evaluate(folder, flags, step):
    path = folder / "eval_metrics.jsonl"
    if path.exists() and f'"step": {step},' in path.read_text():
        return
    loss = x_of(flags) * 10 / step
    with open(path, "a") as file:
        file.write(json.dumps({"step": step, "loss": loss}) + "\n")


def stop(folder):
    """Waits for the signal of the sweep, and ends as a run does."""
    signal.sigwait({signal.SIGTERM})
    (folder / SAVED).touch()
    sys.exit(143)


if __name__ == "__main__":
    main(dict(word.lstrip("-").split("=", 1) for word in sys.argv[1:]))
