"""Lets `fit`, `evaluate` and `predict` take texts in place of features."""

import contextlib
import functools
import itertools
import logging
import numbers
import os
import re
import types

import numpy as np
import tensorflow as tf
import tf_keras

from etcmodel import shown_values
from etcmodel.autograph import without_autograph
from etcmodel.autotuning import without_autotuning
from etcmodel.layers import base
from etcmodel.models import label_checks, processed_batches
from etcmodel.ops.errors import fail, one_line
from etcmodel.text import datasets
from etcmodel.text import examples as examples_lib
from etcmodel.text.labels import REGRESSION, SINGLE_LABEL, Labels, in_order, is_whole
from etcmodel.text.readers import fields

_BATCH_SIZE = 32  # Keras's default.
_NO_LABEL = -1
_WRONG_LABELS = re.compile(r"assertion failed: \[(`labels` must (?:be|have) .*)\]")  # Of a graph.
_NEED = "Texts need a processor: set `model.processor`, or give features."


class ReadsTexts:
    """A mixin for Keras models with a `processor`: they take texts wherever they take features.

    In `fit`, `evaluate` and `predict`, in `validation_data` and in a call, `x` may be what follows;
    in `train_on_batch`, `test_on_batch` and `predict_on_batch` it may be texts.

    * the path of a file or folder, a pandas `DataFrame` or a Hugging Face `Dataset`; or a list of
      rows with labels, dicts. See `text.examples`: `text`, `second_text`, `question`, `label` and
      `id` name the columns, if they have other names. Then there is no `y`: `fit` and `evaluate`
      read the label of each example.
    * a text; or a list, array, tensor or `Series` of texts; or a list of dicts of texts, by field.
      The processor makes one batch of them, padded to the longest.
    * a `tf.data.Dataset` of texts, or of dicts of texts by field; or of pairs of these and labels,
      or triples with weights. Its elements are batches, which are processed as they are read, or
      single texts, which are batched by `batch_size`; by default, and for `validation_data`, 32.
    * a generator, or a Keras `Sequence`, of batches of texts, alone or with labels and weights.

    Labels, also in `y`, may be words: the model's `labels`, or, if it has none, those that `fit`
    finds (whole numbers sorted by size, others as text), which become the model's. The keys of a
    `class_weight` beside texts may be such words, too.

    All else is as in Keras: labels and weights, also as lists of numbers beside a list; callbacks;
    and `tf.distribute`, where the mean of each device counts the same, even if it has fewer texts
    of an uneven last batch. Each text must become one row, so the processor must have neither
    `stride` nor `pack`; else use `processor.dataset`.
    """

    def fit(
        self,
        x=None,
        y=None,
        batch_size=None,
        *args,
        text=None,
        label=None,
        second_text=None,
        question=None,
        id=None,
        **kwargs,
    ):
        """Trains as in Keras, also on texts; examples with columns are shuffled by default.

        Args:
            text, label, second_text, question, id: str. Names of columns: see `examples.Columns`.
        Raises:
            ValueError: if there are texts and no processor, or it splits a text into several rows;
                naming the example's number, if a text is not UTF-8; naming the example and its
                label, if that is none of the labels, or if there are more or fewer labels than the
                model has; naming a weight that is negative or not finite; if there are no labels to
                compare with; or if a callback is from Keras 3.

        >>> model = etcmodel.from_pretrained("my_model")
        >>> model.compile()
        >>> history = model.fit("reviews.csv", epochs=2, verbose=0)
        >>> {name: len(values) for name, values in history.history.items()}
        {'loss': 2, 'accuracy': 2}
        """
        base.refuse_keras_3("callbacks", (args, kwargs.get("callbacks")))
        columns = examples_lib.Columns(text, second_text, question, label, id)
        with _told_in_a_line(x) as problems:
            x, y, batch_size = self._given(
                x, y, batch_size, columns, problems, kwargs, is_training=True
            )
            kwargs |= self._validation(kwargs.get("validation_data"), columns, problems)
            return super().fit(x, y, batch_size, *args, **kwargs)

    def evaluate(
        self,
        x=None,
        y=None,
        batch_size=None,
        *args,
        text=None,
        label=None,
        second_text=None,
        question=None,
        id=None,
        **kwargs,
    ):
        """Evaluates as in Keras, also on texts; see `fit` for arguments and errors.

        >>> model = etcmodel.from_pretrained("my_model")
        >>> model.compile()
        >>> model.evaluate("reviews.csv", verbose=0, return_dict=True)["accuracy"]
        1.0
        """
        base.refuse_keras_3("callbacks", (args, kwargs.get("callbacks")))
        columns = examples_lib.Columns(text, second_text, question, label, id)
        with _told_in_a_line(x) as problems:
            given = self._given(x, y, batch_size, columns, problems, kwargs)
            return super().evaluate(*given, *args, **kwargs)

    def predict(
        self,
        x,
        batch_size=None,
        *args,
        as_labels=False,
        text=None,
        second_text=None,
        question=None,
        id=None,
        **kwargs,
    ):
        """Predicts as in Keras, also on texts.

        Args:
            as_labels: bool. Whether to return names of labels in place of logits: list of str, or
                of tuples for multi-label models.
            text, second_text, question, id: as in `fit`.
        Raises:
            ValueError: see `fit`; also if names are requested and there are none; or for a shuffled
                dataset of `processor.dataset`, whose order is not that of the examples.

        >>> model = etcmodel.from_pretrained("my_model")
        >>> model.predict(["A good book.", "Bad!"], as_labels=True, verbose=0)
        ['pos', 'neg']
        """
        base.refuse_keras_3("callbacks", (args, kwargs.get("callbacks")))
        columns = examples_lib.Columns(text, second_text, question, None, id)
        if getattr(datasets.made_of(x), "is_shuffled", False):
            fail(
                "The dataset is shuffled, so that predictions would be in another order than the "
                "examples: make it with `shuffle=False`."
            )
        if as_labels and not hasattr(self, "as_labels"):
            fail(f"{type(self).__name__} tells no labels of texts: leave out `as_labels`.")
        with _told_in_a_line(x) as problems:
            features, _, batch_size = self._given(
                x, None, batch_size, columns, problems, {}, has_targets=False
            )
            found = super().predict(features, batch_size, *args, **kwargs)
        return self.as_labels(found) if as_labels else found

    def train_on_batch(self, x, y=None, sample_weight=None, class_weight=None, *args, **kwargs):
        """Trains on one batch as in Keras, also on a list of texts; see `fit` for errors."""
        others = {"sample_weight": sample_weight, "class_weight": class_weight}
        x, y = self._of_texts(x, y, others, is_training=True)
        return super().train_on_batch(x, y, *others.values(), *args, **kwargs)

    def test_on_batch(self, x, y=None, sample_weight=None, *args, **kwargs):
        """Evaluates one batch as in Keras, also a list of texts; see `fit` for errors."""
        others = {"sample_weight": sample_weight}
        x, y = self._of_texts(x, y, others)
        return super().test_on_batch(x, y, *others.values(), *args, **kwargs)

    def predict_on_batch(self, x):
        """Predicts one batch as in Keras, also of a list of texts; see `fit` for errors."""
        return super().predict_on_batch(self._of_texts(x, None, {})[0])

    def _given(
        self, x, y, batch_size, columns, problems, others, is_training=False, has_targets=True
    ):
        """Returns (features, labels, batch size), and weights in `others`, as Keras takes them."""
        if _is_rows(x, y, columns, has_targets):
            if others.get("sample_weight") is not None or y is not None:
                fail("Examples with columns have their labels: leave out `y` and `sample_weight`.")
            shuffle = is_training and others.get("shuffle", True)
            made = self._of_rows(
                x, batch_size, columns, problems, is_training, shuffle, has_targets
            )
            self._read_class_weight(others)
            return made, None, None
        if columns != examples_lib.Columns():
            named = ", ".join(f"{name}={x!r}" for name, x in vars(columns).items() if x)
            fail(f"What is given has no columns, but they are named: {named}.")
        if isinstance(x, tf.data.Dataset):
            if has_targets:
                self._check_labels(datasets.made_of(x), is_training)
            features, batch_size = _dataset(self, x, batch_size, problems)
            self._read_class_weight(others, features is not x)
            return features, y, batch_size
        if _is_batches(x):
            batches, has_texts = _batches(self, x)
            self._read_class_weight(others, has_texts)
            return batches, y, batch_size
        if isinstance(x, str) and (has_targets and y is None or _looks_like_a_path(x)):
            fail(f"There is no file or folder {x!r}. A text goes into a list: [{x!r:.40}].")
        return *self._of_texts(x, y, others, is_training), batch_size

    def _of_texts(self, x, y, others, is_training=False):
        """(features, labels) of texts, with weights in `others`; `x` and `y` if `x` has none."""
        texts = _texts(x)
        self._check_weights(others.get("sample_weight"), "sample_weight", texts is not None)
        if texts is None:
            self._read_class_weight(others, has_texts=False)
            return x, y
        if others.get("sample_weight") is not None:
            others["sample_weight"] = _array(others["sample_weight"])
        features, targets = _features(self, texts), self._targets(y, is_training)
        self._read_class_weight(others)
        return features, targets

    def _check_weights(self, weights, name, has_texts):
        """Checks weights of examples; beside features, a loss of one's own may mean any by them."""
        if has_texts or label_checks.has_default_loss(self):
            label_checks.check_weights(weights, name)

    def _read_class_weight(self, others, has_texts=True):
        """Checks a `class_weight`; beside texts, names of labels become numbers, in place."""
        given = others.get("class_weight")
        if not has_texts:
            label_checks.check_class_weight(given)
        elif given is not None:
            others["class_weight"] = label_checks.weights_of_labels(self, given)

    def _validation(self, given, columns, problems):
        """The `validation_data` as features: dict of this argument; {} if it has no texts."""
        if given is None:
            return {}
        none = examples_lib.Columns()
        if _is_rows(given, None, columns, True):
            return {"validation_data": self._given(given, None, None, columns, problems, {})[0]}
        if isinstance(given, tf.data.Dataset) or _is_batches(given):
            return {"validation_data": self._given(given, None, None, none, problems, {})[0]}
        if not (isinstance(given, (list, tuple)) and given):
            return {}
        features, y, _ = self._given(given[0], *given[1:2] or [None], None, none, problems, {})
        for weights in given[2:]:
            self._check_weights(weights, "validation_data[2]", features is not given[0])
        if features is given[0]:
            return {}
        return {"validation_data": (features, y, *map(_array, given[2:]))[: len(given)]}

    def _of_rows(self, x, batch_size, columns, problems, is_training, shuffle, has_targets):
        """A `tf.data.Dataset` of the features, and the targets, of examples with columns."""
        source, label = examples_lib.Examples(x, columns), columns.label or examples_lib.LABEL
        labels = self._labels_of(source, label, is_training) if has_targets else None
        made = datasets.make_dataset(
            _processor(self),
            source,
            batch_size or _BATCH_SIZE,
            targets=label if has_targets else None,
            labels=labels,
            shuffle=shuffle,
            seed=int(np.random.randint(1 << 31)) if shuffle else 0,  # From Keras's seed.
            read=functools.partial(_read, self),
        )
        datasets.made_of(made).problems = problems
        return made

    def _labels_of(self, source, label, is_training):
        """The `Labels` of the examples; names that `fit` finds become the model's."""
        problem = getattr(self, "problem_type", None)
        if problem is None:
            fail(
                f"{type(self).__name__} learns no labels of texts: give `processor.dataset(…, "
                "targets=…)`, whose `targets` make of a batch what it learns."
            )
        if problem == REGRESSION:
            return Labels((), problem)
        if is_training and not self.labels:
            self._find_labels(source.told(label), source.class_names(label), source.name)
        return Labels(self.labels or self.num_labels, problem)

    def _check_labels(self, made, is_training):
        """Checks that labels have the same numbers in a dataset of `processor.dataset`."""
        names = getattr(made, "labels", None)
        if names is None or getattr(self, "problem_type", None) in (None, REGRESSION):
            return
        if is_training and names and not self.labels:
            self.labels = names
        if names != self.labels and (names or _are_counted(self.labels)):
            fail(
                "The labels of the dataset are not those of the model: give `processor.dataset` "
                f"`labels=model.labels`. Received: {shown_values.shown(list(names))} and "
                f"{shown_values.shown(list(self.labels))}"
            )

    def _find_labels(self, told, known, name):
        """Names the model's labels by the words in `told`, pairs of (name in errors, value)."""
        numbers, words = Labels(self.num_labels, self.problem_type), set()
        is_numbers = not known
        for where, value in told if is_numbers else ():
            try:
                words |= set(numbers.words(value))
                is_numbers = is_numbers and numbers.has(value)
            except ValueError as error:
                fail(f"{where}: the label {error}. Received: {shown_values.shown(value)}")
        found = numbers.names if is_numbers else known or in_order(words)
        if len(found) != self.num_labels:
            fail(
                f"{name}: there are {len(found)} labels, {shown_values.listed(found)}, and the "
                f"model has {self.num_labels}: make it with `labels`, all of them in their order."
            )
        self.labels = found
        logging.info("The model's labels, in their order: %s", ", ".join(found))

    def _targets(self, y, is_training):
        """Returns `y` as Keras takes it: words become numbers."""
        values = y.numpy() if tf.is_tensor(y) and hasattr(y, "numpy") else y
        values = values.tolist() if hasattr(values, "tolist") else values
        is_list = isinstance(values, (list, tuple)) and len(values)
        if is_list:
            values = [x.tolist() if hasattr(x, "tolist") else x for x in values]
        is_words = is_list and (
            any(map(_has_words, values))
            or self._are_names(values, is_training)
            or self._are_named_flags(values)
        )
        if not is_words:
            if is_list and label_checks.are_checked(self, values):
                return np.asarray(values)
            return _array(values if hasattr(y, "iloc") else y)
        if getattr(self, "problem_type", None) is None:
            fail(f"{type(self).__name__} learns no labels of texts, but `y` has words.")
        named = [(f"`y[{number}]`", value) for number, value in enumerate(values)]
        if is_training and not self.labels and self.problem_type != REGRESSION:
            self._find_labels(named, (), "`y`")
        labels, targets = Labels(self.labels or self.num_labels, self.problem_type), []
        for where, value in named:
            try:
                targets.append(labels.target(value))
            except ValueError as error:
                fail(f"{where} {error}")
        return np.array(targets)

    def _are_names(self, values, is_training):
        """Whether whole numbers are names of labels, not their places among the model's."""
        if getattr(self, "problem_type", None) != SINGLE_LABEL or not all(map(_is_whole, values)):
            return False
        if self.labels:
            return _are_counted(self.labels)
        found = {int(x) for x in values}
        if not is_training or len(found) != self.num_labels or found <= {*range(len(found))}:
            return False
        if _NO_LABEL in found:
            fail(
                f"`y` has {_NO_LABEL}, which may be a label of its own or none: make the model "
                "with `labels`, or leave out the examples without a label."
            )
        return min(found) >= 0

    def _are_named_flags(self, values):
        """Whether there are truth values, and the model's labels say which ones they are."""
        if getattr(self, "problem_type", None) != SINGLE_LABEL:
            return False
        is_named = bool({"true", "false"} & {*self.labels}) or _are_counted(self.labels)
        return is_named and any(isinstance(x, bool) for x in values)

    def train_step(self, data):
        """Same as in Keras; without labels, that is told in a line."""
        self._check_labelled(data)
        return super().train_step(data)

    def test_step(self, data):
        """Same as in Keras, which without labels reports a loss and metrics of 0."""
        self._check_labelled(data)
        return super().test_step(data)

    def _check_labelled(self, data):  # Within graphs this is done once.
        _, labels, weights = tf_keras.utils.unpack_x_y_sample_weight(data)
        if self.loss and labels is None:
            fail("There are no labels to compare with: give `y`, or data with labels.")
        label_checks.check_names(self, labels, "Labels")
        if isinstance(weights, (dict, list, tuple)):
            label_checks.check_names(self, weights, "Weights")


