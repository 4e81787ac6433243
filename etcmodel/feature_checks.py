"""Checks the values of features in one pass: in input pipelines and in exports."""

import collections
import dataclasses

import numpy as np
import tensorflow as tf

from etcmodel.autograph import without_autograph

_INT32 = np.iinfo(np.int32)


@dataclasses.dataclass(frozen=True)
class Range:
    """The range of values that a feature may have.

    Attributes:
        lowest: int, or float for floats. An int is also for whole numbers that are stored as
            floats: others, such as 2.5, are outside.
        bound: int, all values are below it; or the name of a feature, for the length of that
            feature; or None: any int32 from `lowest` on.
        meaning: str. The meaning of the values, for error messages.

    >>> from etcmodel.feature_checks import Range
    >>> Range(0, 128, "the ids of the vocabulary")
    Range(lowest=0, bound=128, meaning='the ids of the vocabulary')
    """

    lowest: int
    bound: int | str | None
    meaning: str = ""

    @property
    def is_whole(self):
        """Whether only whole numbers are within the range."""
        return isinstance(self.lowest, int)


FLAG = Range(0, 2)
_ANY_INT32 = Range(int(_INT32.min), None, "a 32-bit integer")
_FINITE = Range(-3.4e38, 3.4e38, "a finite number")


@dataclasses.dataclass(frozen=True)
class FeatureChecks:
    """The ranges of a set of features.

    Attributes:
        ranges: dict of feature name to `Range`. Other features of int64 must fit into int32, other
            floats must be finite.
        int64_features: names of features that may have any value.
    """

    ranges: dict
    int64_features: tuple = ()

    def problem(self, name, values, lengths):
        """Describes what is wrong with values that are not in tensors yet; '' for nothing.

        Args:
            name: str. The feature.
            values: list of int or float.
            lengths: dict of feature name to length.
        """
        values = np.asarray(values)
        value_range = self._range(name, values.dtype)
        if value_range is None or not values.size:
            return ""
        highest = _highest(value_range, lengths)
        is_right = (values >= value_range.lowest) & (values <= highest)
        is_float = values.dtype.kind == "f"
        if value_range.is_whole and is_float:
            with np.errstate(invalid="ignore"):
                is_right &= values == np.floor(values)
        wrong = values[~is_right]
        parts = _parts(name, wrong[0], value_range, highest, is_float) if wrong.size else ()
        return "".join(parts)

    @without_autograph
    def checked(self, features, lengths, axes):
        """Returns the features after a check of their values.

        Args:
            features: dict of name to tensor.
            lengths: dict of feature name to its length: int, or an int tensor that broadcasts to
                the first axes of the features.
            axes: dict of feature name to a key; features with the same key and dtype have the same
                shape and are checked together. Lengths that are tensors need a key for each
                feature.
        Returns:
            dict of tensors. Computing them raises `tf.errors.InvalidArgumentError`, naming feature,
            value and range, if a value is outside.
        """
        groups = collections.defaultdict(list)
        for name, value in features.items():
            if self._range(name, value.dtype.as_numpy_dtype) is not None:
                groups[axes[name], value.dtype].append(name)
        checks = [self._check(names, features, lengths) for names in groups.values()]
        with tf.control_dependencies(checks):
            return {name: tf.identity(value) for name, value in features.items()}

    def _range(self, name, dtype):
        """The `Range` of a feature; None if it may have any value."""
        if name in self.ranges:
            return self.ranges[name]
        if np.issubdtype(dtype, np.floating):
            return _FINITE
        is_int64 = np.dtype(dtype) == np.int64 and name not in self.int64_features
        return _ANY_INT32 if is_int64 else None

    def _check(self, names, features, lengths):
        """bool []: true. Computing it raises an error if a value is outside its range."""
        values = tf.stack([features[name] for name in names])  # [names, ...]
        column = [len(names)] + [1] * (len(values.shape) - 1)
        ranges = [self._range(name, values.dtype.as_numpy_dtype) for name in names]
        lowest = tf.constant([r.lowest for r in ranges], values.dtype, column)
        highest = tf.stack([tf.cast(_highest(r, lengths), values.dtype) for r in ranges])
        # Lengths may have only the first axes.
        for _ in range(len(values.shape) - len(highest.shape)):
            highest = highest[..., tf.newaxis]
        is_whole = tf.constant([r.is_whole for r in ranges], shape=column)

        def are_right():
            are = (values >= lowest) & (values <= highest)
            if not values.dtype.is_floating:
                return are
            return are & (~is_whole | tf.equal(values, tf.floor(values)))

        is_right = tf.reduce_all(are_right())

        def fail():
            place = tf.where(~are_right())[0]  # Of the first one.
            value, top = (
                tf.as_string(tf.gather_nd(x, place), shortest=x.dtype.is_floating)
                for x in (values, tf.broadcast_to(highest, tf.shape(values)))
            )
            is_float = values.dtype.is_floating
            texts = (_parts(n, "", r, "", is_float) for n, r in zip(names, ranges, strict=True))
            parts = zip(*texts, strict=True)
            start, _, middle, _, end = (tf.gather(list(part), place[0]) for part in parts)
            message = tf.strings.join([start, value, middle, top, end])
            with tf.control_dependencies([tf.debugging.Assert(False, [message])]):
                return tf.constant(False)

        return tf.cond(is_right, lambda: tf.constant(True), fail)


