"""The interface of tasks for training and evaluation."""

import abc
import dataclasses

import tensorflow as tf

from etcmodel import checkpoints

__all__ = ["Task", "TrainDataRequest"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainDataRequest:
    """The training batches that the trainer requests; see `input_pipeline.training_batches`.

    Attributes:
        global_batch_size: int. Examples per step, over all devices and workers.
        seed: int. Decides the order of the examples.
        skip_examples: int. Number of examples, over all workers, that earlier steps have used.
        input_context: `tf.distribute.InputContext` of the worker. None: there is one device.

    >>> from etcmodel import training
    >>> request = training.TrainDataRequest(global_batch_size=8, seed=1)
    >>> request.per_replica_batch_size
    8
    """

    global_batch_size: int
    seed: int = 0
    skip_examples: int = 0
    input_context: tf.distribute.InputContext | None = None

    @property
    def per_replica_batch_size(self):
        """Examples per step on one device.

        Raises:
            ValueError: if the global batch size is not a multiple of the number of devices.
        """
        if self.input_context is None:
            return self.global_batch_size
        return self.input_context.get_per_replica_batch_size(self.global_batch_size)


class Task(abc.ABC):
    """A data set, a model and metrics. Subclasses are thin: they call their folder's modules.

    Attributes:
        best_metric: str. The metric of `evaluate` that selects the best checkpoint. None: no best
            checkpoint is kept.
        higher_is_better: bool. Whether a higher value of it is better.

    >>> from etcmodel import training
    >>> issubclass(training.HeadTask, training.Task), training.HeadTask.best_metric
    (True, 'loss')
    """

    best_metric = None
    higher_is_better = True

    @property
    @abc.abstractmethod
    def num_train_examples(self):
        """Number of training examples: int."""

    @abc.abstractmethod
    def build_model(self):
        """A built tf_keras.Model, from a dict of features to a dict of outputs, both batched."""

    @abc.abstractmethod
    def loss(self, outputs, features):
        """The loss of one batch.

        Returns:
            Dict of float32 scalars, each a mean over the examples of this batch. "loss" is
            minimized; the others are only reported.
        """

    @abc.abstractmethod
    def train_dataset(self, request):
        """Endless tf.data.Dataset of feature dicts for a `TrainDataRequest`, in seeded order.

        Each element has `request.per_replica_batch_size` examples, and no strings, which XLA
        devices do not support.
        """

    def eval_dataset(self, batch_size):
        """tf.data.Dataset of feature dicts, each example once; None without evaluation.

        The features must be dense tensors; `evaluate` gets them, too. Strings, such as ids, stay on
        the host.
        """
        del batch_size

    def check_data(self):  # noqa: B027
        """Finds the record that TensorFlow could not read, since its error does not name it.

        Raises:
            ValueError: naming the file, the record and what is wrong with it.
        """

    def evaluate(self, predictions):
        """Metrics of the evaluation examples.

        Args:
            predictions: iterator, one dict of NumPy arrays per example in the data set's order:
                its features and the model's outputs (which win if both use a name).
        Returns:
            Dict of floats.
        """
        raise NotImplementedError(f"{type(self).__name__} has evaluation data but no `evaluate`")

    def text_samples(self, number):
        """The first predictions of the latest `evaluate`, in readable form.

        Args:
            number: int. Maximum number of predictions.
        Returns:
            list of (input, prediction, right answer), each a str; by default none.
        """
        del number
        return []

    def trained_variables(self, model):
        """The variables of the model to train: list; by default all trainable ones."""
        return model.trainable_variables

    def learning_rate_shares(self, model):
        """Variables with a fraction of the learning rate: list of (variable, float).

        By default there are none.
        """
        del model
        return []

    def initialize(self, model, init_checkpoint):
        """Initializes the weights of a new run, with `checkpoints.initialize`."""
        checkpoints.initialize(model, init_checkpoint)

    def run_config(self):
        """The settings, besides the training options, that determine the result: dict for JSON."""
        return {}

    def run_config_defaults(self):
        """Values of `run_config` entries for runs of versions that did not write them.

        Returns:
            dict like `run_config`; `UNKNOWN` for values that are not known.
        """
        return {}

    def run_notes(self):
        """Further entries stored with a run, which may differ when it is resumed: dict for JSON."""
        return {}

    def run_files(self):
        """Text files to store beside a run's checkpoints: dict of file name to str."""
        return {}
