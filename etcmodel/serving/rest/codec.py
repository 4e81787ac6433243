"""TensorFlow Serving's JSON format of requests and responses.

A request has `instances`, a list with an item for each example (row format), or `inputs`, the whole
tensors (column format), and may have `signature_name`. The response has `predictions` or `outputs`,
respectively. Bytes are `{"b64": "…"}`; NaN and infinite numbers are the tokens NaN, Infinity and
-Infinity.
Source: https://www.tensorflow.org/tfx/serving/api_rest
"""

import dataclasses
import json

import numpy as np

from etcmodel import bounded_json
from etcmodel.serving.rest import tensors
from etcmodel.serving.rest.errors import RequestError
from etcmodel.serving.rest.signatures import DEFAULT_SIGNATURE, Signature

__all__ = ["PredictRequest", "decode", "encode", "instances_of", "load"]

_BYTES_SUFFIX = "_bytes"  # Outputs of this name are bytes, all other strings are text.


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


def decode(request, signatures):
    """Parses a request.

    Args:
        request: dict, as from `load`.
        signatures: dict of name to `Signature`.
    Returns:
        `PredictRequest`.
    Raises:
        RequestError: 400, or 404 for an unknown signature, naming the input, its value and what is
            expected.
    """
    signature = _signature(request, signatures)
    forms = [name for name in ("instances", "inputs") if name in request]
    if len(forms) != 1:
        found = "both" if forms else "neither"
        raise RequestError(
            400, f"A request must have either `instances` or `inputs`. Received: {found}."
        )
    is_row = forms == ["instances"]
    split = _columns_of_instances if is_row else _columns_of_inputs
    columns = split(request[forms[0]], signature)
    inputs = {
        name: tensors.from_json(columns[name], info, name)
        for name, info in signature.inputs.items()
    }
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
        name: tensors.to_json(value, name, is_bytes=name.endswith(_BYTES_SUFFIX))
        for name, value in sorted(outputs.items())
    }
    if is_row:
        answer = {"predictions": _rows(columns, outputs)}
    else:
        answer = {"outputs": next(iter(columns.values())) if len(columns) == 1 else columns}
    return json.dumps(answer, ensure_ascii=False).encode()


def _signature(request, signatures):
    name = request.get("signature_name", DEFAULT_SIGNATURE)
    if not isinstance(name, str):
        raise RequestError(400, "`signature_name` must be a string.")
    name = name or DEFAULT_SIGNATURE
    if name not in signatures:
        known = ", ".join(sorted(signatures))
        raise RequestError(404, f"There is no signature {name!r:.80}; the model has {known}.")
    return signatures[name]


def _columns_of_instances(instances, signature):
    """dict from an input's name to the list of its values, one per example."""
    names = signature.inputs.keys()
    if not isinstance(instances, list) or not instances:
        raise RequestError(400, "`instances` must be a list with an item for each example.")
    if not signature.has_batches:
        raise RequestError(
            400, f"Signature `{signature.name}` takes no batches: give `inputs`, not `instances`."
        )
    are_objects = [isinstance(x, dict) and not tensors.is_base64(x) for x in instances]
    if not any(are_objects):
        return {_only(names, "instances"): instances}
    for number, item in enumerate(instances):
        if not are_objects[number]:
            raise RequestError(
                400, f"`instances` must be all objects or none: item {number} is none."
            )
        _check_names(item, names, f"Item {number} of `instances`")
    return {name: [item[name] for item in instances] for name in names}


def _columns_of_inputs(inputs, signature):
    names = signature.inputs.keys()
    if not isinstance(inputs, dict) or tensors.is_base64(inputs):
        return {_only(names, "inputs"): inputs}
    _check_names(inputs, names, "`inputs`")
    return inputs


def _only(names, form):
    if len(names) != 1:
        raise RequestError(
            400, f"`{form}` must name the inputs, which are several: {_quoted(names)}."
        )
    return next(iter(names))


def _check_names(given, names, where):
    if given.keys() != names:
        raise RequestError(
            400,
            f"{where} must have {_quoted(names)}. Received: {_quoted(given) or 'nothing'}.",
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