def _is_whole(value):
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    return is_number and float(value).is_integer()


def _are_counted(names):
    """Whether label names are numbers other than their indices, such as stars from 1 to 5."""
    return any(map(is_whole, names)) and names != Labels(len(names)).names


def _looks_like_a_path(text):
    """Whether a str that is not an existing path was probably meant to be one."""
    is_one_word = not re.search(r"\s", text)
    return "\n" not in text and (
        (is_one_word and os.sep in text and "://" not in text)
        or bool(re.search(r"\.(csv|tsv|jsonl?|parquet)(\.\w+)?$", text))
    )


def _is_rows(x, y, columns, has_targets):
    """Whether these are examples with columns, including their labels."""
    if examples_lib.is_table(x):
        return True
    is_list = isinstance(x, (list, tuple)) and len(x) and all(isinstance(one, dict) for one in x)
    if not is_list or y is not None:
        return False
    return has_targets or columns != examples_lib.Columns()


def _has_words(value):
    return isinstance(value, str) or (
        isinstance(value, (list, tuple)) and any(map(_has_words, value))
    )


def _is_batches(x):
    return isinstance(x, (tf_keras.utils.Sequence, types.GeneratorType))


def _batches(model, given):
    """(A generator or `Sequence` with texts turned into features, whether there are texts)."""
    if isinstance(given, tf_keras.utils.Sequence):
        has_texts = _texts(_parts(given[0] if len(given) else None)[0]) is not None
        return (_Sequence(model, given) if has_texts else given), has_texts
    first = next(given, None)
    if first is None:
        fail("The generator yields nothing.")
    rest = itertools.chain([first], given)
    if _texts(_parts(first)[0]) is None:
        return (x for x in rest), False
    return (_of_element(model, x) for x in rest), True


