"""TensorFlow Serving's rules for JSON, written out value by value."""

import base64
import contextlib
import math
import struct

_RANGES = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1), "uint8": (0, 255)}


def tensor(value, dtype, shape):
    """Nested lists with the values of a tensor, of str for strings; ValueError if they are none.

    Args:
        value: value of JSON.
        dtype: str.
        shape: list of sizes, None for open ones.
    """
    if not shape:
        return _leaf(value, dtype)
    if not isinstance(value, list) or shape[0] not in (None, len(value)):
        raise ValueError
    if not value and len(shape) > 1:  # A list that is empty has no rank beyond its own.
        raise ValueError
    items = [tensor(item, dtype, shape[1:]) for item in value]
    if len({str(_shape(item)) for item in items}) > 1:
        raise ValueError
    return items


def _shape(value):
    return [len(value), *(_shape(value[0]) if value else [])] if isinstance(value, list) else []


def _leaf(value, dtype):
    if dtype == "string":
        if isinstance(value, dict) and list(value) == ["b64"] and isinstance(value["b64"], str):
            return base64.b64decode(value["b64"], validate=True)
        if isinstance(value, str):
            return value.encode()
    elif dtype == "bool":
        if value is True or value is False:
            return value
    elif dtype in _RANGES:
        low, high = _RANGES[dtype]
        if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
            return value
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        # OverflowError is a ValueError's sibling: see `decode`. Numbers of another byte order than
        # "<" or ">" would become infinite instead.
        return _float32(float(value))
    raise ValueError


def _float32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def decode(value, dtype, shape):
    """`tensor`, or None if TensorFlow Serving refuses the value."""
    try:
        return tensor(value, dtype, shape)
    except (ValueError, OverflowError):
        return None


def shortest_float(value):
    """The decimal with the fewest digits that a float32 is read from again."""
    if math.isnan(value) or math.isinf(value):
        return value
    for digits in range(1, 18):
        text = f"{value:.{digits}g}"
        with contextlib.suppress(OverflowError):  # Rounded up from the largest.
            if _float32(float(text)) == value:
                return float(text)
    return value
