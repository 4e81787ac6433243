"""Runs a training program with many combinations of options and reports the best.

Flags after `--` are passed to every trial. Each trial runs the program in a separate process, with
its own folder below --output_dir. The same command resumes a stopped sweep, or joins a running one.
At the end, --output_dir has a table (`trials.md`, `trials.csv`) and a plot
(`parallel_coordinates.png`).
"""

import dataclasses
import difflib
import os
import re
import subprocess
import sys

from etcmodel.cli.commands import COMMANDS
from etcmodel.options import Options, option, run_program
from etcmodel.pictures import style
from etcmodel.tools.sweeps import space as space_lib
from etcmodel.tools.sweeps.space import PRESETS

__all__ = ["PICTURE_FILE", "SweepOptions", "make_plan", "run_plan"]

PICTURE_FILE = "parallel_coordinates.png"
_TRAIN = "train"  # The command of `etcmodel` whose programs a sweep runs.
_IN_PHASES = ("char_lm",)  # Programs whose --output_dir contains several runs.


@dataclasses.dataclass(frozen=True, kw_only=True)
class SweepOptions(Options):
    """The program, the search space and the settings of a sweep."""

    program: str | None = option(
        None,
        "Training program, by its name in `etcmodel train`. None: the program of --preset.",
        choices=tuple(name for name in COMMANDS[_TRAIN].names() if name not in _IN_PHASES),
    )
    output_dir: str | None = option(None, "Directory for the sweep.")
    preset: str | None = option(
        None,
        "Search space and program of one of the paper's sweeps (appendix C). None: only the space "
        "that the flags give.",
        choices=tuple(sorted(PRESETS)),
    )
    space_file: str | None = option(
        None,
        "YAML file with the search space: `name: [value, ...]` or `name: {low: 1, high: 9, log: "
        "true}`. Its entries override those of --preset.",
        is_file=True,
    )
    space: tuple = option(
        (),
        "Option to vary, as name=value,value or name=low:high or name=low:high:log. May be "
        "repeated, once per option. Overrides the entry in --space_file and --preset.",
        is_repeated=True,
    )
    sampler: str = option(
        "grid",
        "grid: all combinations, in random order; tpe: Optuna's TPE.",
        choices=("grid", "tpe"),
    )
    num_trials: int | None = option(
        None,
        "Number of trials; a later command may ask for more. None: the whole grid.",
        lower_bound=1,
    )
    processes: int = option(
        1, "Number of trials that this command runs in parallel.", lower_bound=1
    )
    seed: int = option(0, "Seed of the grid's order and of TPE, not of the training.")
    pruner: str = option(
        "none",
        "Which trials are stopped early: none, or (median) those whose best evaluation is worse "
        "than the median of the other trials at the same step.",
        choices=("none", "median"),
    )
    prune_after_trials: int = option(
        5, "Number of complete trials before any trial is pruned.", lower_bound=0
    )
    prune_after_step: int = option(0, "Step before which a trial is not pruned.", lower_bound=0)
    theme: str = option("light", "Background of the picture.", choices=("light", "dark"))


def make_plan(options, flags=()):
    """The `Plan` of a sweep of one of our programs.

    Args:
        options: `SweepOptions`.
        flags: sequence of str. Flags for every trial.
    Raises:
        ValueError: if something is missing, or an option in the space is not one of the program.
    """
    if not options.output_dir:
        raise ValueError("A sweep also needs --output_dir.")
    if flags and not flags[0].startswith("-"):
        raise ValueError(f"Flags of the program follow `--`. Received: {flags[0]!r}")
    preset = PRESETS.get(options.preset)
    program = options.program or (preset and preset.program)
    if program is None:
        raise ValueError("A sweep also needs --program, or a --preset, which has one.")
    space = dict(preset.space) if preset else {}
    if options.space_file:
        space |= space_lib.read_yaml(options.space_file)
    space |= space_lib.parse_all(options.space)
    started = COMMANDS[_TRAIN].programs()[program]
    plan = space_lib.Plan(
        folder=options.output_dir,
        program=program,
        command=(sys.executable, "-m", f"etcmodel.{started.module}", *started.flags),
        title=f"etcmodel {_TRAIN} {program}",
        flags=tuple(flags),
        space=space,
        sampler=options.sampler,
        seed=options.seed,
        num_trials=options.num_trials,
        num_processes=options.processes,
        pruner=options.pruner,
        prune_after_trials=options.prune_after_trials,
        prune_after_step=options.prune_after_step,
    )
    _check_names(plan)
    return plan


def _check_names(plan):
    """Rejects a space with an option that is not in the program's own help."""
    asked = subprocess.run([*plan.command, "--help"], capture_output=True, text=True)
    known = re.findall(r"^  --(?:\[no\])?(\w+):", asked.stdout, re.M)
    if not known:  # It does not start, for example because of a missing package.
        problem = (asked.stderr.strip() or f"exit code {asked.returncode}").splitlines()[-1]
        raise ValueError(f"`{plan.title} --help` tells no options: {problem}")
    for name in plan.space:
        if name not in known:
            (nearest,) = difflib.get_close_matches(name, known, n=1, cutoff=0.0)
            raise ValueError(
                f"`{plan.title}` has no --{name} to be tried. The nearest is --{nearest}."
            )


def run_plan(plan, theme=style.LIGHT):
    """Runs a sweep to completion, and writes and prints the results.

    Args:
        plan: `Plan`.
        theme: `style.Theme` of the picture.
    Raises:
        ValueError: if the folder belongs to another sweep, or all trials failed.
    """
    from etcmodel.tools.sweeps import results, study  # Optuna takes a while to import.

    results.import_matplotlib()
    trials = study.sweep(plan)
    rows, goal = trials.rows(), trials.goal()
    results.write(plan, rows, goal)
    ranked = [row for row in results.ranked(rows, goal) if row.best is not None]
    best = results.best_of(ranked)
    if best is None:
        raise ValueError(
            f"no trial of {len(rows)} is complete. The last says: {rows[-1].problem or 'nothing'}; "
            f"see {os.path.join(plan.folder, results.MARKDOWN_FILE)}."
        )
    results.draw(os.path.join(plan.folder, PICTURE_FILE), plan, ranked, goal, theme)
    print(f"best: trial {best.number}, {goal.metric} {best.best:.4g} at step {best.step}")
    print(results.command_line(plan, best))


def main(options, flags):
    """Runs the sweep that `SweepOptions` describe."""
    run_plan(make_plan(options, flags), style.THEMES[options.theme])


if __name__ == "__main__":
    run_program(SweepOptions, main, section="sweep", has_others_flags=True)
