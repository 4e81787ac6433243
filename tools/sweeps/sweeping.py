"""Runs a sweep: starts trials, watches their output, and resumes interrupted ones."""

import math
import os
import signal
import statistics
import sys
import time

from etcmodel import program_end
from etcmodel.durations import format_duration
from etcmodel.tools.sweeps import runs
from etcmodel.tools.sweeps import space as space_lib
from etcmodel.tools.sweeps.study import COMPLETE, FAILED, PRUNED, Study

__all__ = ["sweep"]

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
        self.run = runs.TrialRun(study.trial_folder(number), command, claimed.held)

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
            goal = runs.read_goal(self._output_dir)
            if goal is None:
                return False
            self._study.keep_goal(goal)
        evaluations = runs.read_evaluations(self._output_dir, goal.metric)
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
            problem = runs.last_line(self.run.log) or f"it ended with exit code {code}"
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