class _Sequence(tf_keras.utils.Sequence):
    """The batches of another `Sequence`, with texts turned into features."""

    def __init__(self, model, given):
        self._model, self._given = model, given

    def __len__(self):
        return len(self._given)

    def __getitem__(self, index):
        return _of_element(self._model, self._given[index])

    def on_epoch_end(self):
        self._given.on_epoch_end()


def _parts(element):
    return element if isinstance(element, tuple) and len(element) in (2, 3) else (element,)


def _of_element(model, element):
    texts, *others = _parts(element)
    texts = _texts(texts)
    if texts is None:
        fail("Some batches are of texts and others are not.")
    features = _features(model, texts)
    if not others:
        return (features,)
    for weights in others[1:]:
        label_checks.check_weights(weights, "the weights of a batch")
    return (features, model._targets(others[0], False), *map(_array, others[1:]))


@contextlib.contextmanager
def _told_in_a_line(x):
    """Yields a list for problems in `tf.data`, whose own errors have many lines."""
    made = datasets.made_of(x)
    problems = [] if made is None else made.problems
    problems.clear()
    try:
        yield problems
    except tf.errors.OpError as error:
        told = problems or [x.replace("] [", " ") for x in _WRONG_LABELS.findall(error.message)]
        if not told:
            raise
        raise one_line(told[0]) from None


