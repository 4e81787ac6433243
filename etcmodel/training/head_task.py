"""Trains any model with a head (`etcmodel.models.heads`) with this library's trainer."""

import collections
import copy

import numpy as np
import tensorflow as tf

from etcmodel.training.task import Task

__all__ = ["HeadTask"]

_LABELS = "labels"


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
        losses = self._losses if isinstance(self._losses, dict) else {"logits": self._losses}
        parts = {
            name: tf.reduce_mean(loss.call(_labels(features, name), outputs[name]))
            for name, loss in losses.items()
            if _labels(features, name) is not None
        }
        if not parts:
            raise ValueError(f"There are no labels for {sorted(losses)}.")
        total = tf.add_n(list(parts.values()))
        named = {f"{name}_loss": part for name, part in parts.items()} if len(parts) > 1 else {}
        return {"loss": total, **named}

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
        metrics = self._metrics if isinstance(self._metrics, dict) else {"logits": self._metrics}
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


def _labels(features, name):
    return features.get(f"{_LABELS}/{name}")
