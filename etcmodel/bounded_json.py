"""Reads JSON from untrusted files, within limits of depth, size and digits.

Python's reader fails with errors other than `ValueError` on deeply nested values, and a few bytes
can become gigabytes. TensorFlow is only needed to read a whole file.
"""

import itertools
import json
import re

MAX_DEPTH = 100  # The data sets' examples have less than ten.
MAX_BYTES = 32 << 20  # In the worst case an example of that size takes 2 GB of memory.
MAX_INT = 2**31 - 1  # Of int32, which numbers become in models.
TOO_LONG = f"longer than {MAX_BYTES >> 20} MiB"

_STRING = re.compile(rb'"[^"]*"?')
_OTHERS = bytes(byte for byte in range(256) if byte not in b'"[]{}')
_STEPS = {**dict.fromkeys(b"[{", 1), **dict.fromkeys(b"]}", -1)}
# How encodings other than UTF-8 begin, with a byte order mark or, before ASCII, without.
_ENCODINGS = {
    "UTF-32": rb"\xff\xfe\0\0|\0\0\xfe\xff|[^\0]\0\0\0|\0\0\0[^\0]",
    "UTF-16": rb"\xff\xfe|\xfe\xff|[^\0]\0[^\0]\0|\0[^\0]\0[^\0]",
}
_NO_UTF8 = re.compile("[\udc80-\udcff]")
_UTF8 = re.compile("[^\0-\x7f\ud800-\udfff]")
_KINDS = {
    list: "an array",
    str: "a string",
    bool: "true or false",
    type(None): "null",
}


class _TwiceError(ValueError):
    """An object has a name twice, of which Python's reader would take the last."""


def _with_each_name_once(pairs):
    found = dict(pairs)
    if len(found) < len(pairs):
        names = sorted(name for name, _ in pairs)
        twice = next(one for one, other in itertools.pairwise(names) if one == other)
        raise _TwiceError(f"an object has {twice!r:.80} twice")
    return found


def loads(text, max_bytes=None, object_pairs_hook=None):
    """Parses a JSON text.

    Args:
        text: str, or bytes in UTF-8, with or without a byte order mark.
        max_bytes: int. None: `MAX_BYTES`.
        object_pairs_hook: see `json.loads`.
    Raises:
        json.JSONDecodeError: if it is not JSON; with the position.
        UnicodeDecodeError: if it is not UTF-8.
        ValueError: if it exceeds the limits, or has another encoding.
    """
    encoded = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    if problem := problem_of_size(len(encoded), max_bytes) or _problem_of_depth(encoded):
        raise ValueError(problem)
    if isinstance(text, bytes):
        check_encoding(text)
        text = text.decode("utf-8")
    try:
        return json.loads(text.removeprefix("\ufeff"), object_pairs_hook=object_pairs_hook)
    except (json.JSONDecodeError, _TwiceError):
        raise
    except ValueError as error:
        raise ValueError("an integer of too many digits") from error


def read_object(path, advice="", max_bytes=None):
    """Applies `load_object` to a file, local or remote (`gs://…`)."""
    import tensorflow as tf  # Slow to import.

    if tf.io.gfile.isdir(path):
        raise ValueError(f"{path} is a folder, and must be a file.")
    with tf.io.gfile.GFile(path, "rb") as file:
        text = file.read((max_bytes or MAX_BYTES) + 1)
    return load_object(text, path, advice, max_bytes)


def load_object(text, source, advice="", max_bytes=None):
    """Parses a JSON object, such as the content of a file: dict.

    Args:
        text: as in `loads`.
        source: the file's name, for errors.
        advice: str. What to do if it is damaged: a sentence.
        max_bytes: as in `loads`.
    Raises:
        ValueError: naming the file, and the position if it is known, if it is not a JSON object, or
            an object in it has a name twice.
    """
    try:
        value = loads(text, max_bytes, _with_each_name_once)
    except json.JSONDecodeError as error:
        problem = f"{error.msg} at line {error.lineno}, column {error.colno}"
    except UnicodeDecodeError as error:
        problem = f"invalid UTF-8 at byte {error.start + 1}"
    except ValueError as error:
        problem = str(error)
    else:
        if isinstance(value, dict):
            return value
        kind = _KINDS.get(type(value), "a number")
        raise ValueError(_sentences(f"{source} must hold a JSON object, not {kind}", advice))
    raise ValueError(_sentences(f"{source} is not valid JSON: {problem}", advice))


def _sentences(problem, advice):
    return f"{problem}. {advice}" if advice else problem


def check_encoding(text):
    """Raises ValueError if bytes begin like an encoding other than UTF-8."""
    for name, beginning in _ENCODINGS.items():
        if re.match(beginning, text):
            raise ValueError(
                f"the text is in {name}: save it in UTF-8, as iconv -f {name} -t UTF-8 does"
            )


def advice_on_encoding(text):
    """Returns what to do if nothing beyond ASCII in a text was UTF-8; '' if it is only damaged.

    Args:
        text: str, in which bytes that were not UTF-8 are surrogate code points.
    """
    if not _NO_UTF8.search(text) or _UTF8.search(text):
        return ""
    return (
        "; the file seems to be in another encoding, such as Latin-1: save it in UTF-8, as "
        "`iconv -f latin1 -t utf-8` does"
    )


def problem_of_size(num_bytes, max_bytes=None):
    """Returns what is wrong with a text of so many bytes: str, '' for nothing."""
    if num_bytes <= (max_bytes or MAX_BYTES):
        return ""
    return f"longer than {max_bytes >> 20} MiB" if max_bytes else TOO_LONG


def _problem_of_depth(text):
    # Each step leaves less to the next, and those over all bytes are not Python loops.
    marks = text.replace(rb"\\", b"").replace(rb"\"", b"").translate(None, _OTHERS)
    # Two adjacent quotes do not affect the rest, whether they open a string or end one.
    brackets = _STRING.sub(b"", marks.replace(b'""', b""))
    depths = itertools.accumulate(map(_STEPS.__getitem__, brackets))
    too_deep = len(brackets) > MAX_DEPTH and max(depths) > MAX_DEPTH
    return f"nested deeper than {MAX_DEPTH} levels" if too_deep else ""
