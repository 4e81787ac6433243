"""Ctrl-C and SIGTERM during training: the run stops after the current step, and can save.

Python handles a signal only when TensorFlow returns from a loop of many steps. So a thread that the
system notifies at once sets a variable, which the loop reads at each step. Workers that step
together exchange it in each step, so that all of them stop after the same one.
"""

import contextlib
import os
import signal
import threading

import tensorflow as tf

from etcmodel import program_end

__all__ = ["StopRequest"]


class StopRequest:
    """A request, made by a signal, to stop a run.

    Args:
        workers: `tf.distribute.MultiWorkerMirroredStrategy` of workers that step together; None for
            a single process.
    Attributes:
        is_due: bool variable. Whether the loop of steps should end.
        act: function called after the loop if a stop is due, with the loop's metrics, or None
            outside a loop. It saves and raises `Interrupted`.
    """

    def __init__(self, workers=None):
        self._workers = workers
        with tf.init_scope(), tf.device("CPU"):
            self._is_asked = tf.Variable(False, trainable=False, name="is_stop_asked")
            self.is_due = self._is_asked
            if workers is not None:
                self.is_due = tf.Variable(False, trainable=False, name="is_stop_agreed")
        self.act = None
        self.signum = None
        self._is_at_once = False

    @contextlib.contextmanager
    def listening(self):
        """A context in which a first signal requests a stop, and a second one stops at once."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        watcher = threading.Thread(target=self._watch, args=(reading,), daemon=True)
        watcher.start()
        with program_end.on_signals(self._note):
            previous = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
            try:
                yield
            finally:
                signal.set_wakeup_fd(previous)
                os.close(writing)
                watcher.join()
                os.close(reading)

    def agree(self):
        """Called by all workers in each step: a stop is due once any of them has a request."""
        if self._workers is None:
            return
        asked = self._workers.run(lambda: tf.cast(self._is_asked.read_value(), tf.float32))
        asked = self._workers.reduce(tf.distribute.ReduceOp.SUM, asked, axis=None)
        self.is_due.assign(asked > 0)

    @contextlib.contextmanager
    def at_once(self):
        """A context in which the first signal stops at once, since nothing would be lost.

        One of several workers still waits for the next step, since the others wait for it.
        """
        self.act_if_due()
        self._is_at_once = self._workers is None
        try:
            yield
        finally:
            self._is_at_once = False

    def act_if_due(self, metrics=None):
        """Calls `act` if a stop is due; for several workers, once all of them know."""
        is_asked_alone = self._workers is None and self.signum is not None
        if is_asked_alone or self.is_due.numpy():
            self.act(metrics)

    def _watch(self, reading):
        while signals := os.read(reading, 1):
            if signals[0] in (signal.SIGINT, signal.SIGTERM):
                self._is_asked.assign(True)

    def _note(self, signum, frame):
        del frame
        is_first, self.signum = self.signum is None, signum
        if is_first and self._is_at_once:
            self.act(None)
        if not is_first:
            raise program_end.Interrupted("at once, nothing was saved", signum)
