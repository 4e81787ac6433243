"""The trials of a sweep, stored by Optuna in a SQLite file that several processes may use.

Optuna's values are those of the task's metric, negated if lower is better. The direction is known
once the first trial has begun.
"""

import dataclasses
import functools
import os
import random
import sqlite3
import warnings

from etcmodel import atomic_files, extras
from etcmodel.tools.sweeps import runs
from etcmodel.tools.sweeps import space as space_lib
from etcmodel.tools.sweeps.plan import PLAN_FILE, claim_folder

with extras.needed("sweep"):
    import optuna
    import sqlalchemy

__all__ = ["COMPLETE", "FAILED", "PRUNED", "STUDY_FILE", "Claimed", "Row", "Study"]

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
                held = runs.lock(self.trial_folder(left.number))
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
            held = runs.lock(self.trial_folder(trial.number))
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
        """The `runs.Goal`; None before the first trial has set it."""
        kept = None if self._goal else self._study.user_attrs.get("goal")
        if kept:
            self._goal = runs.Goal(*kept)
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
