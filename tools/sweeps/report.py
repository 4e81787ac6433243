"""The results of a sweep: tables in Markdown and CSV, and the command of the best trial.

TensorFlow is not needed.
"""

import csv
import io
import os
import shlex

from etcmodel import atomic_files
from etcmodel.tools.sweeps import space as space_lib

__all__ = ["CSV_FILE", "MARKDOWN_FILE", "best_of", "command_line", "ranked", "table", "write"]

CSV_FILE, MARKDOWN_FILE = "trials.csv", "trials.md"


def best_of(rows):
    """The complete trial with the best value, the first in the list: `Row`; None without one."""
    return next((row for row in rows if row.state == "complete"), None)


def ranked(rows, goal):
    """Trials from best to worst, then those without a value, in order: list of `Row`.

    Args:
        rows: list of `Row`.
        goal: `runs.Goal`; None if no trial has begun.
    """
    return sorted(
        rows, key=lambda row: (row.best is None, -goal.signed(row.best) if row.best else 0)
    )


def table(rows, names, metric):
    """The cells of the table, with header: list of lists of str.

    Args:
        rows: list of `Row`.
        names: list of str. The options.
        metric: str.
    """
    head = ["trial", *names, metric, "step", "state", "run", "problem"]
    return [head, *([*_cells(row, names)] for row in rows)]


def _cells(row, names):
    yield str(row.number)
    yield from (space_lib.as_text(row.values[x]) if x in row.values else "" for x in names)
    yield "" if row.best is None else repr(row.best)
    yield "" if row.step is None else str(row.step)
    yield from (row.state, row.folder, row.problem)


def command_line(plan, row):
    """The command that a user would type for a trial: str."""
    return f"{plan.title} {shlex.join(plan.trial_flags(row.values, row.folder))}"


def write(plan, rows, goal):
    """Writes both tables to the folder of a plan.

    Args:
        plan: `Plan`.
        rows: list of `Row`.
        goal: `runs.Goal`; None if no trial has set it.
    """
    rows, names = ranked(rows, goal), list(plan.space)
    cells = table(rows, names, goal.metric if goal else "metric")
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(cells)
    atomic_files.write_text(os.path.join(plan.folder, CSV_FILE), [text.getvalue()])
    atomic_files.write_text(
        os.path.join(plan.folder, MARKDOWN_FILE), _page(plan, rows, goal, cells)
    )


def _page(plan, rows, goal, cells):
    yield f"# Sweep of {plan.program}: {len(rows)} trials\n\n"
    if goal:
        better = "higher" if goal.higher_is_better else "lower"
        yield f"By `{goal.metric}` ({better} is better): the best evaluation of each run.\n\n"
    head, *others = cells
    for line in (head, ["---"] * len(head), *others):
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n"
    if best := best_of(rows):
        yield f"\nThe best trial, {best.number}:\n\n```sh\n{command_line(plan, best)}\n```\n"
