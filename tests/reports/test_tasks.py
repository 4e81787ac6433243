"""Reports of all tasks: scores, comparisons, what is right, and where the evidence stands."""

import dataclasses
import importlib
import json
import pathlib

import lxml.html
import pytest

from etcmodel import bounded_json
from etcmodel.reports import page, results
from tests.reports import task_files

# What half of the answers being right gives, by the task's best metric.
METRICS = {
    "classification": ("accuracy", 0.5),
    "hotpotqa": ("f1", 0.5),
    "majority_tagging": ("tag_accuracy", 0.5),
    "numerical_reasoning": ("exact_match", 0.5),
    "squad": ("f1", 0.5),
    "triviaqa": ("f1", 0.5),
    "wikihop": ("accuracy", 0.5),
}
WITH_PLACES = {"hotpotqa", "majority_tagging", "nq", "openkp", "squad", "triviaqa", "wikihop"}
# Predictions of examples that no gold file has.
OTHERS = {
    "classification": '{"id": "x", "label": "hold", "probabilities": {}}',
    "coreference": '{"x": {"clusters": []}}',
    "hotpotqa": '{"answer": {"x": "y"}, "sp": {}}',
    "majority_tagging": '{"x": [1]}',
    "nq": '{"predictions": [{"example_id": 5, "long_answer_score": 1, "short_answers_score": 1}]}',
    "numerical_reasoning": '{"x": "y"}',
    "openkp": '{"url": "x", "KeyPhrases": [["y"]]}',
    "squad": '{"x": "y"}',
    "summarization": '{"id": "x", "summary": "y"}',
    "token_classification": '{"x": {"tags": []}}',
    "triviaqa": '{"x": "y"}',
    "wikihop": '{"x": "y"}',
}


@pytest.fixture(scope="module", params=sorted(task_files.PREDICTIONS))
def made(request, tmp_path_factory):
    """(task, its `Given`)."""
    task = request.param
    folder = tmp_path_factory.mktemp(task)
    gold, predictions = task_files.make(task, folder)
    evidence = str(folder / "evidence") if task == "triviaqa" else None
    options = task_files.OPTIONS.get(task, {})
    return task, results.Given(predictions, gold, options, evidence)


@pytest.fixture(scope="module")
def read(made):
    """(task, its `Results`)."""
    return made[0], read_results(*made)


def read_results(task, given):
    return importlib.import_module(f"etcmodel.tasks.{task}.report").read_results(given)


def test_every_second_answer_is_right_and_scores_follow(read):
    task, found = read
    assert [item.is_right for item in found.items] == [True, False] * (task_files.COUNT // 2)
    if task in METRICS:
        name, value = METRICS[task]
        assert found.best_metric == name
        assert found.metrics[name] == pytest.approx(value)
    for item in found.items:
        if item.score is not None and task != "openkp":
            assert (item.score == pytest.approx(1)) == item.is_right


def test_the_comparison_has_the_same_scores_and_is_no_better(read):
    _, found = read
    ((name, baseline),) = found.baselines.items()
    assert name
    assert set(baseline) <= set(found.metrics)
    assert 0 <= baseline[found.best_metric] <= 1


def test_places_are_shares_of_the_input(read):
    task, found = read
    assert (found.places is not None) == (task in WITH_PLACES)
    if found.places:
        assert found.places.points
        assert all(0 <= place <= 1 and 0 <= score <= 1 for place, score in found.places.points)


def test_the_page_shows_the_numbers_and_the_answers(read):
    _, found = read
    tree = lxml.html.fromstring(page.render(title="A report", results=found))
    (main,) = tree.xpath("//section[@id='scores']//tr[@class='main']")
    shown = [cell.text_content() for cell in main.xpath("td")]
    values = [found.metrics, *found.baselines.values()]
    assert shown == [f"{100 * x[found.best_metric]:.1f} %" for x in values]
    assert tree.xpath("string(//p[@class='figure'])") == shown[0]
    articles = tree.xpath("//article")
    assert [x.get("class") for x in articles] == ["right", "wrong"] * (task_files.COUNT // 2)
    for article, item in zip(articles, found.items, strict=True):
        assert article.xpath("string(h3)").strip() == item.question.strip()
        told, gold = (article.xpath(f"string(dl/dd[{i}])") for i in (1, 2))
        assert told[2:] == (item.prediction or "(none)")
        assert gold == item.gold


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("educated_at rhea abelin", "educated at: rhea abelin"),
        ("country mount rainier", "country: mount rainier"),
        ("interacts_with DB00773?", "interacts with: DB00773?"),
        ("Where is Mount Rainier?", "Where is Mount Rainier?"),
        ("genre", "genre"),
    ],
)
def test_queries_are_told_in_words(query, told):
    from etcmodel.tasks.wikihop import report

    assert report.in_words(query) == told


