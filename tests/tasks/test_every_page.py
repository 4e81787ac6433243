"""The commands and the Python of each task's page, run as they are written there."""

import collections
import json
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest

from etcmodel.reports import results
from etcmodel.tasks.coreference import metrics as coreference
from etcmodel.tasks.coreference import report as coreference_report
from etcmodel.tasks.majority_tagging import examples as majority_examples
from etcmodel.tasks.majority_tagging import predict as majority
from etcmodel.tasks.numerical_reasoning import examples as numerical_examples
from etcmodel.tasks.numerical_reasoning import metrics as numerical
from etcmodel.tasks.squad import examples as squad_examples
from etcmodel.tasks.squad import metrics as squad
from etcmodel.tasks.token_classification import report as token_report
from etcmodel.tasks.triviaqa import examples as triviaqa_examples
from etcmodel.tasks.triviaqa import metrics as triviaqa
from tests import page
from tests.tasks.coreference import small as voyages
from tests.tasks.record_sets import read_json, read_lines


class Page(NamedTuple):
    """What a task's page promises.

    Attributes:
        place: str. The page, and its section.
        made: str. The folder in which its commands put their files.
        run: str. The run below it, whose export its Python reads.
        check: function of (the folder, the metrics that were printed: list of dict).
        read: str. The place of the export as the Python names it; "": that of the commands.
    """

    place: str
    made: str
    check: Callable
    run: str = "model"
    read: str = ""


def classification(made, printed):
    predicted = {told["id"]: told["label"] for told in read_lines(made / "predictions.jsonl")}
    gold = {raw["id"]: raw["label"] for raw in read_lines(made / "classification_dev.jsonl")}
    assert predicted.keys() == gold.keys()
    right = sum(predicted[name] == label for name, label in gold.items())
    assert right / len(gold) >= 0.9  # By the last sentences alone, four of five are.


def coreference_of(made, printed):
    given = results.Given(str(made / "clusters.json"), str(made / "coreference_dev.jsonl"), {})
    found = coreference_report.read_results(given)
    raws = read_lines(made / "coreference_dev.jsonl")
    trivial = coreference.scores((raw["clusters"], voyages.one_cluster(raw)) for raw in raws)
    assert found.metrics["f1"] > trivial["f1"] + 0.2
    text = (made / "dev.conll").read_text(encoding="utf-8")
    assert text.count("#begin document") == text.count("#end document") == 50


def token_classification(made, printed):
    labels = read_json(made / "train.config.json")["labels"]
    files = (str(made / name) for name in ("tags.json", "token_classification_dev.jsonl"))
    found = token_report.read_results(results.Given(*files, {"labels": labels}))
    assert found.metrics["f1"] >= 0.9
    columns = (made / "dev.txt").read_text(encoding="utf-8").splitlines()
    assert {len(line.split()) for line in columns} == {0, 3}


def majority_tagging(made, printed):
    """With a memory it is learned, and without one it is not; sequences have any length."""
    with_memory, without = printed
    assert with_memory["exact_match"] >= 0.98 and with_memory["tag_accuracy"] >= 0.99
    assert without["exact_match"] <= 0.10 and 0.55 <= without["tag_accuracy"] <= 0.70
    assert with_memory["constant_exact_match"] == without["constant_exact_match"]
    assert 0.45 <= without["constant_exact_match"] <= 0.62
    assert read_json(made / "tags.json") == read_json(made / "with_memory" / "predictions.json")
    predictor = majority.MajorityPredictor(str(made / "with_memory" / "export"))
    rng = np.random.default_rng(0)
    raws = [{"id": str(x), "tokens": rng.integers(1, 3, x).tolist()} for x in (64, 50)]
    found = predictor.predict(raws)
    assert {name: len(tags) for name, tags in found.items()} == {"64": 64, "50": 50}
    assert found["64"] == majority_examples.majority_tags(raws[0]["tokens"]).tolist()


def numerical_reasoning(made, printed):
    """More is right than by the commonest number."""
    gold = list(numerical_examples.read_examples(str(made / "numerical_reasoning_dev.jsonl")))
    answers = collections.Counter(example.answer for example in gold)
    ((_, commonest),) = answers.most_common(1)
    assert printed[-1]["exact_match"] >= commonest / answers.total() + 0.1
    found = read_json(made / "answers.json")
    assert found == read_json(made / "run" / "predictions.json") and len(found) == 200
    assert numerical.metrics(gold, found) == printed[-1]


