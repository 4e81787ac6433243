"""Running a model over every example of a data set once, on all devices."""

import orbit
import tensorflow as tf

from etcmodel.training import forward

__all__ = ["Evaluator", "Predictor"]

_IS_REAL = "etcmodel_is_real"  # Not a name that records use.


class Predictor:
    """Gives a model's outputs, example by example.

    Each worker of a multi-worker strategy runs over the whole data set by itself.

    Args:
        model: tf_keras.Model, made in the strategy's scope.
        strategy: tf.distribute.Strategy.
    """

    def __init__(self, model, strategy):
        self._model, self._strategy = model, strategy

        self._on_all_devices = tf.function(
            lambda features: strategy.run(self._on_one_device, args=(features,))
        )

    def __call__(self, make_dataset, batch_size):
        """Iterates over the examples in the data set's order.

        Args:
            make_dataset: function from a batch size to a tf.data.Dataset of dicts of dense
                tensors; the last batch may be smaller.
            batch_size: int. Examples of one step; must be a multiple of this worker's devices.
        Yields:
            Dicts of NumPy arrays without the batch axis: features and outputs.
        Raises:
            ValueError: if the devices do not divide the batch.
        """
        batches = orbit.utils.make_distributed_dataset(
            self._strategy, _device_batches, make_dataset=make_dataset, batch_size=batch_size
        )
        for features in batches:
            rows = self._on_all_devices(features)
            for device_rows in self._strategy.experimental_local_results(rows):
                yield from _real_examples(device_rows)

    def _on_one_device(self, features):
        # The features go along, so that each row of outputs stays with its own.
        outputs = forward.call_model(self._model, features, training=False)
        return {**features, **outputs}


class Evaluator(orbit.AbstractEvaluator):
    """Measures a model on the task's evaluation data.

    Args:
        task: Task with an `eval_dataset`.
        predictor: Predictor.
        batch_size: int. Examples of one step.
    """

    def __init__(self, *, task, predictor, batch_size):
        self._task, self._predictor, self._batch_size = task, predictor, batch_size

    def evaluate(self, num_steps):
        """Metrics of the whole data set, whatever `num_steps` (Orbit's) says: dict of floats."""
        del num_steps
        predictions = self._predictor(self._task.eval_dataset, self._batch_size)
        return {name: float(value) for name, value in self._task.evaluate(predictions).items()}


def _device_batches(make_dataset, batch_size, input_context):
    """Splits every batch into one equally large batch per device of this worker.

    All devices then always have a batch, and of the same shape, as TPUs need; the last batch is
    filled up with copies of its last example that are marked as not real.
    """
    devices = input_context.num_replicas_in_sync // input_context.num_input_pipelines
    if batch_size % devices:
        raise ValueError(f"The batch must be a multiple of {devices} devices. Got: {batch_size}")

    def split(features):
        size = tf.shape(tf.nest.flatten(features)[0])[0]
        rows = tf.range(batch_size)
        features = {**features, _IS_REAL: rows < size}
        rows = tf.minimum(rows, size - 1)
        return {
            name: _per_device(x if name == _IS_REAL else tf.gather(x, rows), batch_size, devices)
            for name, x in features.items()
        }

    dataset = make_dataset(batch_size).map(split, num_parallel_calls=tf.data.AUTOTUNE)
    return dataset.flat_map(tf.data.Dataset.from_tensor_slices).prefetch(tf.data.AUTOTUNE)


def _per_device(x, batch_size, devices):
    """[batch_size, ...] -> [devices, batch_size / devices, ...]"""
    return tf.reshape(x, tf.concat([[devices, batch_size // devices], tf.shape(x)[1:]], axis=0))


def _real_examples(rows):
    rows = {name: x.numpy() for name, x in rows.items()}
    for i, is_real in enumerate(rows.pop(_IS_REAL)):
        if is_real:
            yield {name: x[i] for name, x in rows.items()}
