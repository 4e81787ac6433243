"""The trials of a sweep, of a program without a model: ended, stopped, killed, pruned, failed."""

import csv
import dataclasses
import io
import os
import pathlib
import random
import shlex
import sqlite3
import subprocess
import sys

import pytest

from etcmodel.tools import sweep as sweep_tool
from etcmodel.tools.sweeps import study
from etcmodel.tools.sweeps.space import Choices, Range
from etcmodel.tools.sweeps.study import Study
from tests.tools import sweep_program

# A run that is asked to stop, and is slow to save: it fails if it is asked again meanwhile.
SLOW_TO_SAVE = """
import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
signal.alarm(300)
os.close(os.open(sys.argv[1], os.O_WRONLY))
signal.sigwait({signal.SIGTERM})
os.close(os.open(sys.argv[2], os.O_WRONLY))
sys.exit(signal.sigtimedwait({signal.SIGTERM}, 0.2) is not None)
"""


def sweep(plan):
    """(rows of the study, what was told)."""
    told = io.StringIO()
    return study.sweep(plan, told).rows(), told.getvalue()


def start(folder, *space):
    """A sweep in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", sweep_program.DRIVER, str(folder), *space],
        cwd=sweep_program.ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def starts(row):
    """The process ids of the sweeps that started a trial's run, in order."""
    return (pathlib.Path(row.folder) / sweep_program.STARTS).read_text().split()


def by_value(rows, name):
    return {row.values[name]: row for row in rows}


def shuffled(values, seed):
    values = list(values)
    random.Random(seed).shuffle(values)
    return values


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """(plan, rows, what was told) of a sweep of four trials of which two fail."""
    folder = tmp_path_factory.mktemp("sweep")
    plan = sweep_program.plan(folder / "it {0} 5%?", x=(3, 6), does=("finish", "fail"))
    rows, told = sweep(plan)
    return plan, rows, told


def test_each_trial_has_the_best_evaluation_of_its_run(done):
    _, rows, _ = done
    ended = {row.values["x"]: row for row in rows if row.values["does"] == "finish"}
    assert {x: (row.best, row.step, row.state) for x, row in ended.items()} == {
        3: (1.0, 30, "complete"),
        6: (2.0, 30, "complete"),
    }


def test_a_failure_is_told_by_the_last_line_of_its_log_and_ends_nothing(done):
    _, rows, told = done
    failed = [row for row in rows if row.values["does"] == "fail"]
    assert {row.state for row in failed} == {"failed"} and len(failed) == 2
    assert {row.problem for row in failed} == {"error: there is no luck in it"}
    assert told.count("failed: error: there is no luck in it.") == 2
    log = pathlib.Path(failed[0].folder).parent / "log.txt"
    assert log.read_text() == "a line before\nerror: there is no luck in it\n\n"


def test_progress_tells_what_is_done_and_the_time_left(done):
    _, rows, told = done
    lines = told.splitlines()
    assert lines[0] == "0/4 trials are done"
    assert "1/4 trials are done, time left " in told
    assert lines[-1].endswith("4/4 trials are done")
    assert len(rows) == 4 and told.count(" starts: x=") == 4


def test_a_sweep_that_is_done_runs_nothing_again(done):
    plan, rows, _ = done
    again, told = sweep(plan)
    assert again == rows and told == "4/4 trials are done\n"
    assert all(len(starts(row)) == 1 for row in again)


def test_reports_have_every_trial_and_the_command_of_the_best(done, capsys):
    plan, rows, _ = done
    sweep_tool.run_plan(plan)
    folder = pathlib.Path(plan.folder)
    best = by_value([row for row in rows if row.best], "x")[3]
    command = f"fake --x=3 --does=finish {shlex.quote(f'--output_dir={best.folder}')}"
    assert capsys.readouterr().out == (f"best: trial {best.number}, loss 1 at step 30\n{command}\n")
    table = list(csv.DictReader(io.StringIO((folder / "trials.csv").read_text())))
    assert [row["loss"] for row in table] == ["1.0", "2.0", "", ""]
    assert table[0] == {
        "trial": str(best.number),
        "x": "3",
        "does": "finish",
        "loss": "1.0",
        "step": "30",
        "state": "complete",
        "run": best.folder,
        "problem": "",
    }
    page = (folder / "trials.md").read_text()
    assert f"| {best.number} | 3 | finish | 1.0 | 30 | complete | {best.folder} |  |\n" in page
    assert command in page and "lower is better" in page
    assert (folder / sweep_tool.PICTURE_FILE).read_bytes().startswith(b"\x89PNG")


