"""The trials of a sweep: their processes, what Optuna stores of them, and the sweep that runs them.

Optuna keeps the trials in a SQLite file that several processes may use. Its values are those of the
task's metric, negated if lower is better. The direction is known once the first trial has begun.
"""

import dataclasses
import functools
import json
import math
import os
import random
import signal
import sqlite3
import statistics
import subprocess
import sys
import time
import warnings

from etcmodel import atomic_files, extras, posix_only, program_end
from etcmodel.durations import format_duration
from etcmodel.tools.sweeps import space as space_lib
from etcmodel.tools.sweeps.space import PLAN_FILE, claim_folder

with extras.needed("sweep"):
    import optuna
    import sqlalchemy

__all__ = [
    "COMPLETE",
    "FAILED",
    "PRUNED",
    "STUDY_FILE",
    "Claimed",
    "Goal",
    "Row",
    "Study",
    "TrialRun",
    "last_line",
    "lock",
    "read_evaluations",
    "read_goal",
    "sweep",
]

_SECONDS_TO_STOP = 600  # After a first signal; meanwhile, the run saves a checkpoint.
_LAST_BYTES = 4096


class Goal:
    """The metric by which a run's task selects the best checkpoint.

    Args:
        metric: str.
        higher_is_better: bool.
    """

    def __init__(self, metric, higher_is_better):
        self.metric, self.higher_is_better = metric, higher_is_better

    def signed(self, value):
        """Converts a metric to a number for which higher is better, and back."""
        return value if self.higher_is_better else -value


def read_goal(output_dir):
    """The `Goal` recorded by training; None if it is not there yet."""
    try:
        with open(os.path.join(output_dir, "run_config.json"), "rb") as file:
            notes = json.loads(file.read()).get("notes", {})
    except FileNotFoundError:
        return None
    metric = notes.get("best_metric")
    return Goal(metric, notes["higher_is_better"]) if metric else None


def read_evaluations(output_dir, metric):
    """Values of a metric by step, in order: dict of int to float.

    Incomplete lines and values that are not numbers are skipped.
    """
    found = {}
    try:
        with open(os.path.join(output_dir, "eval_metrics.jsonl"), "rb") as file:
            lines = file.read().splitlines()
    except FileNotFoundError:
        return {}
    for line in lines:
        try:
            evaluation = json.loads(line)
            step, value = evaluation["step"], float(evaluation[metric])
        except (ValueError, KeyError, TypeError):
            continue
        if math.isfinite(value):
            found[step] = value
    return dict(sorted(found.items()))


def last_line(path):
    """The last nonempty line of a log: str; '' if there is none."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.path.getsize(path) - _LAST_BYTES))
            text = file.read().decode("utf-8", "replace")
    except FileNotFoundError:
        return ""
    lines = [line.strip() for line in text.replace("\r", "\n").splitlines()]
    return next((line for line in reversed(lines) if line), "")


def lock(folder):
    """A descriptor that locks a trial's folder; None while another process holds the lock.

    It is released when both the sweep and the trial's process, which inherits it, have ended.
    """
    os.makedirs(folder, exist_ok=True)
    descriptor = os.open(os.path.join(folder, "lock"), os.O_RDWR | os.O_CREAT, 0o666)
    try:
        posix_only.lock(descriptor)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


class TrialRun:
    """The process of a trial; it starts immediately.

    Args:
        folder: str. The trial's folder, whose `log.txt` gets the output.
        command: list of str.
        held: int. The descriptor of `lock`; closed by `close`.
    """

    def __init__(self, folder, command, held):
        self.log = os.path.join(folder, "log.txt")
        self._held, self._is_asked = held, False
        with open(self.log, "ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C goes to the sweep, which then stops its trials.
                pass_fds=[held],
                # Else, once the sweep is killed, it would run beside the trials of the resumed one.
                preexec_fn=posix_only.dying_with_parent(),
            )

    def exit_code(self):
        """The process's exit code: int; None while it runs."""
        return self._process.poll()

    def ask_to_stop(self):
        """Lets the process save and end; returns without waiting.

        Only one signal is sent: a second one would end it before it has saved.
        """
        if self._process.poll() is None and not self._is_asked:
            self._is_asked = True
            self._process.send_signal(signal.SIGTERM)

    def stop(self):
        """Lets the process save and end, and waits; kills it if that takes too long."""
        self.ask_to_stop()
        try:
            self._process.wait(_SECONDS_TO_STOP)
        except subprocess.TimeoutExpired:
            self.kill()
            self._process.wait()

    def kill(self):
        """Kills the process; returns without waiting."""
        self._process.kill()

    def close(self):
        """Releases the trial's folder; repeated calls do nothing."""
        held, self._held = self._held, None
        if held is not None:
            os.close(held)


# The trials as Optuna stores them.