def test_facts_are_told_apart(tmp_path):
    from etcmodel.tasks.hotpotqa import report

    example = {
        "_id": "a",
        "question": "What is the home of Ilse made of?",
        "answer": "oak",
        "supporting_facts": [["Ilse", 0], ["Tarn", 1]],
        "context": [["Ilse", ["At Tarn.", "Born."]], ["Tarn", ["Old. ", "Of oak."]]],
    }
    gold, predictions = tmp_path / "gold.json", tmp_path / "predictions.json"
    gold.write_text(json.dumps([example]))
    told = {"answer": {"a": "pine"}, "sp": {"a": [["Ilse", 1], ["Tarn", 1]]}}
    predictions.write_text(json.dumps(told))
    found = report.read_results(results.Given(str(predictions), str(gold)))
    assert [x.sentences for x in found.items[0].passages] == [
        (("missed", "At Tarn."), ("wrong", "Born.")),
        (("plain", "Old. "), ("correct", "Of oak.")),
    ]
    assert found.metrics["sp_f1"] == 0.5
    length = len("At Tarn.Born.Old. Of oak.")
    assert found.places.points == ((len("At Tarn.Born.Old. ") / length, 0.0),)


def test_pages_that_the_file_lacks_count_as_in_an_evaluation(tmp_path):
    from etcmodel.tasks.openkp import report

    gold, predictions = task_files.make("openkp", tmp_path)
    whole = report.read_results(results.Given(predictions, gold))
    found = report.read_results(results.Given(predictions, gold, removed=0.25))
    assert whole.metrics["f1@3"] > 0
    (name,) = whole.baselines
    pairs = (whole.metrics, found.metrics), (whole.baselines[name], found.baselines[name])
    for one, other in pairs:
        assert other == pytest.approx({key: 0.75 * value for key, value in one.items()})


def test_one_file_of_several_of_nq_is_enough(tmp_path):
    gold, predictions = map(pathlib.Path, task_files.make("nq", tmp_path))
    lines = gold.read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / "dev-0.jsonl").write_text("".join(lines[:3]), encoding="utf-8")
    (tmp_path / "dev-1.jsonl").write_text("".join(lines[3:]), encoding="utf-8")
    given = results.Given(str(predictions), str(tmp_path / "dev-*.jsonl"))
    both = read_results("nq", given)
    assert both == read_results("nq", dataclasses.replace(given, eval_gold=str(gold)))
    first = read_results("nq", dataclasses.replace(given, eval_gold=f"{tmp_path}/dev-0.jsonl"))
    assert first.items == both.items[:3]


def test_predictions_of_another_task_are_refused(tmp_path):
    gold, _ = task_files.make("openkp", tmp_path)
    other = tmp_path / "other.json"
    other.write_text('{"id": "x"}')
    from etcmodel.tasks.openkp import report

    with pytest.raises(ValueError, match="line 1 must be a JSON object with url, KeyPhrases"):
        report.read_results(results.Given(str(other), gold))


def test_predictions_of_other_examples_are_refused(made, tmp_path):
    task, given = made
    other = tmp_path / "other.json"
    other.write_text(OTHERS[task])
    problem = "no prediction is of a|predictions are of examples that the gold file lacks"
    with pytest.raises(ValueError, match=problem):
        read_results(task, dataclasses.replace(given, predictions_file=str(other)))


def test_answers_must_be_of_the_tasks_type():
    with pytest.raises(ValueError, match="p.json: the prediction of 'b' must be a text. Give"):
        results.check_answers({"a": "x", "b": [1]}, ["a", "b"], "p.json")
    results.check_answers({"a": [1], "of another file": 3}, ["a", "b"], "p.json", list)


def test_predictions_may_be_larger_than_foreign_files(tmp_path, monkeypatch):
    monkeypatch.setattr(bounded_json, "MAX_BYTES", 8)
    path = tmp_path / "predictions.json"
    path.write_text('{"a": "a long answer"}')
    assert results.read_object(str(path)) == {"a": "a long answer"}


def test_answers_of_triviaqa_by_document_are_known_by_their_keys(tmp_path):
    gold, _ = task_files.make("triviaqa", tmp_path)
    (first, *others) = json.loads(pathlib.Path(gold).read_text(encoding="utf-8"))["Data"]
    page = first["EntityPages"][0]["Filename"]
    told = {f"{first['QuestionId']}--{page}": first["Answer"]["NormalizedAliases"][0]}
    predictions = tmp_path / "by_document.json"
    predictions.write_text(json.dumps(told))
    found = read_results("triviaqa", results.Given(str(predictions), gold))
    assert found.noun == "questions with a document"
    right = {item.key for item in found.items if item.is_right}
    assert right == set(told) and len(found.items) > len(others)


