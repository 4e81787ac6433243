"""Trains models that differ only in weights and data with a step that is traced once.

For models so small, tracing takes as long as a run.
"""

import numpy as np
import tensorflow as tf
import tf_keras

from etcmodel import training
from etcmodel.autotuning import without_autotuning
from etcmodel.checkpoints import names

__all__ = ["SharedGraph"]


class SharedGraph:
    """A model, its training step and its prediction.

    Args:
        task: `training.Task`. Its model is built here, its loss minimized.
        num_steps, batch_size: int. Of each training.
        learning_rate: float. Reached after the first tenth of the steps; then it falls to 0.
    """

    def __init__(self, task, *, num_steps, batch_size, learning_rate=3e-3):
        self._num_steps, self._batch_size = num_steps, batch_size
        config = training.TrainingConfig(learning_rate=learning_rate)
        self.model = task.build_model()
        self._optimizer = tf_keras.optimizers.Adam(
            training.build_learning_rate(config, num_steps),
            global_clipnorm=1.0,
            jit_compile=False,  # For steps so short, compiling takes longer than it saves.
        )
        self._optimizer.build(self.model.trainable_variables)
        self._step = tf.function(lambda features: self._train_step(task, features))
        self._predict = tf.function(self._outputs)

    def train(self, task, seed, encoder_weights=None):
        """Trains the model from scratch.

        Args:
            task: `training.Task` of the same model, with the data of this training.
            seed: int. Of the weights and the order of the examples.
            encoder_weights: dict as of `encoder_weights`, to begin with; or None.
        """
        tf_keras.utils.set_random_seed(seed)
        for variable, value in zip(self.model.variables, task.build_model().variables, strict=True):
            variable.assign(value)
        if encoder_weights is not None:
            for name, variable in names.encoder_variables(self.model).items():
                variable.assign(encoder_weights[name])
        for variable in self._optimizer.variables:
            if variable is not self._optimizer.learning_rate:
                variable.assign(tf.zeros_like(variable))
        request = training.TrainDataRequest(global_batch_size=self._batch_size, seed=seed)
        for features in without_autotuning(task.train_dataset(request).take(self._num_steps)):
            self._step(features)

    def evaluate(self, task, batch_size=50):
        """The metrics of the model as it is: dict of float."""

        def predictions():
            for features in without_autotuning(task.eval_dataset(batch_size)):
                both = {**features, **self._predict(features)}
                arrays = {name: np.asarray(x) for name, x in both.items()}
                for row in range(len(next(iter(arrays.values())))):
                    yield {name: x[row] for name, x in arrays.items()}

        return task.evaluate(predictions())

    def encoder_weights(self):
        """The present weights of the encoder: dict of name to array."""
        return {name: x.numpy() for name, x in names.encoder_variables(self.model).items()}

    def _outputs(self, features, is_training=False):
        outputs = self.model(features, training=is_training)
        return outputs if isinstance(outputs, dict) else {"logits": outputs}

    def _train_step(self, task, features):
        variables = self.model.trainable_variables
        with tf.GradientTape() as tape:
            loss = task.loss(self._outputs(features, is_training=True), features)["loss"]
        self._optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return loss
