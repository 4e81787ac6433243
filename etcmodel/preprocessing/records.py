"""The result of a converter, and its conversion to records."""

import collections
import dataclasses
import functools
import os

import tensorflow as tf

from etcmodel import shown_values
from etcmodel.preprocessing import json_fields, raw_files
from etcmodel.preprocessing.padding import Joined, Repeated

_BLOCK = 256  # Numbers of a range that are encoded once, for all records.
_BYTES, _FLOATS, _INTEGERS = 1, 2, 3  # The fields of a `tf.train.Feature`.


def serialize(features):
    """A serialized `tf.train.Example`, byte by byte as its `SerializeToString(deterministic=True)`.

    Args:
        features: dict of feature name to list of int, float, str or bytes.
    Raises:
        ValueError: naming the feature, if a str has half of a surrogate pair.
    """
    fields = {}
    for name, values in features.items():
        try:
            fields[name.encode("utf-8")] = _feature(values)
        except UnicodeEncodeError as error:  # JSON can write what UTF-8 has no bytes for.
            problem = f"{json_fields.HALF_A_PAIR}. Received: {shown_values.shown(error.object)}"
            raise ValueError(f"feature {name!r} {problem}") from None
    # In the order of upb, Python's protocol buffers: names come after longer ones that they begin.
    names = sorted(fields, key=lambda name: name + b"\xff")
    entries = (_field(1, _field(1, name) + _field(2, fields[name])) for name in names)
    return _field(1, b"".join(entries))


def _feature(values):
    """The bytes of a `tf.train.Feature`."""
    if not values:
        return _field(_INTEGERS, b"")  # No values are a list, too.
    first = values[0]
    if isinstance(first, str | bytes):
        encoded = [value.encode("utf-8") if isinstance(value, str) else value for value in values]
        return _field(_BYTES, tf.train.BytesList(value=encoded).SerializeToString())
    if isinstance(first, float):
        return _field(_FLOATS, _numbers(tf.train.FloatList, values))
    return _field(_INTEGERS, _numbers(tf.train.Int64List, values))


def _numbers(kind, values):
    """The bytes of a list of numbers, a message of some kind."""
    parts = values.parts if isinstance(values, Joined) else (values,)
    return _field(1, b"".join(_packed(kind, part) for part in parts))


def _packed(kind, part):
    """The bytes of the numbers of a part alone."""
    if isinstance(part, Repeated):
        return part.count * _single(kind, part.number, str(part.number))
    if isinstance(part, range) and part.step == 1:
        return _counted(kind, part)
    return _encoded(kind, part)


