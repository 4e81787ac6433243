"""The server over real sockets: TensorFlow Serving's addresses, and what it refuses."""

import json

import pytest

from tests.serving.rest import clients, text_models

DOCUMENTS = ["The café is 🙂 old.", "It is 88 km long. It has 7 bridges."]
INSTANCE = {"question": "How long is it?", "documents": DOCUMENTS}


@pytest.fixture(scope="module")
def server(models):
    with clients.running(models["answer"]) as server:
        yield server


@pytest.fixture
def client(server):
    client = clients.Client(server)
    yield client
    client.close()


def test_an_answer_in_row_form(client):
    status, answer = client.predict({"signature_name": "answer", "instances": [INSTANCE]})
    assert status == 200
    (found,) = answer["predictions"]
    place = found["answer"], found["document"], found["start"], found["end"]
    assert place == text_models.answer_of(DOCUMENTS) == ("88", 1, 6, 8)
    assert found["probability"] == pytest.approx(1 / 3)
    names = ("document", "start", "end")
    columns = [*(found[f"evidence_{name}"] for name in names), found["evidence"]]
    assert list(zip(*columns, strict=True)) == text_models.sentences_of(DOCUMENTS)


def test_the_same_in_column_form_and_by_the_default_signature(client):
    _, rows = client.predict({"instances": [INSTANCE, INSTANCE]})
    inputs = {name: [value, value] for name, value in INSTANCE.items()}
    status, columns = client.predict({"inputs": inputs})
    assert status == 200
    assert columns["outputs"] == {
        name: [row[name] for row in rows["predictions"]] for name in rows["predictions"][0]
    }


def test_one_connection_serves_many_requests(client, server):
    before = server.num_answers
    for number in range(20):
        documents = ["." * number + f"{number}."]
        _, answer = client.predict({"instances": [{"question": "", "documents": documents}]})
        assert answer["predictions"][0]["answer"] == str(number)
    assert server.num_answers - before >= 19


@pytest.mark.parametrize("version", ["", "/versions/3"])
def test_status_and_metadata(client, version):
    status, answer = client.ask("GET", f"/v1/models/model{version}")
    (state,) = answer["model_version_status"]
    assert (status, state["version"], state["state"]) == (200, "3", "AVAILABLE")
    status, answer = client.ask("GET", f"/v1/models/model{version}/metadata")
    definitions = answer["metadata"]["signature_def"]["signature_def"]
    assert status == 200 and answer["model_spec"]["version"] == "3"
    assert definitions.keys() == {"serving_default", "answer", "attention"}
    assert definitions["answer"]["inputs"]["documents"]["dtype"] == "DT_STRING"
    assert client.ask("GET", "/healthz") == (200, {"status": "ok"})


def one(**changes):
    return {"instances": [{**INSTANCE, **changes}]}


BAD_REQUESTS = {
    "no JSON": (b"{", 400, "line 1, column 2"),
    "no object": ([1], 400, "must hold a JSON object"),
    "not UTF-8": (b'{"instances": ["\xff"]}', 400, "invalid UTF-8"),
    "too deep": (b'{"inputs": ' + b"[" * 200 + b"]" * 200 + b"}", 400, "nested deeper"),
    "empty": (b"", 400, "valid JSON"),
    "neither form": ({}, 400, "either `instances` or `inputs`"),
    "both forms": ({"instances": [INSTANCE], "inputs": {}}, 400, "both"),
    "no instance": ({"instances": []}, 400, "an item for each example"),
    "an unknown signature": ({"signature_name": "x", **one()}, 404, "the model has answer, att"),
    "a signature that is no name": ({"signature_name": 1, **one()}, 400, "must be a string"),
    "an input that lacks": ({"instances": [{"question": ""}]}, 400, "`documents`, `question`"),
    "an input too many": (one(other=1), 400, "`other`"),
    "numbers for text": (one(question=7), 400, "`question` must be string [?]. Received: numbers"),
    "text for a list": (one(documents="x"), 400, "string [?, ?]. Received: shape [1]"),
    "lists of two lengths": (
        {"instances": [INSTANCE, {**INSTANCE, "documents": []}]},
        400,
        "lists of 0 and of 2",
    ),
    "two numbers of examples": (
        {"inputs": {"question": ["", ""], "documents": [[""]]}},
        400,
        "same number of examples",
    ),
    "no base64": (one(question={"b64": "?"}), 400, "base64"),
    "half a surrogate pair": (
        b'{"inputs": {"question": ["\\ud800"], "documents": [[]]}}',
        400,
        "s",
    ),
    "bytes that are no text": (one(documents=[{"b64": "/zE="}]), 400, "is not UTF-8"),
    "what the model refuses": (one(question="impossible"), 400, "`question` holds what is imposs"),
    "too many examples": ({"instances": [INSTANCE] * 65}, 413, "64 examples. Received: 65"),
}


@pytest.mark.parametrize("name", BAD_REQUESTS)
def test_a_bad_request_is_told_in_a_sentence_and_the_server_lives(client, name):
    body, status, message = BAD_REQUESTS[name]
    found, answer = client.predict(body)
    assert found == status and answer.keys() == {"error"}
    assert message in answer["error"] and "\n" not in answer["error"]
    assert client.ask("GET", "/healthz")[0] == 200


def test_after_bad_requests_the_model_answers(client):
    for body, status, _ in BAD_REQUESTS.values():
        assert client.predict(body)[0] == status
    status, answer = client.predict(one())
    assert status == 200 and answer["predictions"][0]["answer"] == "88"


@pytest.mark.parametrize(
    ("method", "path", "status", "message"),
    [
        ("GET", "/v1/models/other", 404, "no model 'other'"),
        ("POST", "/v1/models/other:predict", 404, "no model 'other'"),
        ("POST", "/v1/models/model/versions/4:predict", 404, "no version 4"),
        ("POST", "/v1/models/model:classify", 404, "'classify'; this server has :predict"),
        ("GET", "/v2", 404, "POST /v1/models/model:predict"),
        ("POST", "//x/v1/models/model:predict", 404, "POST /v1/models/model:predict"),
        ("GET", "//x/healthz", 404, "POST /v1/models/model:predict"),
        ("GET", clients.PREDICT, 405, "Use POST here, not GET"),
        ("DELETE", "/v1/models/model", 405, "Use GET or HEAD here"),
        ("POST", "/", 405, "Use GET or HEAD here"),
        ("BREW", "/healthz", 405, "not BREW"),
    ],
)
def test_other_addresses_and_methods(client, method, path, status, message):
    found, answer = client.ask(method, path)
    assert found == status and message in answer["error"]
    assert (client.response.getheader("Allow") is not None) == (status == 405)
    assert client.ask("GET", "/healthz")[0] == 200


@pytest.mark.parametrize("address", ["http://localhost:8501", "http://localhost/", "/?x"])
def test_the_page_by_whole_urls(server, address):
    request = f"GET {address} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    assert clients.raw(server, request.encode()).startswith(b"HTTP/1.1 200 OK\r\n")


def test_head_has_no_body(client):
    assert client.ask("HEAD", "/healthz") == (200, None)
    assert client.response.getheader("Content-Length") == str(len(json.dumps({"status": "ok"})))
