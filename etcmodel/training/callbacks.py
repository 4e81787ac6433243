"""What a program's own code can do while a run trains."""

__all__ = ["Callback", "CallbackError", "Callbacks"]


class Callback:
    """Base of callbacks; a subclass defines those methods that it needs.

    They are called in the process that trains, of several workers in the chief alone, between two
    steps. Steps are counted over the whole run, so that a run that goes on begins with those that
    are done. An exception ends the run; what was saved before stays.

    >>> from etcmodel import training
    >>> class Printer(training.Callback):
    ...     def on_checkpoint(self, step, path):
    ...         print(f"Step {step} is in {path}.")
    >>> Printer().on_checkpoint(500, "run/ckpt-500")
    Step 500 is in run/ckpt-500.
    """

    def on_summary(self, step, metrics):
        """Every `steps_per_summary` steps, and before a checkpoint.

        Args:
            step: int. Steps done.
            metrics: dict of float. Means over the steps since the last summary: the parts of the
                loss, "learning_rate", and what else `train_metrics.jsonl` has.
        """

    def on_checkpoint(self, step, path):
        """A checkpoint is saved.

        Args:
            step: int. Steps done.
            path: str. Its path prefix.
        """

    def on_evaluation(self, step, metrics):
        """The weights are evaluated, and saved as the best if they are.

        Args:
            step: int. Steps done.
            metrics: dict of float.
        """

    def on_end(self, step, metrics):
        """The run is at its end, or was there already; not called if a signal or an error ends it.

        Args:
            step: int. Steps done.
            metrics: dict of float. Those of the last evaluation; empty if there was none.
        """


class CallbackError(RuntimeError):
    """A callback raised an exception, which is the cause of this one.

    >>> from etcmodel import training
    >>> issubclass(training.CallbackError, RuntimeError)
    True
    """


class Callbacks:
    """Calls callbacks in their order.

    Args:
        callbacks: iterable of `Callback`.
    Raises:
        TypeError: if one is none.
    """

    def __init__(self, callbacks):
        self._callbacks = tuple(callbacks)
        for callback in self._callbacks:
            if not isinstance(callback, Callback):
                raise TypeError(
                    "`callbacks` must be instances of `etcmodel.training.Callback`. Received: "
                    f"{callback!r}"
                )

    def call(self, name, step, value):
        """Calls a method of all.

        Raises:
            CallbackError: naming the callback, the method and the step, if one raises.
        """
        for callback in self._callbacks:
            try:
                getattr(callback, name)(step, value)
            except Exception as error:
                raise CallbackError(
                    f"The callback {type(callback).__name__} failed in {name} at step {step}: "
                    f"{type(error).__name__}: {error}"
                ) from error