def test_answers_of_triviaqa_are_marked_as_the_document_writes_them(tmp_path):
    gold, predictions = map(pathlib.Path, task_files.make("triviaqa", tmp_path))
    raw = json.loads(gold.read_text(encoding="utf-8"))
    raw["Data"] = raw["Data"][:1]
    (example,) = raw["Data"]
    example["Answer"].update(
        Value="St. John's", NormalizedValue="st john s", NormalizedAliases=["st john s"]
    )
    gold.write_text(json.dumps(raw), encoding="utf-8")
    predictions.write_text(json.dumps({example["QuestionId"]: "the St John's"}))
    evidence = tmp_path / "evidence"
    for path in filter(pathlib.Path.is_file, evidence.rglob("*")):
        path.write_text("He saw St. John's, the St John's of old. A saint, John.")
    given = results.Given(str(predictions), str(gold), evidence_dir=str(evidence))
    found = read_results("triviaqa", given)
    assert found.items[0].is_right
    tree = lxml.html.fromstring(page.render(title="t", results=found))
    marks = tree.xpath("//article//details//mark/text()")
    assert marks == ["St. John's", "the St John's"] * len(found.items[0].passages)


def test_classification_tells_what_is_missing(tmp_path):
    gold, predictions = task_files.make("classification", tmp_path)
    with pytest.raises(ValueError, match="also needs --run: its options name the labels"):
        read_results("classification", results.Given(predictions, gold))
    options = {"labels": ["hold", "pass", "third"]}
    with pytest.raises(ValueError, match="`probabilities` must have a number for each"):
        read_results("classification", results.Given(predictions, gold, options))


def classified(tmp_path, rows, ids=None, **options):
    """The results of (label, probabilities by label) of each text; ids are numbers by default."""
    gold, predictions = tmp_path / "gold.jsonl", tmp_path / "predictions.jsonl"
    ids = ids or [str(number) for number in range(len(rows))]
    raw = [{"id": i, "text": f"<b>{i}", "label": x} for i, (x, _) in zip(ids, rows, strict=True)]
    told = []
    for number, (_, shares) in enumerate(rows):
        several = [label for label, share in shares.items() if share > 0.5]
        label = max(shares, key=shares.get)
        told.append({"id": ids[number], "label": label, "labels": several, "probabilities": shares})
    for path, lines in ((gold, raw), (predictions, told)):
        path.write_text("".join(json.dumps(x) + "\n" for x in lines))
    return read_results(
        "classification",
        results.Given(str(predictions), str(gold), {"labels": ["neg", "pos"], **options}),
    )


def test_classification_leaves_out_texts_of_one_id_with_different_predictions(tmp_path, caplog):
    neg, pos = {"neg": 0.75, "pos": 0.25}, {"neg": 0.25, "pos": 0.75}
    rows = [("neg", neg), ("pos", pos), ("pos", neg), ("neg", neg)]
    found = classified(tmp_path, rows, ids=["a", "a", "b", "c"])  # "a" may be a customer.
    assert found.metrics["accuracy"] == 0.5
    assert [item.is_right for item in found.items] == [False, True]
    assert "1 ids, such as 'a', have several different predictions. Their texts are left" in (
        caplog.text
    )
    # A row that stands twice needs no warning.
    caplog.clear()
    found = classified(tmp_path, [rows[0], rows[0], rows[2]], ids=["a", "a", "b"])
    assert found.metrics["accuracy"] == pytest.approx(2 / 3) and not caplog.text


def test_classification_shows_each_label_and_the_surest_mistakes(tmp_path):
    def sure(share):
        return {"neg": 1 - share, "pos": share}

    rows = [("pos", sure(0.9)), ("neg", sure(0.6)), ("neg", sure(0.95)), ("neg", sure(0.2))]
    found = classified(tmp_path, rows)
    by_label, confusion, mistakes = found.tables
    assert by_label.rows == (
        ("neg", "100.0 %", "33.3 %", "50.0 %", "1", "3"),
        ("pos", "33.3 %", "100.0 %", "50.0 %", "3", "1"),
    )
    assert confusion.columns == ("actual", "neg", "pos")
    assert confusion.rows == (("neg", "1", "2"), ("pos", "0", "1"))
    assert mistakes.rows == (
        ("2", "pos", "neg", "95.0 %", "<b>2"),
        ("1", "pos", "neg", "60.0 %", "<b>1"),
    )
    tree = lxml.html.fromstring(page.render(title="t", results=found))
    assert tree.xpath("//section[h2='Most confident mistakes']//tbody/tr[1]/td[last()]/text()") == [
        "<b>2"
    ]
    several = [(["pos"], {"neg": 0.9, "pos": 0.2}), ([], {"neg": 0.1, "pos": 0.1})]
    by_label, mistakes = classified(
        tmp_path, several, problem_type="multi_label_classification"
    ).tables
    assert by_label.rows == (
        ("neg", "0.0 %", "0.0 %", "0.0 %", "1", "0"),
        ("pos", "0.0 %", "0.0 %", "0.0 %", "0", "1"),
    )
    assert [row[:4] for row in mistakes.rows] == [
        ("0", "neg", "pos", "90.0 %"),
        ("0", "not pos", "pos", "80.0 %"),
    ]
