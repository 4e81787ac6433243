"""Vectors of texts over HTTP: those of `TextEncoder`, in the server's format and in OpenAI's."""

import base64
import json
import re
import shutil
import subprocess

import numpy as np
import pytest

import etcmodel
from etcmodel.serving import rest
from etcmodel.tools import serve
from tests import page
from tests.checkpoints import test_text_encoder as encoders
from tests.serving.rest import clients
from tests.tools import test_serve

TEXTS = ["a b. c d! e", "g", "", "a b c d e f g h i j k l m n o p q r s", "e d"]
OPENAI = "/v1/embeddings"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = encoders.write_bert(tmp_path_factory.mktemp("made") / "bert")
    encoders.as_sentence_transformers(folder, max_seq_length=10)
    prompts = {"prompts": {"query": "q: "}}
    encoders.write_json(folder / "config_sentence_transformers.json", prompts)
    return folder


@pytest.fixture(scope="module")
def encoder(folder):
    return etcmodel.TextEncoder(folder)


@pytest.fixture(scope="module")
def client(encoder):
    with clients.running(rest.ServedEncoder(encoder), max_rows=8, max_batch_size=4) as server:
        client = clients.Client(server)
        yield client
        client.close()


def near(vectors):
    return pytest.approx(np.array(vectors), abs=1e-6)


@pytest.mark.parametrize(("name", "prompt"), [("embed", None), ("embed_query", "query")])
def test_vectors_are_those_of_the_encoder_in_the_order_of_the_texts(client, encoder, name, prompt):
    request = {"signature_name": name, "instances": [{"text": text} for text in TEXTS]}
    status, answer = client.predict(request)
    assert status == 200
    rows, wanted = answer["predictions"], encoder.encode_counted(TEXTS, prompt=prompt)
    assert np.array([row["vector"] for row in rows]) == near(wanted.vectors)
    assert [row["num_tokens"] for row in rows] == wanted.num_tokens.tolist()
    assert [row["num_cut"] for row in rows] == wanted.num_cut.tolist()
    begin = 2 * bool(prompt)  # "q" and ":".
    sizes = [begin + len(re.findall(r"\S", text)) for text in TEXTS]
    assert wanted.num_tokens.tolist() == [min(size + 2, 10) for size in sizes]
    assert wanted.num_cut.tolist() == [max(size - 8, 0) for size in sizes]


def test_clients_of_openai_are_answered(client, encoder):
    status, answer = client.ask("POST", OPENAI, {"input": TEXTS, "model": "model"})
    assert status == 200
    wanted = encoder.encode_counted(TEXTS)
    assert [item["index"] for item in answer["data"]] == [*range(len(TEXTS))]
    assert np.array([x["embedding"] for x in answer["data"]]) == near(wanted.vectors)
    count = int(wanted.num_tokens.sum())
    assert answer["usage"] == {"prompt_tokens": count, "total_tokens": count}
    _, listed = client.ask("GET", "/v1/models")
    assert [model["id"] for model in listed["data"]] == [answer["model"]] == ["model"]
    one = {"input": TEXTS[0], "encoding_format": "base64", "dimensions": encoder.size}
    _, answer = client.ask("POST", OPENAI, one)
    (item,) = answer["data"]
    numbers = np.frombuffer(base64.b64decode(item["embedding"]), "<f4")
    assert numbers == near(wanted.vectors[0])


@pytest.mark.parametrize(
    ("request_", "status", "message"),
    [
        ({"input": [1, 2]}, 400, "not of token ids"),
        ({"input": []}, 400, "`input` must be"),
        ({"inputs": ["a"]}, 400, "Unknown: `inputs`"),
        ({"input": "a", "dimensions": 3}, 400, "`dimensions` must be 8"),
        ({"input": "a", "encoding_format": []}, 400, "`encoding_format`"),
        ({"input": "a", "model": "other"}, 404, "no model 'other'"),
        ({"input": ["a"] * 9}, 413, "8 examples"),
        ({"input": "\ud800"}, 400, "surrogate"),
    ],
)
def test_a_wrong_request_is_told(client, request_, status, message):
    found, answer = client.ask("POST", OPENAI, request_)
    assert found == status and message in answer["error"]["message"]
    assert answer["error"]["type"] == "invalid_request_error"


def test_the_signatures_are_described(client):
    _, answer = client.ask("GET", "/v1/models/model/metadata")
    definitions = answer["metadata"]["signature_def"]["signature_def"]
    assert definitions.keys() == {"serving_default", "embed", "embed_query"}
    found = definitions["embed"]["outputs"]["vector"]
    assert found["dtype"] == "DT_FLOAT"
    assert [x["size"] for x in found["tensor_shape"]["dim"]] == ["-1", "8"]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_the_commands_of_the_page(encoder):
    """The texts are the page's; the encoder, one of letters."""
    (block,) = re.findall(r"```sh\n(.*?)```", page.read("serving.md#vectors-of-texts"), re.DOTALL)
    start, *asked = re.split(r"\n(?=curl )", block)
    flags = start.replace("all-MiniLM-L6-v2", encoder.folder).split()
    answers = []
    with test_serve.running("etcmodel.tools.serve", *flags[2:]) as (_, address):
        for command in asked:
            command = command.replace(test_serve.ADDRESS, address)
            done = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
            answers.append(json.loads(done.stdout))
    rows, listed = answers[0]["predictions"], answers[1]["data"]
    wanted = encoder.encode(["The river is long.", "A long river."])
    assert np.array([row["vector"] for row in rows]) == near(wanted)
    assert np.array([listed[0]["embedding"]]) == near(wanted[:1])


def test_an_encoder_s_folder_is_no_export(folder):
    with pytest.raises(ValueError, match=r"no export, but an encoder of vectors: add --embed\."):
        serve.served_model(serve.ServeOptions(model_dir=str(folder)))
    with pytest.raises(ValueError, match="--examples_file is of exports"):
        serve.ServeOptions(model_dir=str(folder), embed=True, examples_file="a.json")