def _texts(x):
    """The given texts, or dicts of them by field: list; None if there are none."""
    if isinstance(x, str):
        return [x]
    if _is_of_pandas(x):
        x = x.tolist()
    if isinstance(x, np.ndarray) and x.dtype == object and x.ndim == 1 and not _is_of_texts(x):
        x = x.tolist()
    if isinstance(x, (list, tuple)):
        if not x:
            fail("There are no examples: the list is empty.")
        is_row = [isinstance(one, dict) for one in x]
        has_rows = any(is_row) if isinstance(x, list) else all(is_row)
        if not has_rows and not any(map(_holds_text, x)) and not all(map(_is_missing, x)):
            return None
        for number, one in enumerate(x):
            if not isinstance(one, (str, dict)):
                fail(
                    f"The example {number}, counted from 0, must be a text, or a dict of texts by "
                    f"field. Received: {shown_values.shown(one)}"
                )
        return list(x)
    if not _is_of_texts(x):
        return None
    if not hasattr(x, "numpy") and tf.is_tensor(x):
        fail("Texts cannot be read within a graph: export the model for that (docs/serving.md).")
    values = np.asarray(x)
    if values.ndim != 1:
        fail(f"Texts must have shape [batch]. Received shape: {list(values.shape)}")
    return _decoded(values.tolist())


