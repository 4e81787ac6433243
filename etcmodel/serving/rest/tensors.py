"""Converts nested JSON lists to arrays and back."""

import base64
import binascii
import itertools

import numpy as np

from etcmodel.serving.rest.errors import RequestError

__all__ = ["from_json", "is_base64", "to_json"]

_BASE64 = "b64"
_KINDS = {dict: "objects", str: "strings", bool: "booleans", type(None): "nulls", list: "lists"}


def is_base64(value):
    """Whether a JSON value stands for bytes."""
    return isinstance(value, dict) and value.keys() == {_BASE64}


def from_json(value, info, name):
    """Converts nested lists to an array.

    Args:
        value: a JSON value.
        info: `TensorInfo` of the expected array. Floats are not accepted as integers, nor booleans
            as integers; integers are accepted as floats.
        name: str. The input's name, for errors.
    Returns:
        Array; for strings, of bytes, with text encoded in UTF-8.
    Raises:
        RequestError: 400, naming the input, the value and what is expected.
    """
    shape, leaves = _flatten(value, info, name)
    if not info.takes(shape):
        _refuse(name, info, f"shape {list(shape)}")
    return _array(leaves, info, name).reshape(shape)


def to_json(value, name, *, is_bytes=False):
    """Converts an array to nested lists, or a single value.

    Args:
        value: array.
        name: str. The output's name, for errors.
        is_bytes: bool. Whether strings become `{"b64": "…"}` instead of text.
    Raises:
        RequestError: 400, if a string that must be text is not UTF-8.
    """
    value = np.asarray(value)
    if value.dtype == np.dtype(object):
        return _nested(_strings(value, name, is_bytes), value.shape)
    if value.dtype.kind == "f" and value.dtype.itemsize < 8 or value.dtype.kind == "V":
        # The shortest decimal that gives the same number in its own precision.
        shortest = value.astype(np.float32).astype(str).astype(np.float64)
        return shortest.tolist()
    return value.tolist()


def _flatten(value, info, name):
    """The shape of nested lists, and all innermost values."""
    shape, level = [], [value]
    while level and isinstance(level[0], list):
        if not all(isinstance(item, list) for item in level):
            _refuse(name, info, f"lists beside other values, {len(shape)} levels deep")
        sizes = {len(item) for item in level}
        if len(sizes) > 1:
            _refuse(
                name, info, f"lists of {min(sizes)} and of {max(sizes)} side by side"
                f"{_at_level(shape)}"
            )  # fmt: skip
        shape.append(sizes.pop())
        level = list(itertools.chain.from_iterable(level))
    if any(isinstance(item, list) for item in level):
        _refuse(name, info, f"lists beside other values{_at_level(shape)}")
    return tuple(shape), level


def _at_level(shape):
    return f", within {len(shape)} list{'s' * (len(shape) != 1)}" if shape else ""


def _array(leaves, info, name):
    kinds = set(map(type, leaves))
    if info.is_string:
        array = np.empty(len(leaves), object)
        array[:] = [_bytes(leaf, info, name) for leaf in leaves]
        return array
    kind = info.dtype.kind
    allowed = {"b": {bool}, "i": {int}, "u": {int}}.get(kind, {int, float})
    if wrong := kinds - allowed:
        _refuse(name, info, _described(wrong, leaves, kind))
    if kind in "iu" and leaves:
        bounds = np.iinfo(info.dtype)
        for value in (min(leaves), max(leaves)):
            if not bounds.min <= value <= bounds.max:
                _refuse(name, info, f"the number {value!r:.40}")
    try:
        with np.errstate(over="ignore"):
            array = np.array(leaves, np.float64 if kind not in "biu" else info.dtype)
            converted = array.astype(info.dtype)
    except OverflowError:
        _refuse(name, info, "a number that is too large")
    if kind not in "biu" and np.any(np.isfinite(array) & ~np.isfinite(converted.astype(float))):
        _refuse(name, info, "a number that is too large")
    return converted


def _described(kinds, leaves, wanted):
    if wanted in "iu" and float in kinds:
        number = next(leaf for leaf in leaves if isinstance(leaf, float))
        return f"the number {number!r:.40}"
    return " and ".join(sorted(_KINDS.get(kind, "numbers") for kind in kinds))


def _bytes(leaf, info, name):
    if isinstance(leaf, str):
        try:
            return leaf.encode()
        except UnicodeEncodeError:
            _refuse(name, info, "half of a surrogate pair, which is no text")
    if not is_base64(leaf):
        _refuse(name, info, _KINDS.get(type(leaf), "numbers"))
    text = leaf[_BASE64]
    try:
        digits = "".join(text.split()).rstrip("=")
        return base64.b64decode(digits + "=" * (-len(digits) % 4), validate=True)
    except (AttributeError, ValueError, binascii.Error):
        _refuse(name, info, f'`{{"{_BASE64}": …}}` with what is not base64')


def _refuse(name, info, found):
    raise RequestError(400, f"Input `{name}` must be {info}. Received: {found}.") from None


def _strings(value, name, is_bytes):
    try:
        if is_bytes:
            return [{_BASE64: base64.b64encode(item).decode()} for item in value.ravel()]
        return [item.decode() for item in value.ravel()]
    except UnicodeDecodeError:
        raise RequestError(
            400,
            f"Output `{name}` is not UTF-8: send text in UTF-8, or export bytes under a name that "
            "ends in `_bytes`.",
        ) from None


def _nested(items, shape):
    array = np.empty(len(items), object)
    array[:] = items
    return array.reshape(shape).tolist()
