"""What a task gives to be trained and evaluated."""

import abc
import dataclasses

import tensorflow as tf

from etcmodel import checkpoints

__all__ = ["Task", "TrainDataRequest"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainDataRequest:
    """Which training batches the trainer wants; `input_pipeline.training_batches` serves it.

    Attributes:
        global_batch_size: int. Examples of one step over all devices and workers.
        seed: int. Decides the order of the examples.
        skip_examples: int. Examples, over all workers, that earlier steps have used.
        input_context: which of several workers asks. None: there is one device.
    """

    global_batch_size: int
    seed: int = 0
    skip_examples: int = 0
    input_context: tf.distribute.InputContext | None = None

    @property
    def per_replica_batch_size(self):
        """Examples of one step on one device.

        Raises:
            ValueError: if the devices do not divide the global batch.
        """
        if self.input_context is None:
            return self.global_batch_size
        return self.input_context.get_per_replica_batch_size(self.global_batch_size)


class Task(abc.ABC):
    """A data set, a model and a measure. Subclasses are thin: they call their folder's modules.

    Attributes:
        best_metric: str. The metric of `evaluate` by which the best checkpoint is chosen. None: no
            checkpoint is chosen.
        higher_is_better: bool. Whether a higher value of it is better.
    """

    best_metric = None
    higher_is_better = True

    @property
    @abc.abstractmethod
    def num_train_examples(self):
        """Number of training examples: int."""

    @abc.abstractmethod
    def build_model(self):
        """A built tf_keras.Model: dict of features -> dict of outputs, both batched."""

    @abc.abstractmethod
    def loss(self, outputs, features):
        """The model's error on one batch.

        Returns:
            Dict of float32 scalars, each a mean over the examples of this batch. "loss" is what
            is minimised, the others are its parts and are only reported.
        """

    @abc.abstractmethod
    def train_dataset(self, request):
        """Endless tf.data.Dataset of feature dicts for a `TrainDataRequest`, in seeded order.

        Each element has `request.per_replica_batch_size` examples.
        """

    def eval_dataset(self, batch_size):
        """tf.data.Dataset of feature dicts, each example once; None if there is nothing to do.

        The features must be dense tensors; `evaluate` gets them back.
        """
        del batch_size

    def evaluate(self, predictions):
        """Metrics of the evaluation examples.

        Args:
            predictions: iterator, one dict of NumPy arrays per example in the data set's order:
                its features and the model's outputs (which win if both use a name).
        Returns:
            Dict of floats.
        """
        raise NotImplementedError(f"{type(self).__name__} has evaluation data but no `evaluate`")

    def initialize(self, model, init_checkpoint):
        """Sets the weights of a new run: `checkpoints.initialize`."""
        checkpoints.initialize(model, init_checkpoint)

    def run_config(self):
        """What, beside the training options, decides the result: a dict that JSON can hold."""
        return {}

    def run_config_defaults(self):
        """What entries of `run_config` mean in the run of a version that did not write them.

        Returns:
            dict like `run_config`; `UNKNOWN` where it cannot be told.
        """
        return {}

    def run_notes(self):
        """What else is kept with a run, and may differ when it goes on: a dict for JSON."""
        return {}