def test_the_trials_are_in_a_data_base_of_sqlite(done):
    plan, rows, _ = done
    with sqlite3.connect(pathlib.Path(plan.folder) / "sweep.db") as base:
        ((number,),) = base.execute("select count(*) from trials where state = 'COMPLETE'")
    assert number == 2


def test_a_sweep_of_which_all_trials_fail_fails(tmp_path):
    problem = "ended by SIGKILL; the log ends with: step 3"
    with pytest.raises(ValueError, match=f"no trial of 1 is complete. .*: {problem}; see"):
        sweep_tool.run_plan(sweep_program.plan(tmp_path, does=("die",)))
    assert "| 0 | die |  |  | failed |" in (tmp_path / "trials.md").read_text()


@pytest.mark.slow
def test_a_killed_sweep_goes_on_with_the_run_that_it_left(tmp_path):
    killed = start(tmp_path, "does=finish,KILL")
    killed.communicate(timeout=300)
    assert killed.returncode == -9
    rows, told = sweep(sweep_program.plan(tmp_path, does=("finish", "KILL")))
    left = by_value(rows, "does")["KILL"]
    assert (left.best, left.step, left.state) == (1 / 3, 30, "complete")
    assert f"trial {left.number} goes on: does=KILL" in told
    # The system stopped the run that the sweep left, and let it save.
    assert (pathlib.Path(left.folder) / sweep_program.SAVED).exists()
    assert starts(left) == [str(killed.pid), str(os.getpid())]
    assert all(len(starts(row)) == 1 for row in rows if row is not left)


def test_a_trial_whose_values_were_not_all_drawn_is_still_that_of_the_grid(tmp_path):
    plan = sweep_program.plan(tmp_path, x=(1, 2), does=("finish",))
    left = Study(plan)._study.ask()
    x = left.suggest_categorical("x", (1, 2))  # A killed process comes no further.
    rows = Study(plan).rows()
    assert [row.state for row in rows] == ["running", "waiting"]
    assert rows[0].values == {"x": x, "does": "finish"}


def test_a_folder_that_lacks_a_part_of_its_sweep_is_refused(tmp_path):
    plan = sweep_program.plan(tmp_path, x=(1,))
    Study(plan)
    (tmp_path / "sweep.json").rename(tmp_path / "kept.json")
    with pytest.raises(ValueError, match=f"{tmp_path} has trials of a sweep, but no sweep.json"):
        Study(plan)
    (tmp_path / "kept.json").rename(tmp_path / "sweep.json")
    (tmp_path / "sweep.db").write_text("This is no data base." * 100)
    with pytest.raises(ValueError, match="sweep.db cannot be read as the data base of a sweep: "):
        Study(plan)
    (tmp_path / "sweep.db").unlink()
    (tmp_path / "trials" / "0000").mkdir(parents=True)
    with pytest.raises(ValueError, match="has trials of a sweep, but no sweep.db"):
        Study(plan)


def test_a_signal_lets_the_runs_save_and_the_same_command_goes_on(tmp_path):
    stopped = start(tmp_path, "does=TERM")
    _, errors = stopped.communicate(timeout=300)
    assert stopped.returncode == 143
    assert errors.splitlines()[-1] == (
        f"interrupted: 0/1 trials are done. The same command goes on with the rest: {tmp_path}"
    )
    (row,), _ = sweep(sweep_program.plan(tmp_path, does=("TERM",)))
    assert row.state == "complete" and len(starts(row)) == 2
    assert (pathlib.Path(row.folder) / sweep_program.SAVED).exists()


