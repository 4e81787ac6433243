"""TensorFlow Serving's JSON to tensors and back, against its rules written out."""

import base64
import json
import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from etcmodel.serving.rest import codec
from etcmodel.serving.rest.codec import Signature, TensorInfo
from etcmodel.serving.rest.errors import RequestError
from tests.serving.rest import twin

DTYPES = {
    "string": object,
    "bool": bool,
    "int32": np.int32,
    "int64": np.int64,
    "uint8": np.uint8,
    "float32": np.float32,
}


def info(dtype, *shape):
    return TensorInfo(np.dtype(DTYPES[dtype]), shape)


def signature(inputs, outputs=None, name="serving_default"):
    outputs = outputs or {"y": info("float32", None)}
    return {name: Signature(name, inputs, outputs)}


def decode(request, signatures):
    body = request if isinstance(request, bytes) else json.dumps(request).encode()
    return codec.decode(codec.load(body), signatures)


LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([2**31, -(2**31) - 1, 2**63, 256, 10**400]),
    st.floats(width=32),
    st.sampled_from([1e39, -1e300, 0.1, 1.5]),
    st.text(max_size=3),
    st.binary(max_size=4).map(lambda x: {"b64": base64.b64encode(x).decode()}),
    st.sampled_from([{"b64": "?"}, {"b64": 1}, {"b64": "", "x": 1}, {}]),
)


def rectangles(leaves):
    """Nested lists that are tensors, of any rank up to 3."""
    shapes = st.lists(st.integers(0, 3), max_size=3)
    return shapes.flatmap(lambda shape: _of_shape(shape, leaves))


def _of_shape(shape, leaves):
    for size in reversed(shape):
        leaves = st.lists(leaves, min_size=size, max_size=size)
    return leaves


VALUES = st.one_of(
    rectangles(LEAVES),
    st.recursive(LEAVES, lambda x: st.lists(x, max_size=3), max_leaves=6),
    *(rectangles(x) for x in (st.booleans(), st.integers(-1, 3), st.text(max_size=2))),
    rectangles(st.floats(width=32)),
)
SHAPES = st.lists(st.sampled_from([None, None, 0, 1, 2, 3]), max_size=3)


def same(found, expected):
    if isinstance(expected, list):
        return len(found) == len(expected) and all(map(same, found, expected))
    if isinstance(expected, float) and math.isnan(expected):
        return math.isnan(found)
    return found == expected and isinstance(found, bool) == isinstance(expected, bool)


@example([1e39], "float32", [None])
@example([math.inf, -3.4e38], "float32", [2])
@given(VALUES, st.sampled_from(sorted(DTYPES)), SHAPES)
@settings(max_examples=250)
def test_values_are_taken_and_refused_as_the_rules_say(value, dtype, shape):
    expected = twin.decode(value, dtype, shape)
    try:
        found = codec.from_json(value, info(dtype, *shape), "x")
    except RequestError as error:
        assert expected is None
        assert error.status == 400 and error.message.startswith("Input `x` must be ")
    else:
        assert expected is not None
        assert found.dtype == DTYPES[dtype] and same(found.tolist(), expected)


@given(rectangles(st.floats(width=32)))
def test_floats_come_back_as_they_were(value):
    array = np.array(value, np.float32)
    written = codec.encode({"y": array}, is_row=False)
    found = json.loads(written)["outputs"]
    again = codec.from_json(found, TensorInfo(np.dtype(np.float32), array.shape), "y")
    np.testing.assert_array_equal(again, array)


@given(st.floats(width=32))
def test_a_float_is_written_with_the_digits_that_it_needs(value):
    text = codec.encode({"y": np.float32(value)}, is_row=False).decode()
    expected = twin.shortest_float(value)
    assert text == f'{{"outputs": {json.dumps(expected)}}}'
    assert any(mark in text for mark in (".", "e", "NaN", "Infinity"))


@given(st.lists(st.binary(max_size=5), max_size=4))
def test_bytes_come_back_as_they_were(values):
    array = np.array([*values, None], object)[:-1]
    (found,) = json.loads(codec.encode({"a_bytes": array, "b": array[:0]}, is_row=False)).values()
    assert found["a_bytes"] == [{"b64": base64.b64encode(x).decode()} for x in values]
    again = codec.from_json(found["a_bytes"], info("string", None), "x")
    assert again.tolist() == values


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=4))
def test_text_comes_back_as_it_was(values):
    array = np.array([*(x.encode() for x in values), None], object)[:-1]
    assert json.loads(codec.encode({"a": array}, is_row=False)) == {"outputs": values}


