"""An exponential moving average of the weights, to be evaluated and exported in their place."""

import contextlib

import tensorflow as tf

from etcmodel import extras

with extras.needed("train"):
    from official.modeling.optimization import ema_optimizer

__all__ = ["WeightAverage"]


class WeightAverage:
    """Averages of variables: each step moves an average by (1 - d) of its distance to the weight.

    d is `decay`, or (1 + t) / (10 + t) at step t if that is smaller, so that the first weights are
    soon forgotten, as in `tf.train.ExponentialMovingAverage` with `num_updates`.

    Model Garden's `ExponentialMovingAverage` averages in the same way, but it swaps averages and
    weights by sums and differences, which round: a resumed run would differ from an uninterrupted
    one. The built-in averages of tf_keras optimizers (`use_ema`) do not exist in the legacy
    optimizers, such as LAMB.

    Args:
        variables: list of variables, with their initial values.
        decay: float in (0, 1).
        strategy: tf.distribute.Strategy of the variables.
    Attributes:
        averages: list of float variables of the same shapes.
    """

    def __init__(self, variables, decay, strategy):
        self._variables, self._decay, self._strategy = list(variables), decay, strategy
        with strategy.scope():
            self.averages = [
                tf.Variable(
                    variable.read_value(),
                    trainable=False,
                    name=f"{variable.name.partition(':')[0]}/average",
                )
                for variable in self._variables
            ]

    def reset(self):
        """Restarts the averages from the current weights."""
        self._on_all_devices(lambda average, weight: average.assign(weight))

    def update(self, step):
        """Updates the averages by one step; to be called on each device, after the weights' update.

        Args:
            step: int scalar. Steps done before this one.
        """

        def follow(strategy):
            done = tf.cast(step, tf.float32)
            share = 1.0 - tf.minimum(self._decay, (1.0 + done) / (10.0 + done))

            def move(average, weight):
                distance = average - tf.cast(weight, average.dtype)
                return average.assign_sub(tf.cast(share, average.dtype) * distance)

            self._on_all(strategy, move)

        ema_optimizer.maybe_merge_call(follow, tf.distribute.get_strategy())

    @contextlib.contextmanager
    def in_place(self):
        """A context in which weights and averages are exactly swapped."""
        self._exchange()
        try:
            yield
        finally:
            self._exchange()

    def take_back(self):
        """Swaps weights and averages, after reading a checkpoint that was saved `in_place`."""
        self._exchange()

    def _exchange(self):
        def exchange(average, weight):
            kept = average.read_value()
            average.assign(weight.read_value())
            return weight.assign(kept)

        self._on_all_devices(exchange)

    def _on_all_devices(self, change):
        with self._strategy.scope():
            self._on_all(self._strategy, change)

    def _on_all(self, strategy, change):
        for average, weight in zip(self.averages, self._variables, strict=True):
            strategy.extended.update(average, change, args=(weight,), group=False)