def summarization(made, printed):
    """The names are found behind the distance."""
    (found,) = printed
    assert found["rouge1"] >= 0.8 and found["rouge2"] >= 0.7  # By chance 0.09 and 0.01.
    raws = read_lines(made / "summarization_dev.jsonl")
    gold = {raw["article_id"]: raw["abstract_text"] for raw in raws}
    told = read_lines(made / "predictions.jsonl")
    assert [x["id"] for x in told] == list(gold)
    right = [[f"<S> {x['summary']} </S>"] == gold[x["id"]] for x in told]
    assert sum(right) / len(right) >= 0.6
    greedy = read_lines(made / "run" / "predictions.json")
    assert sum(x["summary"] == y["summary"] for x, y in zip(told, greedy, strict=True)) >= 90


def squad_of(made, printed):
    gold = list(squad_examples.read_examples(str(made / "squad_dev.json")))
    found = read_json(made / "answers.json")
    assert found == read_json(made / "model/predictions.json")
    assert squad.metrics(gold, found)["f1"] >= 0.8
    assert (made / "answers_null_odds.json").exists()


def triviaqa_of(made, printed):
    (metrics,) = printed
    assert metrics["em"] >= 0.9 and metrics["answered"] == 1.0
    gold = list(triviaqa_examples.read_examples(str(made / "triviaqa_dev.json")))
    found = read_json(made / "answers.json")
    assert found == read_json(made / "model/predictions.json")
    assert found.keys() == {example.example_id for example in gold}
    assert triviaqa.metrics(gold, found)["em"] >= 0.9
    details = read_lines(made / "answers_details.jsonl")
    assert {told["id"]: told["answer"] for told in details} == found
    names = {example.example_id: [x.name for x in example.pages] for example in gold}
    assert all(told["document"] in names[told["id"]] for told in details)
    scores = [[told["score"], *(x["score"] for x in told["others"])] for told in details]
    assert all(row == sorted(row, reverse=True) for row in scores)


PAGES = {
    "classification": Page(
        "classification.md", "try/classification", classification, read="runs/classification/export"
    ),
    "coreference": Page(
        "classification.md", "try/coref", coreference_of, read="runs/coreference/export"
    ),
    "majority_tagging": Page("gmat.md#majority-tagging", "try/tags", majority_tagging),
    "numerical_reasoning": Page("gmat.md#numerical-reasoning", "try/numbers", numerical_reasoning),
    "squad": Page("triviaqa.md#squad", "try/squad", squad_of, read="runs/squad/export"),
    "summarization": Page("summarization.md#the-program", "try/summaries", summarization),
    "token_classification": Page(
        "classification.md", "try/tags", token_classification, read="run/export"
    ),
    "triviaqa": Page("triviaqa.md", "try/triviaqa", triviaqa_of, read="runs/triviaqa/export"),
}
MARKS = {"classification": pytest.mark.slow}


@pytest.fixture(
    scope="module",
    params=[pytest.param(x, marks=MARKS.get(x, pytest.mark.exhaustive)) for x in PAGES],
)
def ran(request, tmp_path_factory):
    """(the page, the folder in which its commands ran, what they printed)."""
    found, folder = PAGES[request.param], tmp_path_factory.mktemp("page")
    having = f"dataset={request.param}"
    return found, folder, page.run_commands(found.place, folder, having)


def test_the_commands_reach_what_the_page_says(ran):
    found, folder, log = ran
    printed = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    found.check(folder / found.made, printed)


def test_the_python_reads_the_export(ran, capsys):
    found, folder, _ = ran
    if found.read:
        export = folder / found.made / found.run / "export"
        assert page.run_python(found.place, found.read, folder / "page", export)
        return
    names = {"__name__": "page"}
    with page.working_in(folder):
        for code in page.blocks(found.place):
            exec(compile(code, found.place, "exec"), names)  # The library's own page.
    check = {"tags": lambda x: len(x) == 5 and set(x) <= {1, 2}, "answer": lambda x: type(x) is str}
    told = [name for name in check if name in names]
    assert all(check[name](names[name]) for name in told)
    if not told:
        summary, left_out = capsys.readouterr().out.splitlines()
        assert summary and int(left_out) == 160 + 2 - 96
