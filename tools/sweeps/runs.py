"""One trial of a sweep: the process of its run, and its output.

TensorFlow is only needed in the run's own process.
"""

import ctypes
import fcntl
import json
import math
import os
import signal
import subprocess

__all__ = ["Goal", "TrialRun", "last_line", "lock", "read_evaluations", "read_goal"]

_SECONDS_TO_STOP = 600  # After a first signal; meanwhile, the run saves a checkpoint.
_LAST_BYTES = 4096
_ASK_FOR_SIGNAL = 1  # PR_SET_PDEATHSIG of Linux.


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
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
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
                preexec_fn=_dying_with_parent(),
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


def _dying_with_parent():
    """The setup of a new process to be stopped when the sweep is killed; None if unsupported.

    Otherwise, it would keep running beside the trials of the resumed sweep.
    """
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    return prctl and (lambda: prctl(_ASK_FOR_SIGNAL, signal.SIGTERM))
