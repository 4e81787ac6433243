"""Callbacks: a program's own code that runs during training."""


class Callback:
    """Base class of callbacks; subclasses override the methods that they need.

    They are called between two steps, in the training process (of several workers, only in the
    chief). Steps are counted over the whole run, including those before it was resumed. An
    exception ends the run; files saved before stay.

    >>> from etcmodel import training
    >>> class Printer(training.Callback):
    ...     def on_checkpoint(self, step, path):
    ...         print(f"Step {step} is in {path}.")
    >>> Printer().on_checkpoint(500, "run/ckpt-500")
    Step 500 is in run/ckpt-500.
    """

    def on_summary(self, step, metrics):
        """Called every `steps_per_summary` steps, and before a checkpoint.

        Args:
            step: int. Steps done.
            metrics: dict of float. Means over the steps since the last summary: the parts of the
                loss, "learning_rate", and what else `train_metrics.jsonl` has.
        """

    def on_checkpoint(self, step, path):
        """Called after a checkpoint is saved.

        Args:
            step: int. Steps done.
            path: str. Its path prefix.
        """

    def on_evaluation(self, step, metrics):
        """Called after an evaluation, once the weights are saved if they are the best.

        Args:
            step: int. Steps done.
            metrics: dict of float.
        """

    def on_end(self, step, metrics):
        """Called at the end of the run, or if it had ended before; not after a signal or an error.

        Args:
            step: int. Steps done.
            metrics: dict of float. Those of the last evaluation; empty if there was none.
        """


class CallbackError(RuntimeError):
    """Raised when a callback raises an exception, which is its cause.

    >>> from etcmodel import training
    >>> issubclass(training.CallbackError, RuntimeError)
    True
    """


class Callbacks:
    """Calls callbacks in order.

    Args:
        callbacks: iterable of `Callback`.
    Raises:
        TypeError: if an item is not a `Callback`.
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
        """Calls a method of every callback.

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
