"""Texts in place of features: what `fit`, `evaluate` and `predict` make of them."""

import numbers

import numpy as np
import tensorflow as tf

from etcmodel.models import processed_batches
from etcmodel.ops.errors import fail

__all__ = ["ReadsTexts"]

_BATCH_SIZE = 32  # Keras's own.
_NEED = "Texts need a processor: set `model.processor`, or give features."


class ReadsTexts:
    """A Keras model that takes texts wherever it takes features, if it has a `processor`.

    In `fit`, `evaluate` and `predict`, also of `validation_data`, `x` may be

    * a text; or a list, array or tensor of texts; or a list of dicts of texts, by field. The
      processor makes them one batch, which is padded to the longest.
    * a `tf.data.Dataset` of texts, or of dicts of texts by field; or of pairs of these and labels,
      or triples with weights. Its elements are batches, which are processed while it is read, or
      single texts, of which `batch_size` are a batch; by default, and for `validation_data`, 32.

    All else is as Keras has it: labels and weights, also as lists of numbers beside a list;
    callbacks, `tf.distribute`. Each text must be one row, so the processor must have neither
    `stride` nor `pack`; else use `processor.dataset`.
    """

    def fit(self, x=None, y=None, batch_size=None, *args, **kwargs):
        """As in Keras, also on texts.

        Raises:
            ValueError: if there are texts and no processor, or one that cuts a text into rows.
        """
        given = kwargs.get("validation_data")
        if isinstance(given, tf.data.Dataset):
            kwargs["validation_data"] = self._without_texts(given, None)[0]
        elif isinstance(given, (list, tuple)) and given:
            features = self._without_texts(given[0], None)[0]
            rest = given[1:] if features is given[0] else map(_array, given[1:])
            kwargs["validation_data"] = (features, *rest)
        return super().fit(*self._arguments(x, y, batch_size, kwargs), *args, **kwargs)

    def evaluate(self, x=None, y=None, batch_size=None, *args, **kwargs):
        """As in Keras, also on texts; errors as of `fit`."""
        return super().evaluate(*self._arguments(x, y, batch_size, kwargs), *args, **kwargs)

    def predict(self, x, batch_size=None, *args, **kwargs):
        """As in Keras, also on texts; errors as of `fit`."""
        return super().predict(*self._without_texts(x, batch_size), *args, **kwargs)

    def _arguments(self, x, y, batch_size, others):
        """(features, labels, batch size), and in `others` weights, as Keras takes them."""
        features, batch_size = self._without_texts(x, batch_size)
        if features is x:
            return x, y, batch_size
        if "sample_weight" in others:
            others["sample_weight"] = _array(others["sample_weight"])
        return features, _array(y), batch_size

    def _without_texts(self, x, batch_size):
        """(features, or what else was given; the batch size that Keras is to know)."""
        if isinstance(x, tf.data.Dataset):
            return _dataset(self, x, batch_size)
        examples = _examples(x)
        return (x if examples is None else _features(self, examples)), batch_size


def _examples(x):
    """The texts, or dicts of them by field, that are given: list; None if there are none."""
    if isinstance(x, str):
        return [x]
    if isinstance(x, (list, tuple)):
        is_text = [isinstance(one, (str, dict)) for one in x]
        return list(x) if x and all(is_text) else None
    if not _is_array_of_texts(x):
        return None
    values = np.asarray(x)
    if values.ndim != 1:
        fail(f"Texts must have shape [batch]. Received shape: {list(values.shape)}")
    return [_text(value) for value in values.tolist()]


def _is_array_of_texts(x):
    if isinstance(x, np.ndarray):
        is_objects = x.dtype == object and all(isinstance(one, (str, bytes)) for one in x.flat)
        return x.dtype.kind in "US" or is_objects
    return tf.is_tensor(x) and x.dtype == tf.string


def _text(value):
    return value.decode("utf-8") if isinstance(value, bytes) else value


def _array(values):
    """Numbers in a list as an array, since Keras takes such a list beside another list alone."""
    is_list = isinstance(values, (list, tuple)) and len(values)
    is_numbers = is_list and all(isinstance(one, numbers.Number) for one in values)
    return np.asarray(values) if is_numbers else values


def _features(model, examples):
    """The features of examples, a row each: dict of arrays."""
    processor = _processor(model)
    batch = processor(examples)
    if "token_ids" in batch and model.token_feature != "token_ids":
        features = processed_batches.text_arguments(dict(batch), model.encoder.config)
        return {name: np.asarray(array) for name, array in features.items()}
    return dict(batch)


def _processor(model):
    """The model's processor, which must make a row of each text."""
    processor = model.processor
    if processor is None:
        fail(_NEED)
    config = getattr(processor, "config", None)
    for name in ("stride", "pack"):
        if (value := getattr(config, name, None)) not in (None, False):
            fail(
                f"Each text must be one row, but the processor has `{name}`, {value}: give "
                "`processor.dataset`, or a processor without it."
            )
    return processor


def _dataset(model, dataset, batch_size):
    """A dataset with texts as one of features; all others as they are."""
    spec = dataset.element_spec
    parts = spec if isinstance(spec, tuple) else (spec,)
    specs = tf.nest.flatten(parts[0])
    if not specs or any(getattr(one, "dtype", None) != tf.string for one in specs):
        return dataset, batch_size
    _processor(model)
    ranks = {one.shape.rank for one in specs}
    if len(ranks) != 1 or not ranks <= {0, 1}:
        fail(f"Texts of a dataset must be single ones or have shape [batch]. Received: {parts[0]}")
    if ranks == {0}:
        dataset = dataset.batch(batch_size or _BATCH_SIZE)
    elif batch_size is not None:
        fail("The dataset has batches of texts: leave out `batch_size`, or do not batch it.")
    first = next(iter(dataset.take(1)), None)
    if first is None:
        fail("The dataset holds no texts.")
    texts = first[0] if isinstance(spec, tuple) else first
    kinds = {name: np.asarray(array) for name, array in _of_batch(model, texts).items()}

    def process(texts, *others):
        arrays = _in_python(model, texts, kinds)
        return (arrays, *others) if others else arrays

    return dataset.map(process).prefetch(1), None


def _in_python(model, texts, kinds):
    """The features of string tensors in a graph: dict of tensors; `kinds` are arrays like them."""
    leaves = tf.nest.flatten(texts)

    def run(*values):
        features = _of_batch(model, tf.nest.pack_sequence_as(texts, values))
        return [np.asarray(features[name], kinds[name].dtype) for name in kinds]

    found = tf.numpy_function(run, leaves, [array.dtype for array in kinds.values()])
    for tensor, array in zip(found, kinds.values(), strict=True):
        tensor.set_shape([leaves[0].shape[0], *[None] * (array.ndim - 1)])
    return dict(zip(kinds, found, strict=True))


def _of_batch(model, texts):
    """The features of a batch of texts, or of a dict of such by field."""
    if not isinstance(texts, dict):
        return _features(model, [_text(value) for value in np.asarray(texts).tolist()])
    columns = {name: np.asarray(values).tolist() for name, values in texts.items()}
    rows = zip(*columns.values(), strict=True)
    return _features(model, [dict(zip(columns, map(_text, row), strict=True)) for row in rows])
