"""What a converter returns, and how it becomes a record."""

import dataclasses
import functools

import tensorflow as tf

from etcmodel.preprocessing import raw_files
from etcmodel.preprocessing.padding import Joined, Repeated

__all__ = ["BadExampleError", "Converted", "convert_example", "to_tf_example"]

_BLOCK = 256  # Numbers that are serialized once, for all records.


class BadExampleError(ValueError):
    """An input that cannot be converted; its message is all a user needs."""


@dataclasses.dataclass(frozen=True)
class Converted:
    """What a converter makes of one raw example.

    Attributes:
        features: list of dict, one a TF example, of feature name to list of int, float or str (a
            `preprocessing.padded` one is written fastest).
        counts: dict of str to int. Added up over all examples in the statistics.
        lengths: dict of str to int. Averaged over all examples in the statistics.
        lines: dict of a name of `Job.line_files` to a line (str) for that file.
        problem: str. What is wrong with a malformed example; '' for nothing.
    """

    features: list
    counts: dict = dataclasses.field(default_factory=dict)
    lengths: dict = dataclasses.field(default_factory=dict)
    lines: dict = dataclasses.field(default_factory=dict)
    problem: str = ""

    @classmethod
    def of_one(cls, converted, *, drop_reasons, counts, lines=None):
        """Of a raw example that becomes one TF example, or is dropped.

        Args:
            converted: what a task's `make_features` returns, with `features` (None if dropped),
                `drop_reason` (str or None), `num_long_tokens` and `num_global_tokens`.
            drop_reasons: iterable of str. All that there are: each is counted.
            counts: dict of str to int. Further counts.
            lines: see the attribute.
        """
        dropped = {
            f"dropped_{reason}": int(reason == converted.drop_reason) for reason in drop_reasons
        }
        return cls(
            features=[] if converted.features is None else [converted.features],
            counts={**dropped, **counts},
            lengths={
                "long_tokens": converted.num_long_tokens,
                "global_tokens": converted.num_global_tokens,
            },
            lines=lines or {},
        )


def convert_example(convert, raw):
    """Converts a raw example.

    Args:
        convert: function of a raw example to a `Converted`; may raise a ValueError.
        raw: the example, or what `raw_files.unreadable` made in its place.
    Returns:
        (`Converted`, list of bytes: its serialized TF examples). What is wrong with a malformed
        example is in its `problem`.
    """
    try:
        raw_files.check_readable(raw)
        converted = convert(raw)
        # Text may have halves of characters, which JSON can write and UTF-8 cannot.
        return converted, [
            to_tf_example(features).SerializeToString(deterministic=True)
            for features in converted.features
        ]
    except ValueError as error:
        return Converted(features=[], problem=str(error)), []


def to_tf_example(features):
    """A `tf.train.Example` of a dict of feature name to list of int, float, str or bytes."""
    example = tf.train.Example()
    example.features.SetInParent()  # Without any feature, too.
    made = example.features.feature
    for name, values in features.items():
        _fill(made[name], values)  # In place: messages that are put into others are copied.
    return example


def _fill(feature, values):
    """Sets the values of an empty `tf.train.Feature`."""
    if values and isinstance(values[0], str | bytes):
        encoded = [v.encode("utf-8") if isinstance(v, str) else v for v in values]
        feature.bytes_list.value.extend(encoded)
    elif values:
        is_float = isinstance(values[0], float)
        _add_numbers(feature.float_list if is_float else feature.int64_list, values)
    else:
        feature.int64_list.SetInParent()  # No values are a list, too.


def _add_numbers(message, values):
    """Adds numbers to a `tf.train.Int64List` or `FloatList`."""
    for part in values.parts if isinstance(values, Joined) else (values,):
        if isinstance(part, Repeated):
            num_blocks, rest = divmod(part.count, _BLOCK)
            # A message's bytes again and again are those of one message with all of the values.
            message.MergeFromString(
                num_blocks * _repeated(type(message), part.number, str(part.number))
            )
            message.value.extend([part.number] * rest)
        elif isinstance(part, range) and part.step == 1:
            begin = min(-(-part.start // _BLOCK) * _BLOCK, part.stop)
            end = max(part.stop // _BLOCK * _BLOCK, begin)
            message.value.extend(range(part.start, begin))
            for first in range(begin, end, _BLOCK):
                message.MergeFromString(_counting(type(message), first))
            message.value.extend(range(end, part.stop))
        else:
            message.value.extend(part)


@functools.lru_cache(maxsize=16)
def _repeated(kind, number, unused_text):
    """Bytes of a message with a number again and again; its text tells 0.0 from -0.0."""
    return kind(value=[number] * _BLOCK).SerializeToString()


@functools.lru_cache(maxsize=256)
def _counting(kind, first):
    """Bytes of a message with the numbers from one on."""
    return kind(value=range(first, first + _BLOCK)).SerializeToString()
