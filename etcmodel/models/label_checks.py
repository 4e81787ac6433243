"""Checks of what stands beside texts, labels and weights, before Keras makes graphs with them."""

import inspect
import numbers

import numpy as np
import tensorflow as tf
import tf_keras
from absl import logging

from etcmodel import shown_values
from etcmodel.ops.errors import fail
from etcmodel.text.labels import MULTI_LABEL, REGRESSION, SINGLE_LABEL, Labels

_KERAS_LOSSES = tf_keras.losses.kl_divergence.__module__
_NOT_ONE_HOT = "give class numbers or names, not a row for each text: `argmax(axis=-1)`"


def are_checked(model, values):
    """Checks labels that are numbers, if the model has the loss of its head.

    Args:
        model: model with a head.
        values: list with a label for each example, as from NumPy's `tolist`.
    Returns:
        Whether they were checked: bool.
    Raises:
        ValueError: naming the first label that is not one of the head's, such as a number beyond
            its labels, or one that is missing or not finite.
    """
    problem = getattr(model, "problem_type", None)
    if problem not in _CHECKS or not has_default_loss(model):
        return False
    is_right, wish = _CHECKS[problem]
    number = model.num_labels
    for place, value in enumerate(values):
        if not is_right(value, number):
            is_row = problem == SINGLE_LABEL and _is_row(value, number)
            advice = f"; {_NOT_ONE_HOT}" if is_row else ""
            received = shown_values.shown(value)
            fail(f"`y[{place}]` must be {wish(number)}{advice}. Received: {received}")
    return True


def check_shape(model, labels, rank):
    """Checks that labels of a dataset are one for each text, if the head's loss takes such.

    Args:
        model: model with a head.
        labels: `tf.TensorSpec`, or anything else, which passes.
        rank: int. The rank of its texts.
    Raises:
        ValueError: if there is a row of numbers for each text.
    """
    shape = getattr(labels, "shape", None)
    if getattr(model, "problem_type", None) != SINGLE_LABEL or not has_default_loss(model):
        return
    if shape is not None and shape.rank == rank + 1 and shape[-1] not in (None, 1):
        fail(f"Labels of a `tf.data.Dataset`: {_NOT_ONE_HOT}. Received shape: {list(shape)}")


def warn_of_loss(model, loss):
    """Warns of a loss that takes probabilities, where the package's heads return logits.

    Args:
        model: model with a head; those that compute their outputs elsewhere are not warned of.
        loss: a Keras loss, its name, or any structure of these; or None.
    """
    for name in ("head", "make_head", "call"):
        definer = next((x for x in type(model).__mro__ if name in vars(x)), None)
        if definer is None or not definer.__module__.startswith("etcmodel."):
            return
    for one in tf.nest.flatten(loss):
        one = tf_keras.losses.get(one) if isinstance(one, str) else one
        function, options = getattr(one, "fn", one), getattr(one, "_fn_kwargs", {})
        if getattr(function, "__module__", None) != _KERAS_LOSSES:
            continue
        parameter = inspect.signature(function).parameters.get("from_logits")
        is_of_logits = options.get("from_logits", parameter is None or parameter.default)
        if not is_of_logits or function.__name__ == "kl_divergence":
            logging.warning(
                "`loss` %s takes probabilities, and %s returns logits: leave it out for the head's "
                "own, or give one with `from_logits=True`.",
                function.__name__,
                type(model).__name__,
            )


def check_names(model, labels, name):
    """Checks that what is given for each output of a head with several has their names.

    Keras pairs the outputs with what is there in the order of the names, whatever these are.

    Args:
        model: model with a head.
        labels: dict of tensors by output; or anything else, or None.
        name: str. What it is, for errors.
    Raises:
        ValueError: naming the outputs.
    """
    own = model.default_loss()
    if labels is None or not isinstance(own, dict):
        return
    outputs = {**own, **(model.loss if isinstance(model.loss, dict) else {})}
    wish = f"{name} of {type(model).__name__} must be a dict by output, {', '.join(outputs)}"
    if not isinstance(labels, dict):
        fail(f"{wish}. Received: {type(labels).__name__}")
    if unknown := [x for x in labels if x not in outputs]:
        fail(f"{wish}. Received: {', '.join(map(str, unknown))}")


