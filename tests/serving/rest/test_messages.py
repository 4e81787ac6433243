"""The server's JSON beside the messages of TensorFlow Serving's clients."""

import base64

import numpy as np
import pytest
import tensorflow as tf
from google.protobuf import json_format
from tensorflow_serving.apis import (
    get_model_metadata_pb2,
    get_model_status_pb2,
    predict_pb2,
)

from etcmodel.serving import saved_model
from tests.serving.rest import clients

DOCUMENTS = [["The café is 🙂 old.", "It is 88 km long. It has 7 bridges."], ["1", ""]]


@pytest.fixture
def client(server):
    client = clients.Client(server)
    yield client
    client.close()


def predict_request():
    """What a client of TensorFlow Serving's other interface sends."""
    request = predict_pb2.PredictRequest()
    request.model_spec.name = "model"
    request.model_spec.version.value = 3
    request.model_spec.signature_name = "answer"
    for name, value in (("question", ["How long?", ""]), ("documents", DOCUMENTS)):
        request.inputs[name].CopyFrom(tf.make_tensor_proto(value))
    return predict_pb2.PredictRequest.FromString(request.SerializeToString())


def address_of(spec):
    return f"/v1/models/{spec.name}/versions/{spec.version.value}:predict"


def json_of(tensor):
    """Nested lists of a `TensorProto`; strings are sent as bytes."""
    array = tf.make_ndarray(tensor)
    if array.dtype != object:
        return array.tolist()
    encoded = [{"b64": base64.b64encode(x).decode()} for x in array.ravel()]
    return np.array([*encoded, None], object)[:-1].reshape(array.shape).tolist()


def test_a_predict_request_gets_the_predict_response_of_the_signature(client, models):
    request = predict_request()
    expected = predict_pb2.PredictResponse()
    tensors = {name: tf.make_ndarray(value) for name, value in request.inputs.items()}
    for name, value in models["answer"]("answer", tensors).items():
        expected.outputs[name].CopyFrom(tf.make_tensor_proto(value))

    status, answer = client.ask(
        "POST",
        address_of(request.model_spec),
        {
            "signature_name": request.model_spec.signature_name,
            "inputs": {name: json_of(value) for name, value in request.inputs.items()},
        },
    )
    assert status == 200
    found = predict_pb2.PredictResponse()
    for name, value in answer["outputs"].items():
        dtype = tf.dtypes.as_dtype(expected.outputs[name].dtype)
        found.outputs[name].CopyFrom(tf.make_tensor_proto(value, dtype))
    assert found.SerializeToString(deterministic=True) == expected.SerializeToString(
        deterministic=True
    )


def test_the_status_is_a_status_message(client):
    _, answer = client.ask("GET", "/v1/models/model")
    message = json_format.ParseDict(answer, get_model_status_pb2.GetModelStatusResponse())
    (state,) = message.model_version_status
    assert state.version == 3
    assert state.state == get_model_status_pb2.ModelVersionStatus.AVAILABLE
    assert state.status.error_code == 0


def test_the_metadata_are_the_signature_definitions_of_the_file(client, exports):
    _, answer = client.ask("GET", "/v1/models/model/metadata")
    message = json_format.ParseDict(
        answer["metadata"]["signature_def"], get_model_metadata_pb2.SignatureDefMap()
    )
    (graph,) = saved_model.read_graphs(exports["answer"]).meta_graphs
    names = {"serving_default", "answer", "attention"}
    assert set(message.signature_def) == names
    for name in names:
        assert message.signature_def[name] == graph.signature_def[name]
    assert answer["model_spec"] == {"name": "model", "signature_name": "", "version": "3"}
