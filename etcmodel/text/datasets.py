"""Batches of a processor as a `tf.data.Dataset`."""

import functools
import itertools
import os

import numpy as np
import tensorflow as tf

from etcmodel.autotuning import without_autotuning
from etcmodel.text import targets as targets_lib
from etcmodel.text.readers import fields as fields_lib

__all__ = ["make_dataset"]

_LABEL = "label"


def make_dataset(processor, examples, batch_size, settings=None, targets=None):
    """A dataset of batches, which are made while it is read.

    Args:
        processor: `EtcProcessor`.
        examples: str, the path of a file of JSON lines; or a list of examples, or another iterable
            that can be read more than once; or a `tf.data.Dataset` of strings, of dicts of strings
            by field, or of pairs of such and a label, which is then the target.
        batch_size: int. Examples a batch.
        settings: dict. As in `EtcProcessor.__call__`.
        targets: str, the field of the examples' `extra` that has the label; or function of a
            `ProcessedBatch` to an array, or a dict of arrays by name, such as
            `targets.answer_targets`; or None.
    Returns:
        `tf.data.Dataset` of features, dicts of int32 tensors; or of (features, targets). Only the
        ranks are known in advance.
    Raises:
        ValueError: if there are no examples, or they can be read only once.
    """
    if not isinstance(examples, (str, os.PathLike)) and iter(examples) is examples:
        raise ValueError(
            "`examples` must be readable more than once: a list, or the path of a file. Received: "
            f"{type(examples).__name__}"
        )
    if isinstance(examples, tf.data.Dataset):
        if isinstance(examples.element_spec, tuple) and targets is None:
            targets = _LABEL
        examples = _Elements(examples)
    if isinstance(targets, str):
        targets = functools.partial(targets_lib.label_targets, field=targets)

    def generate():
        for batch in processor.batches(examples, batch_size, settings):
            yield dict(batch) if targets is None else (dict(batch), targets(batch))

    first = [*itertools.islice(generate(), 1)]
    if not first:
        raise ValueError("`examples` holds no examples.")
    signature = tf.nest.map_structure(_spec, first[0])

    def of_one_kind():
        for element in generate():
            tf.nest.map_structure(_check_kind, signature, element)
            yield element

    made = tf.data.Dataset.from_generator(of_one_kind, output_signature=signature)
    return without_autotuning(made)


def _spec(array):
    array = np.asarray(array)
    return tf.TensorSpec([None] * array.ndim, array.dtype)


def _check_kind(spec, array):
    """Else TensorFlow would cut fractions off, where the first batch has none."""
    kind = np.asarray(array).dtype
    if not np.can_cast(kind, spec.dtype.as_numpy_dtype, "same_kind"):
        raise ValueError(
            f"Targets must be of one type. Those of the first batch are {spec.dtype.name}, others "
            f"{kind.name}: write all as floats, such as 1.0."
        )


class _Elements:
    """The examples of a dataset of strings, again and again."""

    def __init__(self, dataset):
        self._dataset = dataset

    def __iter__(self):
        return map(_example, itertools.count(), self._dataset.as_numpy_iterator())


def _example(number, element):
    content, *label = element if isinstance(element, tuple) else (element,)
    fields = content if isinstance(content, dict) else {"text": content}
    for name, value in fields.items():
        where = f"`{name}` of example {number}, counted from 0"
        decoded = functools.partial(fields_lib.decoded, where=where)
        fields = {**fields, name: tf.nest.map_structure(decoded, value)}
    return {**fields, "extra": {_LABEL: label[0]}} if label else fields