STUDY_FILE = "sweep.db"
COMPLETE, FAILED, PRUNED = "complete", "failed", "pruned"
_STATES = {
    optuna.trial.TrialState.COMPLETE: COMPLETE,
    optuna.trial.TrialState.FAIL: FAILED,
    optuna.trial.TrialState.PRUNED: PRUNED,
    optuna.trial.TrialState.RUNNING: "running",
    optuna.trial.TrialState.WAITING: "waiting",
}
_SECONDS_FOR_OTHERS = 60.0  # Time to wait for another process's writing.
_SEED_BOUND = 1 << 32  # Bound of NumPy's seeds.
_SEEDS = 1_000_003  # Trials of two sweeps with neighboring seeds draw different values.


@dataclasses.dataclass(frozen=True)
class Claimed:
    """A trial claimed by this process.

    Attributes:
        trial: `optuna.trial.Trial`.
        values: dict of an option to its value.
        reported: dict of a step to the signed value that an earlier process has reported.
        held: int. The descriptor that holds its folder.
    """

    trial: optuna.trial.Trial
    values: dict
    reported: dict
    held: int


@dataclasses.dataclass(frozen=True)
class Row:
    """A trial in reports.

    Attributes:
        number: int.
        values: dict of an option to its value.
        best: float. The best value of the metric; None without an evaluation.
        step: int. Its step, or None.
        state: str.
        folder: str. The directory of its run.
        problem: str. Why it failed, else ''.
        seconds: float. From its start to its end; None as long as it has not ended.
    """

    number: int
    values: dict
    best: float | None
    step: int | None
    state: str
    folder: str
    problem: str
    seconds: float | None


class Study:
    """The trials of a plan; claims the folder and queues the grid.

    Args:
        plan: `Plan`.
    Raises:
        ValueError: if the folder belongs to another sweep, or is incomplete.
    """

    def __init__(self, plan):
        self._plan, self._goal = plan, None
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        os.makedirs(plan.folder, exist_ok=True)
        with atomic_files.alone_in(plan.folder):
            self._check_whole()
            claim_folder(plan)
            self._study = optuna.create_study(
                storage=_storage(os.path.join(plan.folder, STUDY_FILE)),
                study_name="sweep",
                direction="maximize",
                load_if_exists=True,
                pruner=_pruner(plan),
            )
            if plan.sampler == "grid":
                self._queue_grid()

    def _check_whole(self):
        """Rejects an incomplete folder of a sweep: its runs would be mistaken for this sweep's."""
        folder, missing = self._plan.folder, ""
        if not os.path.exists(os.path.join(folder, STUDY_FILE)):
            missing = STUDY_FILE if os.path.exists(self.trial_folder(0)) else ""
        elif not os.path.exists(os.path.join(folder, PLAN_FILE)):
            missing = PLAN_FILE
        if missing:
            raise ValueError(
                f"{folder} has trials of a sweep, but no {missing}. Restore the file, or give "
                "another --output_dir."
            )

    def _queue_grid(self):
        points = space_lib.grid(self._plan.space)
        random.Random(self._plan.seed).shuffle(points)  # So that a partial sweep is representative.
        known = [_values_of(trial) for trial in self._trials()]
        for point in points[: self._plan.num_trials]:
            if point not in known:
                self._study.enqueue_trial(point)

    def _trials(self, *states):
        return self._study.get_trials(deepcopy=False, states=states or None)

    def next_trial(self):
        """A `Claimed` trial that nobody runs anymore, else a new one; None if none is left."""
        states = optuna.trial.TrialState
        with atomic_files.alone_in(self._plan.folder):
            for left in self._trials(states.RUNNING):
                held = lock(self.trial_folder(left.number))
                if held is not None:
                    if left.number not in {x.number for x in self._trials(states.RUNNING)}:
                        os.close(held)  # Another process has finished it in the meantime.
                        continue
                    trial = optuna.trial.Trial(self._study, left._trial_id)
                    reported = dict(left.intermediate_values)
                    return Claimed(trial, self._values(trial), reported, held)
            if not self._is_one_left(states):
                return None
            trial = self._ask()
            held = lock(self.trial_folder(trial.number))
            return Claimed(trial, self._values(trial), {}, held)

    def _is_one_left(self, states):
        if self._plan.sampler == "grid":
            return bool(self._trials(states.WAITING))
        return len(self._trials()) < self._plan.num_trials

    def _ask(self):
        # A sampler for each trial, so that draws do not depend on the process.
        number = len(self._trials())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            self._study.sampler = optuna.samplers.TPESampler(
                seed=(self._plan.seed * _SEEDS + number) % _SEED_BOUND, constant_liar=True
            )
        return self._study.ask()

    def _values(self, trial):
        """The trial's values, completing those that a killed process may have drawn."""
        values = {}
        for name, dimension in self._plan.space.items():
            if isinstance(dimension, space_lib.Choices):
                values[name] = trial.suggest_categorical(name, dimension.values)
            else:
                is_whole = isinstance(dimension.low, int) and isinstance(dimension.high, int)
                suggest = trial.suggest_int if is_whole else trial.suggest_float
                values[name] = suggest(name, dimension.low, dimension.high, log=dimension.is_log)
        return values

    def trial_folder(self, number):
        """The folder of a trial, with its log: str."""
        return os.path.join(self._plan.folder, "trials", f"{number:04d}")

    def output_dir(self, number):
        """The directory of a trial's run: str."""
        return os.path.join(self.trial_folder(number), "run")

    def are_others_running(self):
        """Whether another process runs a trial."""
        return bool(self._trials(optuna.trial.TrialState.RUNNING))

    def goal(self):
        """The `Goal`; None before the first trial has set it."""
        kept = None if self._goal else self._study.user_attrs.get("goal")
        if kept:
            self._goal = Goal(*kept)
        return self._goal

    def keep_goal(self, goal):
        """Stores the goal of the first trial's task."""
        with atomic_files.alone_in(self._plan.folder):  # Optuna fails if two add the same.
            if self.goal() is None:
                self._study.set_user_attr("goal", [goal.metric, goal.higher_is_better])

    def end(self, trial, state, *, value=None, problem=""):
        """Records the end of a trial.

        Args:
            trial: of a `Claimed`.
            state: `COMPLETE`, `PRUNED` or `FAILED`.
            value: float. The signed value of a complete one.
            problem: str. Why it failed.
        """
        if problem:
            trial.set_user_attr("problem", problem)
        (of_optuna,) = (x for x, name in _STATES.items() if name == state)
        self._study.tell(trial.number, value, state=of_optuna)

    def rows(self):
        """All trials, in order: list of `Row`."""
        return [self._row(frozen) for frozen in self._trials()]

    def _row(self, frozen):
        reported, best, step = frozen.intermediate_values, None, None
        if reported:
            step = max(sorted(reported), key=reported.get)
            best = self.goal().signed(reported[step])
        return Row(
            number=frozen.number,
            values=_values_of(frozen),
            best=best,
            step=step,
            state=_STATES[frozen.state],
            folder=self.output_dir(frozen.number),
            problem=frozen.user_attrs.get("problem", ""),
            seconds=frozen.duration.total_seconds() if frozen.duration else None,
        )