def has_default_loss(model):
    """Whether a model was compiled with the loss of its head, or one of the same kind: bool."""
    loss = getattr(model, "loss", None)  # Keras itself tells that a model was not compiled.
    return type(loss) is type(model.default_loss())


def _is_number(value):
    return isinstance(value, numbers.Real)


def _is_label(value, number):
    value = value[0] if _is_row(value, 1) else value
    return _is_number(value) and -1 <= value < number and value == int(value)


def _is_row_of_flags(value, number):
    if number == 1 and _is_number(value):
        value = [value]
    return _is_row(value, number) and all(_is_number(x) and x in (-1, 0, 1) for x in value)


def _are_finite(value, number):
    values = value if _is_row(value, number) else [value] * (number == 1)
    return bool(values) and all(_is_number(x) and np.isfinite(x) for x in values)


def _is_row(value, length):
    return isinstance(value, (list, tuple)) and len(value) == length


# By problem type: whether a value may be a label, and what it must be.
_CHECKS = {
    SINGLE_LABEL: (
        _is_label,
        lambda number: f"a whole number from 0 to {number - 1}, or -1 for no label",
    ),
    MULTI_LABEL: (
        _is_row_of_flags,
        lambda number: f"a list of {number} numbers, 0 or 1, or -1 for what is not known",
    ),
    REGRESSION: (
        _are_finite,
        lambda number: "a finite number" if number == 1 else f"a list of {number} finite numbers",
    ),
}


def check_weights(weights, name, start=0):
    """Checks weights of examples; those that are no numbers are left to Keras.

    Args:
        weights: array, list or `Series`, or a dict of them by output; or None.
        name: str. The argument, for errors.
        start: int. The number of the first one, for errors.
    Raises:
        ValueError: naming the first one that is negative, infinite or NaN.
    """
    if isinstance(weights, dict):
        for output, values in weights.items():
            check_weights(values, f"{name}[{output!r}]", start)
        return
    try:
        values = np.asarray(weights, np.float64)
    except (TypeError, ValueError):
        return
    if weights is None or not values.size:
        return
    wrong = ~(np.isfinite(values) & (values >= 0))
    if wrong.any():
        place = tuple(np.argwhere(wrong)[0])
        counted = (place[0] + start, *place[1:]) if place else ()
        where = "".join(f"[{number}]" for number in counted)
        fail(f"`{name}{where}` must be a finite number, at least 0. Received: {values[place]:g}")


def check_class_weight(given):
    """Raises ValueError, naming the label, if a weight in a `class_weight` is below 0 or no number.

    Args:
        given: dict of label to weight; anything else passes.
    """
    for label, weight in given.items() if isinstance(given, dict) else ():
        _check_class_weight(label, weight)


def _check_class_weight(label, weight):
    try:
        number = float(weight)
    except (TypeError, ValueError):
        number = -1.0
    if not 0 <= number < float("inf"):
        fail(
            f"`class_weight` of {shown_values.shown(label)} must be a finite number, at least 0. "
            f"Received: {shown_values.shown(weight)}"
        )


def weights_of_labels(model, given):
    """Converts a `class_weight` to the form that Keras takes: dict of label's number to float.

    Args:
        model: model with labels of texts.
        given: dict of a label, as it may be in `y`, to its weight.
    Raises:
        ValueError: naming the label, if there is none such, it has two weights or none, or its
            weight is not a finite number of at least 0.
    """
    if getattr(model, "problem_type", None) != SINGLE_LABEL or not isinstance(given, dict):
        return given
    labels, found = Labels(model.labels or model.num_labels), {}
    for label, weight in given.items():
        try:
            number = labels.target(label)
        except ValueError as error:
            fail(f"`class_weight` of {shown_values.shown(label)}: the label {error}")
        if number in found:
            fail(f"`class_weight` has two weights of the label {labels.names[number]!r}.")
        _check_class_weight(labels.names[number], weight)
        found[number] = float(weight)
    if missing := [x for number, x in enumerate(labels.names) if number not in found]:
        fail(
            "`class_weight` must have a weight of each label; it lacks "
            f"{shown_values.listed([repr(x) for x in missing])}."
        )
    return found
