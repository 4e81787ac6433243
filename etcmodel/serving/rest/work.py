"""Estimates the work of a request, before the model gets it.

The exact number of tokens is known only after tokenization. So the tokens of texts are estimated:
one for each letter of a script without spaces between words, for each mark, and for every four
letters of other words, which is somewhat more than a vocabulary gives for plain text.
"""

import dataclasses
import math
import re

import numpy as np
import tensorflow as tf
from google.protobuf import message

from etcmodel.serving.rest.errors import RequestError
from etcmodel.text.characters import BLOCKS_WITHOUT_SPACES

# In Korean, too, each syllable is about one token.
_ALONE = (*BLOCKS_WITHOUT_SPACES, (0x1100, 0x11FF), (0xAC00, 0xD7FF))
_LETTER = "".join(f"{chr(first)}-{chr(last)}" for first, last in _ALONE)
_TOKEN = re.compile(rf"[{_LETTER}]|[^\W_{_LETTER}]{{1,4}}|_|[^\w\s]")
_SENTENCE_END = re.compile(r"[.!?]\s")
_SERIALIZED = "examples"  # Input with serialized `tf.train.Example`s.
_QUESTION = "question"
_IDS = ("token_ids", "input_ids")  # Suffixes of inputs with one number per token.
# Scalar inputs of generation, each of which multiplies the work.
_GENERATED = ("max_length", "num_beams")


@dataclasses.dataclass(frozen=True)
class Windows:
    """How a model splits texts that are too long for it into windows.

    Attributes:
        length: int. Length of a window in tokens.
        stride: int. Number of text tokens that a window repeats from the one before.
        global_length: int or None. Number of global tokens of a window; None: any number.
        num_special: int. Number of special tokens of a window, outside question and text.
        num_global: int. Number of global tokens of a window, besides those of questions and of
            blocks of text.
        question_by_token: bool. Whether each token of a question has its own global token, or all
            share one.
    """

    length: int
    stride: int
    global_length: int | None = None
    num_special: int = 0
    num_global: int = 0
    question_by_token: bool = False

    def count(self, texts):
        """Estimates the number of windows of texts: int array. Args: texts: `_Texts`."""
        room = np.maximum(self.length - self.num_special - texts.question, 1)
        num_windows = _num_steps(texts.tokens, room, room - self.stride)
        if self.global_length is None:
            return num_windows
        own = texts.question if self.question_by_token else int(texts.has_question)
        room = np.maximum(self.global_length - self.num_global - own, 1)
        blocks = texts.sentences + texts.documents
        # Repeated tokens have blocks, too, and so has the document that a window begins in.
        repeated = self.stride * blocks // np.maximum(texts.tokens, 1) + (texts.documents > 0)
        return np.maximum(num_windows, _num_steps(blocks, room, room - repeated))


def _num_steps(size, room, step):
    """int array: number of windows; each but the first has `step` new tokens."""
    return 1 + -(-np.maximum(size - room, 0) // np.maximum(step, 1))


@dataclasses.dataclass
class _Texts:
    """Counts for the texts of each example: int64 [num_rows]; `tokens` excludes the question."""

    tokens: np.ndarray
    question: np.ndarray
    sentences: np.ndarray
    documents: np.ndarray
    has_question: bool


@dataclasses.dataclass(frozen=True)
class Limits:
    """Limits of one request.

    Attributes:
        max_rows: int. Maximum number of examples.
        max_tokens: int. Maximum number of tokens of all examples, including tokens to generate.
        max_windows: int. Maximum number of model inputs: one per example, or per window.
    """

    max_rows: int
    max_tokens: int
    max_windows: int

    def check(self, request, windows=None):
        """Checks a request against the limits.

        Args:
            request: `codec.PredictRequest`.
            windows: `Windows` of the model; None if each example is one input.
        Raises:
            RequestError: 413, naming the flag that raises the limit.
        """
        self.check_rows(request.num_rows)
        self.check_work(request, windows)

    def check_rows(self, num_rows):
        """Checks the number of examples alone, as `check` does."""
        if num_rows > self.max_rows:
            _refuse(self.max_rows, "examples", num_rows, "max_rows")

    def check_work(self, request, windows=None):
        """Checks all but the number of examples, as `check` does."""
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
    """Estimates (tokens, windows) of a request: ints. Args: as in `Limits.check`."""
    inputs, num_rows = request.inputs, request.num_rows
    strings = {name: value for name, value in inputs.items() if value.dtype.kind == "O"}
    ids = [
        x for name, x in inputs.items() if name.endswith(_IDS) and x.ndim and name not in strings
    ]
    num_tokens = max((math.prod(x.shape[:2]) // num_rows for x in ids), default=0) * num_rows
    num_inputs = num_windows = max((len(x) for x in inputs.values() if x.ndim), default=1)
    if strings or windows:
        texts = _texts(strings, num_rows)
        num_tokens += int((texts.tokens + texts.question).sum())
        num_windows = int(windows.count(texts).sum()) if windows else num_inputs
    scalars = [inputs[name] for name in _GENERATED if name in inputs and not inputs[name].ndim]
    generated = num_inputs * math.prod(max(int(x), 1) for x in scalars) if scalars else 0
    return num_tokens + generated, num_windows


def _texts(strings, num_rows):
    """`_Texts` of the string inputs."""
    found = _Texts(*np.zeros([4, num_rows], np.int64), has_question=_QUESTION in strings)
    for name, value in strings.items():
        if name == _QUESTION:
            found.question += _sums(_num_tokens, value, num_rows)
            continue
        count = _num_ids if name == _SERIALIZED else _num_tokens
        found.tokens += _sums(count, value, num_rows)
        found.sentences += _sums(_num_sentences, value, num_rows)
        if value.ndim > 1 and value.size:
            is_given = (value != b"").reshape(*value.shape[:2], -1).any(axis=2)
            found.documents += is_given.reshape(num_rows, -1).sum(axis=1)
    return found


def _sums(count, value, num_rows):
    """int [num_rows]: the counts for the strings of each row."""
    counts = np.array([count(item) for item in value.ravel()], np.int64)
    return counts.reshape(num_rows, value.size // num_rows).sum(axis=1)


def _num_sentences(text):
    return bool(text) + len(_SENTENCE_END.findall(text.decode("utf-8", "replace")))


def _num_tokens(text):
    return _TOKEN.subn("", text.decode("utf-8", "replace"))[1]


def _num_ids(serialized):
    """Number of tokens of a serialized `tf.train.Example`: its longest feature of token ids."""
    try:
        features = tf.train.Example.FromString(serialized).features.feature
    except message.DecodeError:
        return 0  # The model will reject it.
    sizes = {name: len(feature.int64_list.value) for name, feature in features.items()}
    ids = [size for name, size in sizes.items() if name.endswith(_IDS[0])]
    return max(ids or sizes.values(), default=0)