def _values_of(frozen):
    """The values of a trial: dict; complete for a grid trial, even if only partly drawn."""
    return frozen.system_attrs.get("fixed_params") or frozen.params


def _storage(path):
    """The storage of the study in a file, whose path may have any character.

    Raises:
        ValueError: naming the file, if it is damaged, or from another version of Optuna.
    """
    connect = functools.partial(
        sqlite3.connect,
        os.path.abspath(path),
        timeout=_SECONDS_FOR_OTHERS,
        check_same_thread=False,
    )
    damage = sqlalchemy.exc.SQLAlchemyError, optuna.exceptions.StorageInternalError, RuntimeError
    try:
        # Some characters are special in a URL, so the path is not given there.
        return optuna.storages.RDBStorage(
            f"sqlite:///{STUDY_FILE}", engine_kwargs={"creator": connect}
        )
    except damage as error:
        raise ValueError(
            f"{path} cannot be read as the data base of a sweep: {str(error).splitlines()[0]}. "
            "Restore the file, or give another --output_dir."
        ) from error


def _pruner(plan):
    if plan.pruner == "none":
        return optuna.pruners.NopPruner()
    return optuna.pruners.MedianPruner(
        n_startup_trials=plan.prune_after_trials, n_warmup_steps=plan.prune_after_step
    )


# The sweep: starts trials, watches their output, and resumes interrupted ones.


_ENDS = (COMPLETE, PRUNED, FAILED)


def sweep(plan, stream=None):
    """Runs the remaining trials of a plan, and waits for those of other processes.

    Args:
        plan: `Plan`.
        stream: text file for the progress. None: standard error.
    Returns:
        `Study`.
    Raises:
        ValueError: if the folder belongs to another sweep.
        Interrupted: after a signal, once the running trials have saved.
    """
    sweeping = _Sweeping(plan, stream or sys.stderr)
    try:
        sweeping.to_the_end()
    except KeyboardInterrupt as error:
        sweeping.stop()
        raise program_end.Interrupted(
            f"{sweeping.progress()}. The same command goes on with the rest: {plan.folder}",
            *filter(None, [getattr(error, "signum", None)]),
        ) from error
    except BaseException:
        sweeping.stop()
        raise
    return sweeping.study