def _is_of_pandas(x):
    """Whether this is a `Series`, an `Index`, a `Categorical` or another array of pandas."""
    if isinstance(x, np.ndarray) or tf.is_tensor(x) or hasattr(x, "columns"):
        return False
    return all(hasattr(x, name) for name in ("tolist", "dtype", "take"))


def _is_missing(value):
    """Whether this is what a table has in place of a text that is not there: None or NaN."""
    return value is None or (isinstance(value, float) and value != value)


def _holds_text(value):
    is_list = isinstance(value, (list, tuple))
    return any(map(_holds_text, value)) if is_list else isinstance(value, (str, bytes))


def _is_of_texts(x):
    """Whether these are an array or a tensor of texts."""
    if isinstance(x, np.ndarray):
        is_objects = x.dtype == object and all(isinstance(one, (str, bytes)) for one in x.flat)
        return x.dtype.kind in "US" or is_objects
    return tf.is_tensor(x) and x.dtype == tf.string


def _decoded(texts, start=0, name="text"):
    """Texts, or their bytes, as a list of str; errors count them from `start`."""
    return [
        fields.decoded(x, f"`{name}` of example {number}, counted from 0")
        for number, x in enumerate(texts, start)
    ]


def _array(values):
    """Numbers in a list as an array, since Keras takes such a list only beside another list."""
    is_list = isinstance(values, (list, tuple)) and len(values)
    is_numbers = is_list and all(isinstance(one, numbers.Number) for one in values)
    return np.asarray(values) if is_numbers else values


