"""A processor's batches as a `tf.data.Dataset`."""

import functools
import itertools
import types

import numpy as np
import tensorflow as tf

from etcmodel.autotuning import without_autotuning
from etcmodel.text import targets as targets_lib
from etcmodel.text.examples import LABEL, Columns, Examples
from etcmodel.text.labels import Labels
from etcmodel.text.readers import fields as fields_lib


def make_dataset(
    processor,
    examples,
    batch_size,
    settings=None,
    targets=None,
    *,
    columns=Columns(),  # noqa: B008  # It is frozen.
    labels=None,
    shuffle=None,
    seed=0,
    read=dict,
):
    """Makes a dataset of batches, which are processed as it is read.

    Args:
        processor: `EtcProcessor`, or another `ReadsExamples`.
        examples: see `examples.Examples`; or an instance; or a `tf.data.Dataset` of strings, of
            dicts of strings by field, or of pairs of these and a label, which becomes the target.
        batch_size: int. Examples per batch.
        settings: dict. As in `EtcProcessor.__call__`.
        targets: str, the field of the examples' `extra`, or the column, that has the label; or
            function of a batch that returns an array, or a dict of arrays by name, such as
            `targets.answer_targets`; or None for `columns.label`, if it is given.
        columns: `examples.Columns`, if examples are rows.
        labels: sequence of str, the labels in the order of the model's outputs, used to turn
            targets into numbers; or `labels.Labels`. None: those of a Hugging Face `Dataset`;
            otherwise labels are numbers.
        shuffle: bool. Whether each epoch has a different order; None: if there are targets, except
            for a `tf.data.Dataset`, which has its own order. All examples are shuffled together if
            they fit into 512 MB, else those near to each other, which is logged.
        seed: int. Seed of these orders.
        read: function of a batch that returns a dict of features.
    Returns:
        `tf.data.Dataset` of features, dicts of int32 tensors; or of (features, targets). Only the
        ranks are known in advance.
    Raises:
        ValueError: if there are no examples, or they can be read only once; naming the example and
            its label, if that is none of the labels.
    """
    if isinstance(examples, tf.data.Dataset):
        if isinstance(examples.element_spec, tuple) and targets is None and columns.label is None:
            targets = LABEL
        examples, shuffle = _Elements(examples), bool(shuffle)
    examples = examples if isinstance(examples, Examples) else Examples(examples, columns)
    target, targets = _targets(targets, columns.label)
    if target is None and labels is not None:
        raise ValueError("`labels` need `label`, the name of the column that has them.")
    if target is not None and not isinstance(labels, Labels):
        labels = Labels(x) if (x := labels or examples.class_names(target)) else None

    def generate(rng=None):
        named = examples.read(labels, target, rng)
        for batch in processor.batches_of(named, batch_size, settings):
            yield read(batch) if targets is None else (read(batch), targets(batch))

    shuffle = targets is not None if shuffle is None else shuffle
    num_batches = examples.size and -(-examples.size // batch_size)
    names = target and (labels.names if labels else ())
    return _from_generator(generate, shuffle, seed, num_batches, names)


def _targets(targets, column):
    """(the entry of `extra` that has the label or None, function of a batch to targets or None).

    Raises:
        ValueError: if they contradict each other.
    """
    if targets is not None and column is not None:
        raise ValueError("Give `label`, the name of a column, or `targets`, one of the two.")
    target = column if targets is None else targets
    if not isinstance(target, str):
        return None, targets
    return target, functools.partial(targets_lib.label_targets, field=target)


def _from_generator(generate, is_shuffled, seed, num_batches, names):
    """The dataset of the elements of `generate`, a function of a random generator or None.

    `num_batches` is None if that is not known without reading all.
    """
    first = next(generate(), None)
    if first is None:
        raise ValueError("`examples` holds no examples.")
    signature = tf.nest.map_structure(_spec, first)
    epochs, made = (
        itertools.count(),
        types.SimpleNamespace(is_shuffled=is_shuffled, labels=names, problems=[]),
    )

    def of_one_kind():
        rng = np.random.default_rng([seed, next(epochs)]) if is_shuffled else None
        try:
            for element in generate(rng):
                tf.nest.map_structure(_check_kind, signature, element)
                yield element
        except ValueError as error:
            made.problems.append(str(error))
            raise

    dataset = tf.data.Dataset.from_generator(of_one_kind, output_signature=signature)
    if num_batches is not None:  # So that Keras knows how many are left.
        dataset = dataset.apply(tf.data.experimental.assert_cardinality(num_batches))
    dataset = without_autotuning(dataset)
    dataset.etcmodel = made
    return dataset


def made_of(dataset):
    """Tells how `make_dataset` made a dataset; None for others, also for those derived from one.

    Returns:
        Object with `is_shuffled`; `labels`, the names that targets are numbers of, () for no names
        and None if targets are not labels; and `problems`, a list of str: those found so far.
    """
    return getattr(dataset, "etcmodel", None)


def _spec(array):
    array = np.asarray(array)
    return tf.TensorSpec([None] * array.ndim, array.dtype)


def _check_kind(spec, array):
    """Else TensorFlow would cut fractions off, if the first batch has none."""
    kind = np.asarray(array).dtype
    if not np.can_cast(kind, spec.dtype.as_numpy_dtype, "same_kind"):
        raise ValueError(
            f"Targets must be of one type. Those of the first batch are {spec.dtype.name}, others "
            f"{kind.name}: write all as floats, such as 1.0."
        )


class _Elements:
    """The examples of a dataset of strings; can be iterated repeatedly."""

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
    return {**fields, "extra": {LABEL: label[0]}} if label else fields