@functools.lru_cache(maxsize=4)  # One record's features have the same ranges.
def _counted(kind, part):
    """The bytes of all numbers of a range."""
    begin = min(-(-part.start // _BLOCK) * _BLOCK, part.stop)
    end = max(part.stop // _BLOCK * _BLOCK, begin)
    blocks = (_counting(kind, first) for first in range(begin, end, _BLOCK))
    before, after = range(part.start, begin), range(end, part.stop)
    return b"".join([_encoded(kind, before), *blocks, _encoded(kind, after)])


def _encoded(kind, values):
    """The bytes of numbers, out of a message that begins with a tag and their length."""
    message = kind(value=values).SerializeToString()
    begin = 1
    while begin < len(message) and message[begin] & 0x80:
        begin += 1
    return message[begin + 1 :]


@functools.lru_cache(maxsize=16)
def _single(kind, number, unused_text):
    """The bytes of a number; cached by its text, which distinguishes 0.0 from -0.0."""
    return _encoded(kind, [number])


@functools.lru_cache(maxsize=256)
def _counting(kind, first):
    """The bytes of the numbers from one on."""
    return _encoded(kind, range(first, first + _BLOCK))


def _field(number, content):
    """A field of bytes or of a message: its tag, its length and its content."""
    size, length = len(content), bytearray((number << 3 | 2,))
    while size > 0x7F:
        length.append(size & 0x7F | 0x80)
        size >>= 7
    length.append(size)
    return bytes(length) + content


class BadExampleError(ValueError):
    """Raised for an input that cannot be converted; the message is written for the user.

    >>> from etcmodel import preprocessing
    >>> issubclass(preprocessing.BadExampleError, ValueError)
    True
    """


@dataclasses.dataclass(frozen=True)
class Converted:
    """The result of converting one raw example.

    Attributes:
        features: list of dict, one per TF example, from feature name to list of int, float or str
            (lists from `preprocessing.padded` are written fastest).
        counts: dict of str to int. Summed over all examples in the statistics.
        lengths: dict of str to int. Averaged over all examples in the statistics.
        lines: dict from a name in `Job.line_files` to a line (str) for that file.
        problem: str. What is wrong with a malformed example; '' for nothing.

    >>> from etcmodel import preprocessing
    >>> converted = preprocessing.Converted([{"token_ids": [2, 7, 3]}], counts={"examples": 1})
    >>> len(converted.features), converted.problem
    (1, '')
    """

    features: list
    counts: dict = dataclasses.field(default_factory=dict)
    lengths: dict = dataclasses.field(default_factory=dict)
    lines: dict = dataclasses.field(default_factory=dict)
    problem: str = ""

    @classmethod
    def of_one(cls, converted, *, drop_reasons, counts, lines=None):
        """Makes the result for a raw example that yields one TF example, or is dropped.

        Args:
            converted: the result of a task's `make_features`, with `features` (None if dropped),
                `drop_reason` (str or None), `num_long_tokens` and `num_global_tokens`.
            drop_reasons: iterable of str. All possible reasons: each is counted.
            counts: dict of str to int. Further counts.
            lines: see the attribute `lines`.
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
        convert: function from a raw example to a `Converted`; may raise a ValueError.
        raw: the example, or a placeholder from `raw_files.unreadable`.
    Returns:
        (`Converted`, list of bytes: its serialized TF examples). The `problem` of the `Converted`
        describes a malformed example.
    """
    try:
        raw_files.check_readable(raw)
        converted = convert(raw)
        # Text may contain unpaired surrogates, which JSON can write and UTF-8 cannot.
        return converted, list(map(serialize, converted.features))
    except ValueError as error:
        return Converted(features=[], problem=str(error)), []


def located(problem, file, number):
    """The problem of a raw example, with its place: str.

    Args:
        problem: str. One that begins with a place in the file stays as it is: a reader that groups
            examples knows better than their number where each stands.
        file: str. The raw file or folder.
        number: int. The example's number among those that were read of it, from 0.
    """
    if problem.startswith((f"{file}:", os.path.join(file, ""))):
        return problem
    return f"{file}: element {number}: {problem}"


def to_tf_example(features):
    """Makes a `tf.train.Example` from a dict of feature name to list of int, float, str or bytes.

    >>> from etcmodel import preprocessing
    >>> example = preprocessing.to_tf_example({"token_ids": [2, 7, 3], "name": ["one"]})
    >>> example.features.feature["token_ids"].int64_list.value
    [2, 7, 3]
    """
    return tf.train.Example.FromString(serialize(features))


class Totals:
    """Counts and lengths of examples, which can be stored and merged."""

    def __init__(self):
        self.num_read = self.num_written = self.num_bad = 0
        self._counts = collections.Counter()
        self._lengths = collections.defaultdict(lambda: [0, 0])  # Sum and count.

    def add(self, converted, num_records):
        """Counts an example with its `Converted` and its number of records."""
        self.num_read += 1
        self.num_written += num_records
        self.num_bad += bool(converted.problem)
        self._counts.update(converted.counts)
        for name, length in converted.lengths.items():
            self._add_lengths(name, length, 1)

    def _add_lengths(self, name, total, num):
        self._lengths[name][0] += total
        self._lengths[name][1] += num

    def as_dict(self):
        """The state for `merge`: JSON-serializable dict."""
        return {
            "read": self.num_read,
            "written": self.num_written,
            "bad": self.num_bad,
            "counts": dict(self._counts),
            "lengths": dict(self._lengths),
        }

    def merge(self, part):
        """Adds the `as_dict` of another instance."""
        self.num_read += part["read"]
        self.num_written += part["written"]
        self.num_bad += part["bad"]
        self._counts.update(part["counts"])
        for name, (total, num) in part["lengths"].items():
            self._add_lengths(name, total, num)

    def statistics(self):
        """The counts, and the means of the lengths: dict."""
        means = {name: round(total / num, 2) for name, (total, num) in self._lengths.items()}
        return {
            "examples_read": self.num_read,
            "examples_written": self.num_written,
            "examples_bad": self.num_bad,
            **dict(sorted(self._counts.items())),
            **{f"mean_{name}": mean for name, mean in sorted(means.items())},
        }