def _features(model, examples):
    """The features of examples, one row each: dict of arrays."""
    read = [x for _, x in examples_lib.Examples(examples).read()]
    return _read(model, _processor(model)(read))


def _read(model, batch):
    """The features of a processor's batch that the model takes."""
    if "token_ids" in batch and model.token_feature != "token_ids":
        features = processed_batches.text_arguments(dict(batch), model.encoder.config)
        return {name: np.asarray(array) for name, array in features.items()}
    return dict(batch)


@without_autograph
def without_texts(model, x):
    """Turns all texts, or all examples with columns, into one batch of features."""
    texts = x if examples_lib.is_table(x) else _texts(x)
    return x if texts is None else _features(model, texts)


def _processor(model):
    """The model's processor, which must make one row per text."""
    processor = model.processor
    if processor is None:
        fail(_NEED)
    if not callable(processor):
        fail(
            f"`model.processor` must make batches of texts, as an `EtcProcessor` does. Received: "
            f"{shown_values.shown(processor)}"
        )
    check_one_row(processor, "`processor.dataset`")
    check_vocabulary(model, processor)
    return processor


def check_vocabulary(model, processor):
    """Raises ValueError if a processor has more tokens than a model, which has a config.

    Args:
        model: model or layer with a `config`, or with an `encoder` that has one.
        processor: any object; one without a `vocab_size` passes.
    """
    size = getattr(getattr(model, "encoder", model).config, "vocab_size", None)
    num_tokens = getattr(processor, "vocab_size", 0)
    if size is not None and num_tokens > size:
        fail(
            f"The processor's vocabulary has {num_tokens} tokens, more than the model's "
            f"`vocab_size`, {size}. Did you mean to call `model.resize_token_embeddings()`?"
        )


