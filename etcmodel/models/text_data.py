"""Texts in place of features: what `fit`, `evaluate` and `predict` make of them."""

import contextlib
import numbers

import numpy as np
import tensorflow as tf

from etcmodel.autotuning import without_autotuning
from etcmodel.layers import base
from etcmodel.models import processed_batches
from etcmodel.ops.errors import fail, one_line
from etcmodel.text.readers import fields

__all__ = ["ReadsTexts", "check_one_row"]

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
    callbacks, `tf.distribute`, where the mean of each device counts the same, also if it has fewer
    texts of an uneven last batch. Each text must be one row, so the processor must have neither
    `stride` nor `pack`; else use `processor.dataset`.
    """

    def fit(self, x=None, y=None, batch_size=None, *args, **kwargs):
        """As in Keras, also on texts.

        Raises:
            ValueError: if there are texts and no processor, or one that cuts a text into rows; with
                the number of the example if a text is no UTF-8; if a callback is of Keras 3.
        """
        base.refuse_keras_3("callbacks", (args, kwargs.get("callbacks")))
        with _told_in_a_line() as problems:
            kwargs |= self._validation(kwargs.get("validation_data"), problems)
            given = self._arguments(x, y, batch_size, kwargs, problems)
            return super().fit(*given, *args, **kwargs)

    def evaluate(self, x=None, y=None, batch_size=None, *args, **kwargs):
        """As in Keras, also on texts; errors as of `fit`."""
        base.refuse_keras_3("callbacks", (args, kwargs.get("callbacks")))
        with _told_in_a_line() as problems:
            given = self._arguments(x, y, batch_size, kwargs, problems)
            return super().evaluate(*given, *args, **kwargs)

    def predict(self, x, batch_size=None, *args, **kwargs):
        """As in Keras, also on texts; errors as of `fit`."""
        base.refuse_keras_3("callbacks", (args, kwargs.get("callbacks")))
        with _told_in_a_line() as problems:
            given = self._without_texts(x, batch_size, problems)
            return super().predict(*given, *args, **kwargs)

    def _validation(self, given, problems):
        """The `validation_data` of features: dict of this argument; {} for what has no texts."""
        if isinstance(given, tf.data.Dataset):
            return {"validation_data": self._without_texts(given, None, problems)[0]}
        if not (isinstance(given, (list, tuple)) and given):
            return {}
        features = self._without_texts(given[0], None, problems)[0]
        rest = given[1:] if features is given[0] else map(_array, given[1:])
        return {"validation_data": (features, *rest)}

    def _arguments(self, x, y, batch_size, others, problems):
        """(features, labels, batch size), and in `others` weights, as Keras takes them."""
        features, batch_size = self._without_texts(x, batch_size, problems)
        if features is x:
            return x, y, batch_size
        if "sample_weight" in others:
            others["sample_weight"] = _array(others["sample_weight"])
        return features, _array(y), batch_size

    def _without_texts(self, x, batch_size, problems):
        """(features, or what else was given; the batch size that Keras is to know)."""
        if isinstance(x, tf.data.Dataset):
            return _dataset(self, x, batch_size, problems)
        examples = _examples(x)
        return (x if examples is None else _features(self, examples)), batch_size


@contextlib.contextmanager
def _told_in_a_line():
    """A context that yields a list for problems in `tf.data`, whose own errors have many lines."""
    problems = []
    try:
        yield problems
    except tf.errors.OpError:
        if not problems:
            raise
        raise one_line(problems[0]) from None


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
    return _decoded(values.tolist())


def _is_array_of_texts(x):
    if isinstance(x, np.ndarray):
        is_objects = x.dtype == object and all(isinstance(one, (str, bytes)) for one in x.flat)
        return x.dtype.kind in "US" or is_objects
    return tf.is_tensor(x) and x.dtype == tf.string


def _decoded(texts, start=0, name="text"):
    """Texts, or their bytes, as a list of str; in errors they are counted from `start`."""
    return [
        fields.decoded(x, f"`{name}` of example {number}, counted from 0")
        for number, x in enumerate(texts, start)
    ]


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
    check_one_row(processor, "`processor.dataset`")
    return processor


def check_one_row(processor, instead):
    """Raises ValueError if a processor may make more or fewer rows than there are texts.

    Args:
        processor: `EtcProcessor`, or another object that makes batches of texts.
        instead: str. What to give in place of texts, for the error.
    """
    config = getattr(processor, "config", None)
    for name in ("stride", "pack"):
        if (value := getattr(config, name, None)) not in (None, False):
            fail(
                f"Each text must be one row, but the processor has `{name}`, {value}: give "
                f"{instead}, or a processor without it."
            )


def _dataset(model, dataset, batch_size, problems):
    """A dataset with texts as one of features; all others as they are.

    What is wrong with texts while it is read, is also added to the list `problems`.
    """
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

    def features_of(start, *values):
        try:
            features = _of_batch(model, tf.nest.pack_sequence_as(texts, values), start)
        except ValueError as error:
            problems.append(str(error))
            raise
        return [np.asarray(features[name], kinds[name].dtype) for name in kinds]

    def process(start, element):
        texts, *others = element if isinstance(spec, tuple) else (element,)
        values = tf.nest.flatten(texts)
        found = tf.numpy_function(
            features_of, [start, *values], [array.dtype for array in kinds.values()]
        )
        for tensor, array in zip(found, kinds.values(), strict=True):
            tensor.set_shape([values[0].shape[0], *[None] * (array.ndim - 1)])
        arrays = dict(zip(kinds, found, strict=True))
        size = tf.shape(values[0], tf.int64)[0]
        return start + size, (arrays, *others) if others else arrays

    return without_autotuning(dataset.scan(np.int64(0), process).prefetch(1)), None


def _of_batch(model, texts, start=0):
    """The features of a batch of texts, or of a dict of such by field; `start` counts the first."""
    if not isinstance(texts, dict):
        return _features(model, _decoded(np.asarray(texts).tolist(), start))
    columns = {
        name: _decoded(np.asarray(values).tolist(), start, name) for name, values in texts.items()
    }
    rows = zip(*columns.values(), strict=True)
    return _features(model, [dict(zip(columns, row, strict=True)) for row in rows])
