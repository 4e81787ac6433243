"""How much work a request asks for, counted before a model sees it.

What a model's own vocabulary makes of a text is known only when it has been read. So the tokens of
texts are counted about: a letter that is a word by itself, a mark, and every four letters of other
words one each, which is somewhat more than a vocabulary gives for plain text.
"""

import dataclasses
import re

import numpy as np
import tensorflow as tf
from google.protobuf import message

from etcmodel.serving.rest.errors import RequestError

__all__ = ["Limits", "Windows", "measured"]

# Chinese, Japanese and Korean have no blanks between words.
_IDEOGRAPH = "\u1100-\u11ff\u2e80-\ua4cf\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
_TOKEN = re.compile(rf"[{_IDEOGRAPH}]|[^\W{_IDEOGRAPH}]{{1,4}}|[^\w\s]")
_SENTENCE_END = re.compile(rb"[.!?]\s")
_SERIALIZED = "examples"  # Input of serialized `tf.train.Example`s.
_IDS = "token_ids"  # Ends the name of the features that have one number a token.
# Scalar inputs of generation, of which each multiplies the work.
_GENERATED = ("max_length", "num_beams")


@dataclasses.dataclass(frozen=True)
class Windows:
    """How a model reads a text that is too long for it.

    Attributes:
        length: int. Tokens of a window.
        stride: int. Tokens that a window repeats of the one before.
        global_length: int or None. Sentences and documents of a window; None: any number.
    """

    length: int
    stride: int
    global_length: int | None = None

    def count(self, tokens, blocks):
        """About how many windows texts have: int array.

        Args:
            tokens: int array. Tokens of each.
            blocks: int array of that shape. Sentences and documents.
        """
        rest = np.maximum(tokens - self.length, 0)
        num_windows = 1 + -(-rest // max(self.length - self.stride, 1))
        if self.global_length is None:
            return num_windows
        return np.maximum(num_windows, -(-blocks // self.global_length))


@dataclasses.dataclass(frozen=True)
class Limits:
    """What one request may have.

    Attributes:
        max_rows: int. Examples.
        max_tokens: int. Tokens of all examples, and those to generate.
        max_windows: int. Inputs of the model: one an example, more of texts in windows.
    """

    max_rows: int
    max_tokens: int
    max_windows: int

    def check(self, request, windows=None):
        """Checks a request.

        Args:
            request: `codec.PredictRequest`.
            windows: `Windows` of the model; None if each example is one input.
        Raises:
            RequestError: 413, naming the flag by which the server allows more.
        """
        if request.num_rows > self.max_rows:
            _refuse(self.max_rows, "examples", request.num_rows, "max_rows")
        num_tokens, num_windows = measured(request, windows)
        if num_tokens > self.max_tokens:
            _refuse(self.max_tokens, "tokens", f"about {num_tokens}", "max_request_tokens")
        if num_windows > self.max_windows:
            _refuse(self.max_windows, "windows", f"about {num_windows}", "max_request_windows")


def _refuse(limit, what, found, flag):
    raise RequestError(
        413,
        f"A request may have {limit} {what}. Received: {found}; send several requests, or start "
        f"the server with a higher --{flag}.",
    )


def measured(request, windows=None):
    """(tokens, windows) of a request, about: ints. Args: as of `Limits.check`."""
    inputs, num_rows = request.inputs, request.num_rows
    tokens, blocks = np.zeros([2, num_rows], np.int64)
    for name, value in inputs.items():
        if value.dtype == np.dtype(object):
            count = _num_ids if name == _SERIALIZED else _num_tokens
            tokens += _sums(count, value, num_rows)
            if windows:
                blocks += _sums(_num_blocks, value, num_rows)
    arrays = [value for value in inputs.values() if value.ndim and value.dtype != np.dtype(object)]
    tokens += max((int(np.prod(value.shape[:2])) // num_rows for value in arrays), default=0)
    num_inputs = max((len(value) for value in inputs.values() if value.ndim), default=1)
    scalars = [inputs[name] for name in _GENERATED if name in inputs and not inputs[name].ndim]
    factors = [max(int(value), 1) for value in scalars]
    generated = num_inputs * int(np.prod(factors, dtype=object)) if factors else 0
    read = windows.count(tokens, blocks).sum() if windows else num_inputs
    return int(tokens.sum()) + generated, int(read)


def _sums(count, value, num_rows):
    """int [num_rows]: what is counted in the strings of each row."""
    counts = np.array([count(item) for item in value.ravel()], np.int64)
    return counts.reshape(num_rows, value.size // num_rows).sum(axis=1)


def _num_blocks(text):
    """The text itself, and its sentences."""
    return bool(text) + len(_SENTENCE_END.findall(text))


def _num_tokens(text):
    return _TOKEN.subn("", text.decode("utf-8", "replace"))[1]


def _num_ids(serialized):
    """Tokens of a serialized `tf.train.Example`: those of its longest feature of token ids."""
    try:
        features = tf.train.Example.FromString(serialized).features.feature
    except message.DecodeError:
        return 0  # The model refuses it.
    sizes = {name: len(feature.int64_list.value) for name, feature in features.items()}
    ids = [size for name, size in sizes.items() if name.endswith(_IDS)]
    return max(ids or sizes.values(), default=0)
