"""The interface of tasks for training and evaluation."""

import abc
import collections
import copy
import dataclasses

import numpy as np
import tensorflow as tf

from etcmodel import checkpoints


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


def model_features(model, features, *, training):
    """The features that a model uses, as far as is known without its task.

    Args:
        model: tf_keras.Model. A functional model uses its named inputs (and would warn about
            others, such as labels). Other models get all features except strings, which XLA does
            not support.
        features: dict of tensors [batch, ...].
        training: bool. Makes no difference here.
    Returns:
        Dict of tensors [batch, ...].
    """
    del training
    inputs = getattr(model, "input", None)
    if isinstance(inputs, dict):
        return {name: features[name] for name in inputs}
    return {name: x for name, x in features.items() if x.dtype != tf.string}


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
            Dict of float32 scalars, each a mean over the examples of this batch, or over what
            `loss_weight` says. "loss" is minimized; the others are only reported.
        """

    def loss_weight(self, features):
        """Over how much the scalars of `loss` are means, such as the number of labels of a batch.

        The parts of a batch, on several devices or one after the other, count by it, so that their
        mean is that of the whole batch. By default every example counts the same.

        Args:
            features: dict of tensors, as in `loss`.
        Returns:
            scalar tensor; or a dict of them by the names of those terms of "loss" which `loss` also
            returns, what else "loss" has being divided evenly; None: all is divided evenly.
        """
        del features

    @abc.abstractmethod
    def train_dataset(self, request):
        """Endless tf.data.Dataset of feature dicts for a `TrainDataRequest`, in seeded order.

        Each element has `request.per_replica_batch_size` examples, and no strings, which XLA
        devices do not support.
        """

    def model_features(self, model, features, *, training):
        """The features that the model gets.

        By default those of the function `model_features`: a functional model's inputs, or else all
        but strings.

        Args:
            model: tf_keras.Model, of `build_model`.
            features: dict of tensors [batch, ...], of a training or an evaluation.
            training: bool. Whether the loss follows.
        Returns:
            Dict of tensors [batch, ...].
        """
        return model_features(model, features, training=training)

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
        return []

    def trained_variables(self, model):
        """The variables of the model to train: list; by default all trainable ones."""
        return model.trainable_variables

    def learning_rate_shares(self, model):
        """Variables with a fraction of the learning rate: list of (variable, float).

        By default there are none.
        """
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


_LABELS = "labels"
# Features whose tokens are those that have a logit each: of a decoder, if there is one.
_OF_POSITIONS = ("decoder_input_ids", "input_ids", "token_ids")


class HeadTask(Task):
    """A task whose data are arrays in memory: features as in `models.features`, and labels.

    The loss and the metrics are the head's defaults. The loss is also a metric, and the checkpoint
    with the lowest loss is the best.

    Args:
        make_model: function without arguments that returns a new `heads.EncoderWithHead`.
        train: (features, labels). Features are a dict of name to array [num_examples, ...];
            labels are an int array, or a dict of them for several outputs.
        evaluation: likewise, or None for no evaluation.
        name: str. Name of the data, for error messages and the run's notes.
    Raises:
        ValueError: naming the array, if arrays have different numbers of examples.

    >>> from etcmodel import training
    >>> data = {"token_ids": [[2, 7], [2, 8]]}, [0, 1]
    >>> task = training.HeadTask(lambda: etcmodel.from_pretrained("my_model"), data)
    >>> task.num_train_examples
    2
    """

    best_metric = "loss"
    higher_is_better = False

    def __init__(self, make_model, train, evaluation=None, name="head"):
        self.name = name
        self._make_model = make_model
        self._losses = self._metrics = None
        self._train = _flat(*train)
        self._evaluation = None if evaluation is None else _flat(*evaluation)

    @property
    def num_train_examples(self):
        return len(next(iter(self._train.values())))

    def build_model(self):
        model = self._make_model()
        self._losses, self._metrics = model.default_loss(), model.default_metrics()
        return model

    def loss(self, outputs, features):
        parts = {
            name: tf.reduce_mean(loss.call(labels, outputs[name]))
            for name, loss, labels in _labelled(self._losses, features)
        }
        if not parts:
            raise ValueError(f"There are no labels for {sorted(_by_output(self._losses))}.")
        total = tf.add_n(list(parts.values()))
        named = {f"{name}_loss": part for name, part in parts.items()} if len(parts) > 1 else {}
        return {"loss": total, **named}

    def loss_weight(self, features):
        labelled = _labelled(self._losses, features)
        if all(getattr(loss, "num_terms", None) is None for _, loss, _ in labelled):
            return None
        weights = {f"{name}_loss": _num_terms(x, y, features) for name, x, y in labelled}
        return weights if len(weights) > 1 else next(iter(weights.values()))

    def train_dataset(self, request):
        examples = tf.data.Dataset.from_tensor_slices(self._train)
        examples = examples.shuffle(self.num_train_examples, seed=request.seed)
        examples = examples.repeat().skip(request.skip_examples)
        if (context := request.input_context) is not None:
            examples = examples.shard(context.num_input_pipelines, context.input_pipeline_id)
        return examples.batch(request.per_replica_batch_size, drop_remainder=True).prefetch(1)

    def eval_dataset(self, batch_size):
        if self._evaluation is None:
            return None
        return tf.data.Dataset.from_tensor_slices(self._evaluation).batch(batch_size)

    def evaluate(self, predictions):
        columns = collections.defaultdict(list)
        for prediction in predictions:
            for name, value in prediction.items():
                columns[name].append(value)
        rows = {name: np.stack(values) for name, values in columns.items()}
        measured = {name: float(value) for name, value in self.loss(rows, rows).items()}
        metrics = _by_output(self._metrics)
        for name, of_output in metrics.items():
            labels = _labels(rows, name)
            if labels is None:
                continue
            for metric in of_output if isinstance(of_output, list) else [of_output]:
                metric = copy.deepcopy(metric)
                metric.update_state(labels, rows[name])
                prefix = f"{name}_" if len(metrics) > 1 else ""
                measured[f"{prefix}{metric.name}"] = float(metric.result())
        return measured


def _flat(features, labels):
    """Features and labels as one dict of arrays, with labels named after their outputs."""
    labels = labels if isinstance(labels, dict) else {"logits": labels}
    arrays = {**features, **{f"{_LABELS}/{name}": x for name, x in labels.items()}}
    arrays = {name: np.asarray(x) for name, x in arrays.items()}
    counts = {name: len(x) for name, x in arrays.items()}
    if len(set(counts.values())) > 1:
        raise ValueError(f"All arrays must have as many examples. Received: {counts}")
    return arrays


def _by_output(given):
    """Losses or metrics by output; the only output is called "logits"."""
    return given if isinstance(given, dict) else {"logits": given}


def _labelled(losses, features):
    """(name, loss, labels) of each output that has labels: list."""
    losses = _by_output(losses)
    labels = {name: _labels(features, name) for name in losses}
    return [(name, losses[name], x) for name, x in labels.items() if x is not None]


def _num_terms(loss, labels, features):
    """Over how many labels, or else examples, a loss is a mean: int64 scalar."""
    if getattr(loss, "num_terms", None) is None:
        return tf.shape(labels, tf.int64)[0]
    if not getattr(loss, "is_of_positions", False):
        return loss.num_terms(labels)
    length = next((tf.shape(features[x])[-1] for x in _OF_POSITIONS if x in features), None)
    return loss.num_terms(labels, length)


def _labels(features, name):
    return features.get(f"{_LABELS}/{name}")