@pytest.mark.slow
def test_a_second_signal_ends_runs_before_they_have_saved(tmp_path):
    stopped = start(tmp_path, "does=HANG")
    _, errors = stopped.communicate(timeout=200)  # Else the run ends itself.
    assert stopped.returncode == 130
    *_, waits, last = errors.splitlines()
    assert waits == "waiting until what runs is saved; Ctrl-C once more ends it at once"
    assert last.startswith("interrupted: 0/1 trials are done. The same command goes on")
    (row,), _ = sweep(sweep_program.plan(tmp_path, does=("HANG",)))
    assert (row.best, row.state, len(starts(row))) == (1 / 3, "complete", 2)
    assert not (pathlib.Path(row.folder) / sweep_program.SAVED).exists()


def test_a_run_that_saves_is_not_asked_again(tmp_path):
    waiting, asked = (str(tmp_path / name) for name in ("waiting", "asked"))
    os.mkfifo(waiting)
    os.mkfifo(asked)
    command = [sys.executable, "-c", SLOW_TO_SAVE, waiting, asked]
    run = study.TrialRun(str(tmp_path), command, study.lock(str(tmp_path)))
    os.close(os.open(waiting, os.O_RDONLY))
    run.ask_to_stop()
    os.close(os.open(asked, os.O_RDONLY))
    run.stop()
    run.close()
    assert run.exit_code() == 0


def test_trials_run_at_the_same_time(tmp_path):
    (tmp_path / "trials").mkdir()
    os.mkfifo(tmp_path / "trials" / "pipe")
    plan = sweep_program.plan(tmp_path, {"num_processes": 2}, x=(1, 2), does=("meet",))
    rows, _ = sweep(plan)
    assert [row.state for row in rows] == ["complete"] * 2


@pytest.mark.slow
def test_the_same_command_twice_shares_the_trials(tmp_path):
    (tmp_path / "trials").mkdir()
    os.mkfifo(tmp_path / "trials" / "pipe")
    both = [start(tmp_path, "x=1,2", "does=meet") for _ in range(2)]
    told = [process.communicate(timeout=300)[1] for process in both]
    assert [process.returncode for process in both] == [0, 0], told
    assert all(text.splitlines()[-1].endswith("2/2 trials are done") for text in told)
    plan = sweep_program.plan(tmp_path, x=("1", "2"), does=("meet",))
    rows, _ = sweep(plan)
    assert sorted(starts(rows[0]) + starts(rows[1])) == sorted(str(x.pid) for x in both)


def test_a_trial_that_is_worse_than_the_median_is_stopped(tmp_path):
    values = [1, 2, 1.2, 9]
    seed = next(seed for seed in range(1000) if shuffled(values, seed) == values)
    about = {"pruner": "median", "prune_after_trials": 2, "seed": seed}
    rows, told = sweep(sweep_program.plan(tmp_path, about, x=values, does=("wait",)))
    assert [row.state for row in rows] == ["complete"] * 3 + ["pruned"]
    assert (rows[3].best, rows[3].step) == (9.0, 10)  # Of the others the median is 1.2 there.
    assert (pathlib.Path(rows[3].folder) / sweep_program.SAVED).exists()
    assert "trial 3 is pruned. 4/4 trials are done" in told


@pytest.mark.slow
def test_tpe_draws_the_same_values_whoever_draws_them(tmp_path):
    space = {"x": Range(1e-3, 1e1, True), "y": Range(1, 5), "z": Choices(("a", "b"))}

    def drawn(name, *numbers, seed=3):
        for number in numbers:
            about = {"sampler": "tpe", "num_trials": number, "seed": seed}
            plan = sweep_program.plan(tmp_path / name, about, x=(1,))
            rows, _ = sweep(dataclasses.replace(plan, space=space))
        return [row.values for row in rows]

    found = drawn("at once", 3)
    for seed in (12_345, -1):
        assert drawn(f"of {seed}", 1, seed=seed) != found[:1]
    assert found == drawn("in two goes", 1, 3)
    assert len({values["x"] for values in found}) == 3
    for values in found:
        assert 1e-3 <= values["x"] <= 10 and values["y"] in range(1, 6) and values["z"] in "ab"
