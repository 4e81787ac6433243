"""Runs a model on all examples of a data set, once each, on all devices."""

import contextlib

import numpy as np
import tensorflow as tf

from etcmodel.autograph import without_autograph
from etcmodel.autotuning import without_autotuning
from etcmodel.training import model_garden

# isort: split
# These need other packages of the extra, and do not say why it may lack Model Garden.
from etcmodel import feature_checks, progress_bar
from etcmodel.training import strategy as strategy_lib
from etcmodel.training import task as task_lib
from etcmodel.training import trainer


class Predictor:
    """Yields a model's outputs for each example.

    Only the features that the model uses are sent to the devices. All features also stay on the
    host, since XLA devices (TPUs) do not support strings, and are joined with the outputs by row.

    Each worker of a multi-worker strategy processes the whole data set. On a terminal, the chief
    shows how many examples are done.

    Args:
        model: tf_keras.Model, created in the strategy's scope.
        strategy: tf.distribute.Strategy.
        purpose: str. The activity to show, such as "evaluating".
        select: function that selects the features, such as a task's `model_features`.
    """

    def __init__(self, model, strategy, purpose="predicting", select=task_lib.model_features):
        self._model, self._strategy, self._purpose = model, strategy, purpose
        self._select = select

        self._on_all_devices = tf.function(
            lambda features: strategy.run(self._on_one_device, args=(features,))
        )

    def __call__(self, make_dataset, batch_size):
        """Iterates over the examples in the data set's order.

        Args:
            make_dataset: function from a batch size to a tf.data.Dataset of dicts of dense
                tensors; the last batch may be smaller.
            batch_size: int. Examples per step; a multiple of the number of this worker's devices.
        Yields:
            Dicts of NumPy arrays without the batch axis: features and outputs.
        Raises:
            ValueError: if `batch_size` is not such a multiple; naming an output that is NaN.
        """
        devices = _num_local_devices(self._strategy)
        if batch_size % devices:
            raise ValueError(
                f"The batch must be a multiple of {devices} devices. Got: {batch_size}"
            )

        def split(features):
            inputs = self._select(self._model, features, training=False)
            return features, _device_batches(inputs, batch_size, devices)

        dataset = make_dataset(batch_size).map(split, num_parallel_calls=tf.data.AUTOTUNE)
        dataset = without_autotuning(dataset.prefetch(tf.data.AUTOTUNE))
        with self._counted() as count:
            for features, device_batches in dataset:
                outputs = self._on_all_devices(self._distributed(device_batches))
                outputs = self._strategy.experimental_local_results(outputs)
                for example in _examples(features, outputs):
                    count(1)
                    yield example

    def _counted(self):
        if strategy_lib.is_chief(self._strategy):
            return progress_bar.counted(self._purpose)
        return contextlib.nullcontext(lambda number: None)

    def _on_one_device(self, features):
        return trainer.outputs_of(self._model, features, training=False)

    def _distributed(self, device_batches):
        """Distributes the batches to the devices of this worker."""

        def batch_of(context):
            # The devices of a worker have consecutive numbers, and all workers have equally many.
            return device_batches[context.replica_id_in_sync_group % len(device_batches)]

        return self._strategy.experimental_distribute_values_from_function(batch_of)


class Evaluator(model_garden.AbstractEvaluator):
    """Evaluates a model on the task's evaluation data.

    Args:
        task: Task with an `eval_dataset`.
        predictor: Predictor.
        batch_size: int. Examples per step.
    """

    def __init__(self, *, task, predictor, batch_size):
        self._task, self._predictor, self._batch_size = task, predictor, batch_size

    def evaluate(self, num_steps):
        """Metrics of the whole data set: dict of floats. Orbit's `num_steps` is ignored."""
        predictions = self._predictor(self._task.eval_dataset, self._batch_size)
        with contextlib.closing(predictions):  # So that nothing is shown of it after an error.
            metrics = self._task.evaluate(predictions)
        return {name: float(value) for name, value in metrics.items()}


class RunEvaluator(model_garden.AbstractEvaluator):
    """Evaluates the weights that are saved; a signal stops it at once, as nothing is lost.

    Args:
        evaluator: `Evaluator`.
        stop: `StopRequest`.
        averaged: function that returns a context in which the model has the weights that are saved.
    """

    def __init__(self, evaluator, stop, averaged):
        self._evaluator, self._stop, self._averaged = evaluator, stop, averaged

    def evaluate(self, num_steps):
        with self._stop.at_once(), self._averaged():
            return self._evaluator.evaluate(num_steps)


def _num_local_devices(strategy):
    """Number of devices of this worker: int."""
    numbers = strategy.experimental_distribute_values_from_function(
        lambda context: tf.constant(context.replica_id_in_sync_group)
    )
    return len(strategy.experimental_local_results(numbers))


@without_autograph
def _device_batches(features, batch_size, devices):
    """Splits a batch into batches of equal size, one per device.

    A batch that is too small is filled with copies of its last example, so that all devices always
    have a batch of the same shape, which TPUs require.

    Args:
        features: dict of tensors [at most batch_size, ...].
        batch_size, devices: int.
    Returns:
        Tuple of `devices` dicts of tensors [batch_size / devices, ...].
    """
    rows = tf.minimum(tf.range(batch_size), tf.shape(tf.nest.flatten(features)[0])[0] - 1)
    rows = tf.split(rows, devices)
    return tuple({name: tf.gather(x, mine) for name, x in features.items()} for mine in rows)


def _examples(features, device_outputs):
    """Joins features, a dict of tensors [rows, ...], and the devices' outputs, row by row."""
    features = {name: x.numpy() for name, x in features.items()}
    outputs = {
        name: np.concatenate([outputs[name].numpy() for outputs in device_outputs])
        for name in device_outputs[0]
    }
    feature_checks.check_outputs(outputs)
    rows = {**features, **outputs}
    for i in range(len(next(iter(features.values())))):
        yield {name: x[i] for name, x in rows.items()}