def _highest(value_range, lengths):
    if value_range.bound is None:
        return int(_INT32.max)
    if isinstance(value_range.bound, str):
        return lengths[value_range.bound] - 1
    return value_range.bound - 1


def _parts(name, value, value_range, highest, is_float):
    """The parts of an error message, all str."""
    numbers = "whole numbers from " if is_float and value_range.is_whole else ""
    yield f"`{name}` has the value "
    yield f"{value}"
    yield f"; allowed are {numbers}{value_range.lowest} to "
    yield f"{highest}"
    yield f" ({value_range.meaning})." if value_range.meaning else "."


def check_lengths(lengths, axes):
    """Checks that examples have all features, and that features of one axis have equal lengths.

    Args:
        lengths: dict of feature name to int tensor [batch].
        axes: dict of feature name to the name of its axis.
    Returns:
        list of operations, which otherwise raise `tf.errors.InvalidArgumentError`, naming a feature
        and the lengths.
    """
    checks = []
    first_of_axis = {}
    batch_name, batch = next(iter(lengths.items()))
    for name, length in lengths.items():
        size, batch_size = tf.size(length), tf.size(batch)
        same_batch = tf.debugging.Assert(
            tf.equal(size, batch_size),
            [f"`{name}` has", size, f"examples, `{batch_name}` has", batch_size],
        )
        with tf.control_dependencies([same_batch]):
            there = tf.debugging.Assert(
                tf.reduce_all(length > 0),
                [f"`{name}` is missing, or empty, in an example; the lengths are", length],
                summarize=16,
            )
            first = first_of_axis.setdefault(axes[name], name)
            same_length = tf.debugging.Assert(
                tf.reduce_all(tf.equal(length, lengths[first])),
                [f"`{name}` and `{first}` must have one length; they have", length, lengths[first]],
                summarize=16,
            )
        checks += [there, same_length]
    return checks


def check_outputs(outputs):
    """Checks that no output of a model is NaN, of which decoding would still make an answer.

    Args:
        outputs: dict of name to NumPy array; others are ignored.
    Raises:
        ValueError: naming the output.

    >>> from etcmodel import feature_checks
    >>> feature_checks.check_outputs({"logits": np.array([0.5, np.nan])})
    Traceback (most recent call last):
        ...
    ValueError: The model's output `logits` is not a number (NaN): its weights are not finite, or
    what it computes is too large for float16. Give --mixed_precision=mixed_bfloat16 or float32.
    """
    for name, values in outputs.items():
        if not isinstance(values, np.ndarray | np.generic) or values.dtype.kind in "biuSUO":
            continue
        if np.isnan(values).any():
            raise ValueError(
                f"The model's output `{name}` is not a number (NaN): its weights are not finite, "
                "or what it computes is too large for float16. Give "
                "--mixed_precision=mixed_bfloat16 or float32."
            )