def test_base64_may_lack_padding_and_have_white_space():
    for text in ("YWI=", "YWI", "Y W\nI"):
        assert codec.from_json({"b64": text}, info("string"), "x").item() == b"ab"


def test_infinite_and_missing_numbers_are_tokens():
    body = b'{"instances": [NaN, Infinity, -Infinity, 1]}'
    request = decode(body, signature({"x": info("float32", None)}))
    np.testing.assert_array_equal(request.inputs["x"], [math.nan, math.inf, -math.inf, 1])
    written = codec.encode({"y": request.inputs["x"]}, is_row=True)
    assert written == b'{"predictions": [NaN, Infinity, -Infinity, 1.0]}'


def test_rows_and_columns_say_the_same():
    signatures = signature({"a": info("int64", None), "b": info("string", None, None)})
    rows = decode({"instances": [{"a": 1, "b": ["x", "y"]}, {"b": ["", "z"], "a": 2}]}, signatures)
    columns = decode({"inputs": {"a": [1, 2], "b": [["x", "y"], ["", "z"]]}}, signatures)
    assert rows.is_row and not columns.is_row and rows.num_rows == columns.num_rows == 2
    for name, value in rows.inputs.items():
        np.testing.assert_array_equal(value, columns.inputs[name])


def test_a_single_input_and_a_single_output_need_no_name():
    signatures = signature({"x": info("string", None)})
    for request in ({"instances": ["a", {"b64": "Yg=="}]}, {"inputs": ["a", "b"]}):
        assert decode(request, signatures).inputs["x"].tolist() == [b"a", b"b"]
    one = {"y": np.array([[1], [2]])}
    assert json.loads(codec.encode(one, is_row=True)) == {"predictions": [[1], [2]]}
    assert json.loads(codec.encode(one, is_row=False)) == {"outputs": [[1], [2]]}
    two = {**one, "z": np.array([True, False])}
    assert json.loads(codec.encode(two, is_row=True)) == {
        "predictions": [{"y": [1], "z": True}, {"y": [2], "z": False}]
    }
    assert json.loads(codec.encode(two, is_row=False)) == {
        "outputs": {"y": [[1], [2]], "z": [True, False]}
    }


def test_other_inputs_than_those_of_a_signature_are_refused_with_what_else_there_is():
    signatures = signature({"text": info("string", None)})
    wanted = "Item 0 of `instances` must have `text`"
    more = {"instances": [{"text": "a", "question": "b"}]}
    with pytest.raises(RequestError) as refused:
        decode(more, signatures)
    assert str(refused.value) == f"{wanted} and nothing else. Received: `question`, `text`."
    other = {"instances": [{"review": "a"}]}
    with pytest.raises(RequestError) as refused:
        codec.decode(other, signatures, ["examples"])
    assert str(refused.value) == (
        f"{wanted}. Received: `review`. Other inputs may be those of a signature that the request "
        "must name: `examples`."
    )
    name = next(iter(signatures))
    with pytest.raises(RequestError, match="Received: `review`.$"):
        codec.decode({**other, "signature_name": name}, signatures, ["examples"])


def test_a_signature_without_batches_takes_columns_alone():
    signatures = signature({"x": info("float32")}, {"y": info("float32")})
    request = decode({"inputs": 3}, signatures)
    assert request.inputs["x"] == 3 and request.num_rows == 1
    with pytest.raises(RequestError, match="give `inputs`, not `instances`"):
        decode({"instances": [3]}, signatures)
    with pytest.raises(RequestError, match="no common number of examples"):
        codec.encode({"y": np.float32(1)}, is_row=True)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([[1, 2], [3]], "must be int32 [?, 2]. Received: lists of 1 and of 2 side by side"),
        ([[1, 2, 3]], "must be int32 [?, 2]. Received: shape [1, 3]."),
        ([1, [2]], "Received: lists beside other values"),
        ([[1, True]], "Received: booleans."),
        ([[1, 2.5]], "Received: the number 2.5."),
        ([[1, 2**31]], "Received: the number 2147483648."),
        ([["1", None]], "Received: nulls and strings."),
    ],
)
def test_a_refusal_names_the_input_what_it_is_and_what_it_must_be(value, message):
    with pytest.raises(RequestError) as caught:
        decode({"inputs": value}, signature({"x": info("int32", None, 2)}))
    assert message in caught.value.message and caught.value.message.startswith("Input `x` must be")
