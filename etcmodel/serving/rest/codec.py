"""TensorFlow Serving's JSON format of requests and responses.

A request has `instances`, a list with an item for each example (row format), or `inputs`, the whole
tensors (column format), and may have `signature_name`. The response has `predictions` or `outputs`,
respectively. Bytes are `{"b64": "…"}`; NaN and infinite numbers are the tokens NaN, Infinity and
-Infinity.
Source: https://www.tensorflow.org/tfx/serving/api_rest

Vectors of texts are also answered in OpenAI's format, which their clients know.
"""

import base64
import binascii
import dataclasses
import itertools
import json

import numpy as np

from etcmodel import bounded_json
from etcmodel.serving.rest.errors import RequestError

# Signatures: names, dtypes and shapes of a model's inputs and outputs.


DEFAULT_SIGNATURE = "serving_default"


@dataclasses.dataclass(frozen=True)
class TensorInfo:
    """A tensor of a signature.

    Attributes:
        dtype: `np.dtype`; object (bytes) for strings.
        shape: tuple of int, with None for flexible sizes; None for any shape.
    """

    dtype: np.dtype
    shape: tuple | None

    @property
    def is_string(self):
        return self.dtype == np.dtype(object)

    def takes(self, shape):
        """Whether an array of this shape is accepted."""
        if self.shape is None:
            return True
        return len(shape) == len(self.shape) and all(
            size is None or size == found for size, found in zip(self.shape, shape, strict=True)
        )

    def __str__(self):
        name = "string" if self.is_string else self.dtype.name
        if self.shape is None:
            return f"{name} of any shape"
        return f"{name} [{', '.join('?' if size is None else str(size) for size in self.shape)}]"


@dataclasses.dataclass(frozen=True)
class Signature:
    """A signature of a model: dicts from name to `TensorInfo` for inputs and outputs."""

    name: str
    inputs: dict
    outputs: dict

    @property
    def has_batches(self):
        """Whether the first axis of all inputs and outputs is a batch axis of flexible size."""
        infos = [*self.inputs.values(), *self.outputs.values()]
        return all(info.shape and info.shape[0] is None for info in infos)


# Converts nested JSON lists to arrays and back.


_BASE64, _BASE64_FORMAT = "b64", "base64"
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


_BYTES_SUFFIX = "_bytes"  # Outputs of this name are bytes, all other strings are text.


# Requests and responses.


@dataclasses.dataclass(frozen=True)
class PredictRequest:
    """A parsed request.

    Attributes:
        inputs: dict of name to array.
        is_row: bool. Whether request and response use the row format.
        num_rows: int. Number of examples; 1 if the signature has no batch axis.
    """

    signature: Signature
    inputs: dict
    is_row: bool
    num_rows: int


def load(body):
    """The JSON object of a request's body, which is bytes: dict.

    Raises:
        RequestError: 400, if it is none.
    """
    try:
        return bounded_json.load_object(body, "The request")
    except ValueError as error:
        raise RequestError(400, f"{str(error).rstrip('.')}.") from None


