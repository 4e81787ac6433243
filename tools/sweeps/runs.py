"""One trial of a sweep: the process of its run, and what that writes.

No TensorFlow is needed: the run's own process has it.
"""

import ctypes
import fcntl
import json
import math
import os
import signal
import subprocess

__all__ = ["Goal", "TrialRun", "last_line", "lock", "read_evaluations", "read_goal"]

_SECONDS_TO_STOP = 600  # After a first signal; the run saves a checkpoint meanwhile.
_LAST_BYTES = 4096
_ASK_FOR_SIGNAL = 1  # PR_SET_PDEATHSIG of Linux.


class Goal:
    """Which metric a run's task chooses the best checkpoint by.

    Args:
        metric: str.
        higher_is_better: bool.
    """

    def __init__(self, metric, higher_is_better):
        self.metric, self.higher_is_better = metric, higher_is_better

    def signed(self, value):
        """A value of the metric as a number of which higher is better; and the other way round."""
        return value if self.higher_is_better else -value


def read_goal(output_dir):
    """The `Goal` that training has noted; None as long as it has not."""
    try:
        with open(os.path.join(output_dir, "run_config.json"), "rb") as file:
            notes = json.loads(file.read()).get("notes", {})
    except FileNotFoundError:
        return None
    metric = notes.get("best_metric")
    return Goal(metric, notes["higher_is_better"]) if metric else None


def read_evaluations(output_dir, metric):
    """Values of a metric by step, in the order of steps: dict of int to float.

    Lines that are not complete yet and values that are no numbers are left out.
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
    """The last line of a log that is not empty: str, '' if there is none."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.path.getsize(path) - _LAST_BYTES))
            text = file.read().decode("utf-8", "replace")
    except FileNotFoundError:
        return ""
    lines = [line.strip() for line in text.replace("\r", "\n").splitlines()]
    return next((line for line in reversed(lines) if line), "")


def lock(folder):
    """A descriptor that holds a trial's folder; None while another process holds it.

    It is freed when the sweep and the trial's process, which gets it, too, have both ended.
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
    """The process of a trial, which is started at once.

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
                start_new_session=True,  # Ctrl-C is for the sweep, which then stops its trials.
                pass_fds=[held],
                preexec_fn=_dying_with_parent(),
            )

    def exit_code(self):
        """The process's exit code: int, None as long as it runs."""
        return self._process.poll()

    def ask_to_stop(self):
        """Lets the process save and end; returns without waiting.

        It is asked once: a second signal would end it before it has saved.
        """
        if self._process.poll() is None and not self._is_asked:
            self._is_asked = True
            self._process.send_signal(signal.SIGTERM)

    def stop(self):
        """Lets the process save and end, and waits for that; kills it if that takes too long."""
        self.ask_to_stop()
        try:
            self._process.wait(_SECONDS_TO_STOP)
        except subprocess.TimeoutExpired:
            self.kill()
            self._process.wait()

    def kill(self):
        """Ends the process as it is; returns without waiting."""
        self._process.kill()

    def close(self):
        """Frees the trial's folder; a second time does nothing."""
        held, self._held = self._held, None
        if held is not None:
            os.close(held)


def _dying_with_parent():
    """What a new process does for the system to stop it when the sweep is killed; None if nothing.

    Else it would go on beside the trials of the sweep that goes on.
    """
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    return prctl and (lambda: prctl(_ASK_FOR_SIGNAL, signal.SIGTERM))