class _Sweeping:
    def __init__(self, plan, stream):
        self._plan, self._stream = plan, stream
        self.study = Study(plan)
        self._watched, self._told = [], ""

    def to_the_end(self):
        self._tell(self.progress())
        while True:
            for watched in list(self._watched):
                if end := watched.look():
                    self._note_end(watched, end)
            self._start_more()
            if not self._watched and not self.study.are_others_running():
                break
            time.sleep(self._plan.seconds_between_looks)
        if not self._told.endswith(self.progress()):
            self._tell(self.progress())  # Trials of other processes have ended in the meantime.

    def stop(self):
        """Lets all processes save and end; their trials resume in the next sweep.

        Another signal kills them.
        """
        with program_end.on_signals(self._end_at_once):
            for watched in self._watched:
                watched.run.ask_to_stop()
            if self._watched:
                self._tell("waiting until what runs is saved; Ctrl-C once more ends it at once")
            for watched in self._watched:
                watched.run.stop()
                watched.run.close()
        self._watched = []

    def _end_at_once(self, signum, frame):
        del signum, frame
        for watched in self._watched:
            watched.run.kill()

    def progress(self):
        rows = self.study.rows()
        num_left = sum(row.state not in _ENDS for row in rows)
        if self._plan.sampler == "tpe":
            num_left += max(0, self._plan.num_trials - len(rows))
        num_done = sum(row.state in _ENDS for row in rows)
        text = f"{num_done}/{num_done + num_left} trials are done"
        seconds = [row.seconds for row in rows if row.state in _ENDS and row.seconds is not None]
        if num_left and seconds:
            rounds = math.ceil(num_left / self._plan.num_processes)
            text += f", time left {format_duration(statistics.median(seconds) * rounds)}"
        return text

    def _start_more(self):
        while len(self._watched) < self._plan.num_processes and (
            claimed := self.study.next_trial()
        ):
            watched = _Watched(self._plan, self.study, claimed)
            self._watched.append(watched)
            does = "goes on" if watched.is_old else "starts"
            self._tell(f"trial {claimed.trial.number} {does}: {_shown(claimed.values)}")

    def _note_end(self, watched, end):
        state, text, about = end
        self.study.end(watched.trial, state, **about)
        watched.run.close()
        self._watched.remove(watched)
        self._tell(f"trial {watched.trial.number} {text}. {self.progress()}")

    def _tell(self, text):
        self._told = text
        self._stream.write(f"{text}\n")
        self._stream.flush()


class _Watched:
    """A trial and its process."""

    def __init__(self, plan, study, claimed):
        self.trial, number = claimed.trial, claimed.trial.number
        self._study, self._output_dir = study, study.output_dir(number)
        self._reported, self._is_pruned = claimed.reported, False
        self.is_old = os.path.exists(self._output_dir)
        command = [*plan.command, *plan.trial_flags(claimed.values, self._output_dir)]
        self.run = TrialRun(study.trial_folder(number), command, claimed.held)

    def look(self):
        """Reports the run's new output, and may prune it; returns its end, or None while it runs.

        Returns:
            (state, message, dict of further arguments of `Study.end`).
        """
        code = self.run.exit_code()  # First, so that the run's last output is read, too.
        has_news = self._report()
        if code is None:
            if has_news and not self._is_pruned and self.trial.should_prune():
                self._is_pruned = True
                self.run.ask_to_stop()
            return None
        return self._end(code)

    def _report(self):
        """Reports new evaluations; returns whether there are any."""
        goal = self._study.goal()
        if goal is None:
            goal = read_goal(self._output_dir)
            if goal is None:
                return False
            self._study.keep_goal(goal)
        evaluations = read_evaluations(self._output_dir, goal.metric)
        new = {
            step: goal.signed(x) for step, x in evaluations.items() if step not in self._reported
        }
        for step, value in new.items():
            self.trial.report(value, step)
        self._reported |= new
        return bool(new)

    def _end(self, code):
        if code and self._is_pruned:
            return PRUNED, "is pruned", {}
        if code:
            problem = last_line(self.run.log) or f"it ended with exit code {code}"
            if code < 0:  # The log does not show it.
                problem = f"ended by {signal.Signals(-code).name}; the log ends with: {problem}"
            return FAILED, f"failed: {problem}", {"problem": problem}
        if not self._reported:
            problem = (
                "the run has no evaluation with a finite value of the metric by which its task "
                "chooses the best checkpoint: if it has none at all, give the flags of the "
                "evaluation data"
            )
            return FAILED, f"failed: {problem}", {"problem": problem}
        best, goal = max(self._reported.values()), self._study.goal()
        text = f"is done: {goal.metric} {goal.signed(best):.4g}"
        return COMPLETE, text, {"value": best}


def _shown(values):
    return ", ".join(f"{name}={space_lib.as_text(value)}" for name, value in values.items())