def instances_of(request):
    """The `instances` of a request for raw examples: list of dict, which is not empty.

    Args:
        request: dict, as from `load`.
    Raises:
        RequestError: 400, if it has none, or text that is not UTF-8.
    """
    instances = request.get("instances")
    if "inputs" in request or not isinstance(instances, list) or not instances:
        raise RequestError(
            400, "A request for raw examples must have `instances`, a list of objects."
        )
    for number, item in enumerate(instances):
        if not isinstance(item, dict):
            raise RequestError(400, f"Item {number} of `instances` must be an object.")
        try:
            json.dumps(item, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise RequestError(
                400, f"Item {number} of `instances` has half of a surrogate pair, which is no text."
            ) from None
    return instances


def decode(request, signatures, others=()):
    """Parses a request.

    Args:
        request: dict, as from `load`.
        signatures: dict of name to `Signature`.
        others: names of what else may be asked for, for the message.
    Returns:
        `PredictRequest`.
    Raises:
        RequestError: 400, or 404 for an unknown signature, naming the input, its value and what is
            expected.
    """
    signature = _signature(request, signatures, others)
    forms = [name for name in ("instances", "inputs") if name in request]
    if len(forms) != 1:
        found = "both" if forms else "neither"
        raise RequestError(
            400, f"A request must have either `instances` or `inputs`. Received: {found}."
        )
    is_row = forms == ["instances"]
    split = _columns_of_instances if is_row else _columns_of_inputs
    columns = split(request[forms[0]], signature, _advice(request, others))
    inputs = {name: from_json(columns[name], info, name) for name, info in signature.inputs.items()}
    return PredictRequest(signature, inputs, is_row, _num_rows(inputs, signature))


def encode(outputs, is_row):
    """Formats the response.

    Args:
        outputs: dict of name to array, as returned by a signature.
        is_row: bool. Row format; else column format.
    Returns:
        bytes.
    Raises:
        RequestError: 400, if outputs differ in the number of examples in row format, or a string
            that must be text is not UTF-8.
    """
    columns = {
        name: to_json(value, name, is_bytes=name.endswith(_BYTES_SUFFIX))
        for name, value in sorted(outputs.items())
    }
    if is_row:
        answer = {"predictions": _rows(columns, outputs)}
    else:
        answer = {"outputs": next(iter(columns.values())) if len(columns) == 1 else columns}
    return json.dumps(answer, ensure_ascii=False).encode()


# Vectors of texts, in OpenAI's format.


_EMBEDDINGS = {"input", "model", "encoding_format", "dimensions", "user"}
_ENCODINGS = ("float", _BASE64_FORMAT)


def decode_embeddings(request, signature):
    """Parses a request for vectors.

    Args:
        request: dict, as from `load`, with `input`, a text or a list of texts. `encoding_format` is
            "float" or "base64"; `dimensions`, if given, must be the size of the vectors.
        signature: `Signature` with the input `text` and the output `vector`.
    Returns:
        (`PredictRequest`, whether vectors are asked for in base64).
    Raises:
        RequestError: 400, naming the entry.
    """
    if unknown := sorted(set(request) - _EMBEDDINGS):
        raise RequestError(400, f"Unknown: {_quoted(unknown)}. Known: {_quoted(_EMBEDDINGS)}.")
    texts, (size,) = request.get("input"), signature.outputs["vector"].shape[1:]
    texts = [texts] if isinstance(texts, str) else texts
    if not isinstance(texts, list) or not texts or not all(isinstance(x, str) for x in texts):
        raise RequestError(400, "`input` must be a text, or a list of texts; not of token ids.")
    if request.get("dimensions") not in (None, size):
        raise RequestError(400, f"`dimensions` must be {size}, which is all that the model has.")
    encoding = request.get("encoding_format")
    encoding = _ENCODINGS[0] if encoding is None else encoding
    if encoding not in _ENCODINGS:
        raise RequestError(400, '`encoding_format` must be "float" or "base64".')
    inputs = {"text": from_json(texts, signature.inputs["text"], "input")}
    return PredictRequest(signature, inputs, True, len(texts)), encoding == _BASE64_FORMAT


def encode_embeddings(outputs, name, in_base64):
    """Writes the response, as bytes.

    Args:
        outputs: dict of array, as of the signature.
        name: str. The model's.
        in_base64: bool. Whether a vector is written as its float32 numbers, little-endian, in
            base64.
    """
    vectors = outputs["vector"]
    if in_base64:
        written = [base64.b64encode(x.astype("<f4").tobytes()).decode() for x in vectors]
    else:
        written = to_json(vectors, "vector")
    data = [
        {"object": "embedding", "index": index, "embedding": vector}
        for index, vector in enumerate(written)
    ]
    count = int(outputs["num_tokens"].sum())
    usage = {"prompt_tokens": count, "total_tokens": count}
    return json.dumps({"object": "list", "data": data, "model": name, "usage": usage}).encode()


def _signature(request, signatures, others):
    name = request.get("signature_name", DEFAULT_SIGNATURE)
    if not isinstance(name, str):
        raise RequestError(400, "`signature_name` must be a string.")
    name = name or DEFAULT_SIGNATURE
    if name not in signatures:
        known = ", ".join(sorted({*signatures, *others}))
        raise RequestError(404, f"There is no signature {name!r:.80}; the model has {known}.")
    return signatures[name]


def _advice(request, others):
    """What to say of inputs that a signature lacks, which the request may not have meant: str."""
    if not others or "signature_name" in request:
        return ""
    names = _quoted(others)
    return f" Other inputs may be those of a signature that the request must name: {names}."


def _columns_of_instances(instances, signature, advice):
    """dict from an input's name to the list of its values, one per example."""
    names = signature.inputs.keys()
    if not isinstance(instances, list) or not instances:
        raise RequestError(400, "`instances` must be a list with an item for each example.")
    if not signature.has_batches:
        raise RequestError(
            400, f"Signature `{signature.name}` takes no batches: give `inputs`, not `instances`."
        )
    are_objects = [isinstance(x, dict) and not is_base64(x) for x in instances]
    if not any(are_objects):
        return {_only(names, "instances"): instances}
    for number, item in enumerate(instances):
        if not are_objects[number]:
            raise RequestError(
                400, f"`instances` must be all objects or none: item {number} is none."
            )
        _check_names(item, names, f"Item {number} of `instances`", advice)
    return {name: [item[name] for item in instances] for name in names}


def _columns_of_inputs(inputs, signature, advice):
    names = signature.inputs.keys()
    if not isinstance(inputs, dict) or is_base64(inputs):
        return {_only(names, "inputs"): inputs}
    _check_names(inputs, names, "`inputs`", advice)
    return inputs


def _only(names, form):
    if len(names) != 1:
        raise RequestError(
            400, f"`{form}` must name the inputs, which are several: {_quoted(names)}."
        )
    return next(iter(names))


def _check_names(given, names, where, advice):
    if given.keys() != names:
        alone = " and nothing else" if given.keys() > names else ""
        found = _quoted(given) or "nothing"
        raise RequestError(
            400, f"{where} must have {_quoted(names)}{alone}. Received: {found}.{advice}"
        )


def _quoted(names):
    return ", ".join(f"`{name:.80}`" for name in sorted(names))


def _num_rows(inputs, signature):
    if not signature.has_batches:
        return 1
    sizes = {name: len(value) for name, value in inputs.items()}
    if len(set(sizes.values())) > 1:
        found = ", ".join(f"`{name}` {size}" for name, size in sizes.items())
        raise RequestError(
            400, f"All inputs must have the same number of examples. Received: {found}."
        )
    num_rows = next(iter(sizes.values()), 1)
    if not num_rows:
        raise RequestError(400, "The request has no example.")
    return num_rows


def _rows(columns, outputs):
    sizes = {np.shape(value)[:1] for value in outputs.values()}
    if len(sizes) != 1 or () in sizes:
        raise RequestError(
            400, "The outputs have no common number of examples: ask by `inputs`, not `instances`."
        )
    if len(columns) == 1:
        return next(iter(columns.values()))
    return [
        dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
    ]