def check_one_row(processor, instead):
    """Raises ValueError if a processor may make more or fewer rows than there are texts.

    Args:
        processor: `EtcProcessor`, or another object that makes batches of texts.
        instead: str. What to use in place of texts, for the error.
    """
    config = getattr(processor, "config", None)
    for name in ("stride", "pack"):
        if (value := getattr(config, name, None)) not in (None, False):
            fail(
                f"Each text must be one row, but the processor has `{name}`, {value}: give "
                f"{instead}, or a processor without it."
            )


def _dataset(model, dataset, batch_size, problems):
    """Turns a dataset with texts into one with features; returns others unchanged.

    Problems with texts while it is read are also added to the list `problems`.
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
    for labels in parts[1:2]:
        label_checks.check_shape(model, labels, rank=max(ranks))
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

    numbered = _numbered_labels(model, spec)

    def process(start, element):
        texts, *others = element if isinstance(spec, tuple) else (element,)
        if numbered is not None:
            others = (numbered(others[0]), *others[1:])
        if len(others) > 1:
            check = functools.partial(_checked_weights, start=start, problems=problems)
            others = (others[0], tf.nest.map_structure(check, others[1]))
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


def _checked_weights(weights, start, problems):
    """The weights of a batch in a graph, which fails at a wrong one; errors count from `start`."""
    if weights is None:
        return None

    def checked(start, values):
        try:
            label_checks.check_weights(values, "sample_weight", start)
        except ValueError as error:
            problems.append(str(error))
            raise
        return values

    found = tf.numpy_function(checked, [start, weights], weights.dtype)
    found.set_shape(weights.shape)
    return found


def _numbered_labels(model, spec):
    """A function that maps a batch's labels to numbers; None if they are numbers already."""
    labels = spec[1] if isinstance(spec, tuple) and len(spec) > 1 else None
    kind = getattr(labels, "dtype", None)
    is_word = kind == tf.string
    names = getattr(model, "labels", ())
    if kind is None or not (is_word or (kind.is_integer and _are_counted(names))):
        return None
    if getattr(model, "problem_type", None) != SINGLE_LABEL or not names:
        fail("Labels of a `tf.data.Dataset` are words: make the model with `labels`, all of them.")
    rules = Labels(names)

    def number(values):
        read = (
            x.decode("utf-8", "replace") if isinstance(x, bytes) else x for x in values.tolist()
        )
        return np.array([rules.target(x) for x in read], np.int32)

    def numbered(values):
        found = tf.numpy_function(number, [values], tf.int32)
        found.set_shape(values.shape)
        return found

    return numbered


def _of_batch(model, texts, start=0):
    """The features of a batch of texts, or of a dict of such by field; errors start at `start`."""
    if not isinstance(texts, dict):
        return _features(model, _decoded(np.asarray(texts).tolist(), start))
    columns = {
        name: _decoded(np.asarray(values).tolist(), start, name) for name, values in texts.items()
    }
    rows = zip(*columns.values(), strict=True)
    return _features(model, [dict(zip(columns, row, strict=True)) for row in rows])
