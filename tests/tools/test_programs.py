"""The demos, the ablations and the benchmark as they are: two steps of small models."""

import http.client
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

from etcmodel.tools import served_demo
from etcmodel.tools.demos import region
from tests.tools import test_serve
from tests.warm import python as warm

pytestmark = pytest.mark.slow

ROOT = pathlib.Path(__file__).parents[2]
# What TensorFlow says of itself: in C++, in Abseil, in Python.
NOISE = re.compile(
    r".*\.(?:cc|h|cpp):\d+\] .*|.*absl::InitializeLog.*|INFO:tensorflow:.*"
    r"|.* (?:legacy_adamw|functional_saver|builder_impl|signature_serialization"
    r"|function_deserialization|fingerprinting_utils)\.py:\d+\] .*"
)


def run(program, *, python=None, **arguments):
    """Runs a program of `etcmodel.tools` or `benchmarks` as users do; returns what it printed."""
    module = program if program.startswith("benchmarks.") else f"etcmodel.tools.{program}"
    flags = [f"--{name}={value}" for name, value in arguments.items()]
    environment = {k: v for k, v in os.environ.items() if k != "TF_CPP_MIN_LOG_LEVEL"}
    done = subprocess.run(
        [python or warm.python(), "-m", module, *flags],
        capture_output=True,
        text=True,
        env=environment,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    assert not NOISE.findall(done.stderr)
    return done.stdout


def read_lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def steps_of(folder):
    return [line["step"] for line in read_lines(folder / "train_metrics.jsonl")]


def closing_figures(output, name):
    """The figures of the last line, such as "demo: f1=0.5 seconds=3"."""
    last = output.rstrip().splitlines()[-1]
    assert last.startswith(f"{name}: "), last
    return {k: float(v) for k, v in re.findall(r"(\w+)=([\d.]+)", last)}


def test_the_demo_goes_from_data_to_a_report(tmp_path):
    folder = tmp_path / "demo"
    output = run(
        "run_demo",
        output_dir=folder,
        num_train=64,
        num_dev=4,
        num_train_epochs=1,
        num_hidden_layers=1,
    )
    runs = [folder / name for name in ("model", "without_structure")]
    assert [steps_of(path) for path in runs] == [[2], [2]]
    evaluations = [read_lines(path / "eval_metrics.jsonl") for path in runs]
    figures = closing_figures(output, "demo")
    accuracies = [evaluation["accuracy"] for (evaluation,) in evaluations]
    assert [figures["score"], figures["without_structure"]] == pytest.approx(accuracies)
    assert 0 <= figures["baseline"] <= 1 and figures["seconds"] > 0
    assert len(json.loads((folder / "predictions.json").read_text())) == 4
    told = f"{100 * figures['score']:.0f} % right with structure"
    assert told in output and told in (folder / "report.html").read_text("utf-8")
    check_served(folder, output)
    # The runs have one option that differs.
    first, second = (json.loads((path / "run_config.json").read_text())["task"] for path in runs)
    differing = {name for name in first if first[name] != second[name]}
    assert differing == {"enable_l2g_linking"}


def check_served(folder, output):
    """The command at the end of the demo serves a page with its questions, and answers them."""
    command = f"etcmodel serve --model_dir={folder}/model/export --examples_file={folder}/questions"
    assert f"\n$ {command}.json\n" in output
    question = json.loads((folder / "questions.json").read_text())[-1]
    expected = json.loads((folder / "predictions.json").read_text())[question["id"]]
    body = json.dumps({"signature_name": "examples", "instances": [question]})
    with test_serve.running(*f"{command}.json".split()) as (_, address):
        client = http.client.HTTPConnection(address)
        client.request("POST", "/v1/models/model:predict", body)
        (prediction,) = json.loads(client.getresponse().read())["predictions"]
        client.request("GET", "/")
        page = client.getresponse().read().decode()
        client.close()
    assert prediction["answer"] == expected
    assert [candidate for candidate, _ in prediction["probabilities"]] == question["candidates"]
    assert '"kind":"choose"' in page and question["query"] in page


@pytest.mark.exhaustive
def test_the_served_demo_exports_a_model_that_answers(tmp_path):
    folder = tmp_path / "demo"
    output = run(
        "served_demo",
        output_dir=folder,
        num_train=32,
        num_long_train=16,
        num_dev=4,
        num_hidden_layers=1,
    )
    assert "step 3 of 3: loss=" in output
    assert f"$ etcmodel serve --model_dir={folder / 'served'}\n" in output
    figures = closing_figures(output, "served demo")
    names = ("em", "f1", "evidence_em", "evidence_f1", "baseline_em", "baseline_f1")
    assert all(0 <= figures[name] <= 1 for name in names) and figures["seconds"] > 0
    (example,) = region.make_examples(split="dev", num_examples=1, seed=5)
    ((answer,), (evidence,)) = served_demo.ask(folder / "served" / "1", [example])
    assert answer and any(answer in text for text in example["documents"])
    assert all(example["documents"][document][start].isupper() for document, start in evidence)


@pytest.fixture
def text(tmp_path):
    """Documents of ten sentences each."""
    sentence = "The miller of Tarn Hollow grinds the grain of number {} in the mill by the river."
    for number in range(40):
        sentences = [sentence.format(10 * number + i) for i in range(10)]
        (tmp_path / f"text_{number}.txt").write_text(" ".join(sentences) + "\n")
    return tmp_path / "text_*.txt"


@pytest.mark.exhaustive
def test_the_pretraining_demo_compares_with_and_without(tmp_path, text):
    folder = tmp_path / "demo"
    output = run(
        "run_pretrain_demo",
        output_dir=folder,
        text_pattern=text,
        num_train=32,
        num_dev=4,
        num_train_epochs=1,
        num_pretrain_epochs=2,
        num_hidden_layers=1,
    )
    assert steps_of(folder / "from_pretrained") == steps_of(folder / "not_pretrained") == [2]
    (pretraining,) = read_lines(folder / "pretrained" / "eval_metrics.jsonl")
    assert pretraining["step"] >= 1
    figures = closing_figures(output, "pretrain demo")
    assert figures["mlm_accuracy"] == pytest.approx(pretraining["mlm_accuracy"], abs=5e-4)
    (alone,) = read_lines(folder / "not_pretrained" / "eval_metrics.jsonl")
    assert figures["answer_f1_alone"] == pytest.approx(alone["f1"], abs=5e-4)
    # The same fine-tuning from other weights.
    (loss,), (loss_alone,) = (
        [line["loss"] for line in read_lines(folder / name / "train_metrics.jsonl")]
        for name in ("from_pretrained", "not_pretrained")
    )
    assert loss != loss_alone
    assert (folder / "curves.png").stat().st_size > 1000


@pytest.mark.exhaustive
def test_the_ablations_fill_their_table_and_go_on_where_they_were(tmp_path):
    arguments = {
        "output_dir": tmp_path / "ablations",
        "num_train": 64,
        "num_dev": 4,
        "num_pretrain_epochs": 4,
        "num_train_epochs": 1,
        "seeds": 3,
        "num_hidden_layers": 1,
    }
    # Truly started: what TensorFlow says then is kept back, too.
    first = run("ablations", python=sys.executable, variant="no pre-training", **arguments)
    folder = tmp_path / "ablations"
    (result,) = read_lines(folder / "results.jsonl")
    assert result["variant"] == "no pre-training" and result["seed"] == 3
    row = f"| no pre-training | {result['accuracy']:.3f} | {result['accuracy']:.3f} |"
    assert row in first.splitlines()
    second = run("ablations", variant="no CPC", **arguments)
    assert row in second.splitlines() and "| no CPC | " in second
    assert len(read_lines(folder / "results.jsonl")) == 2
    runs = [path.parent for path in folder.glob("finetuned_*/train_metrics.jsonl")]
    assert [steps_of(path) for path in runs] == [[2], [2]]


@pytest.mark.exhaustive
def test_the_benchmark_measures_and_reports(tmp_path):
    output = run(
        "benchmark",
        output_dir=tmp_path,
        lengths=32,
        rounds=1,
        clock="processor",
        num_hidden_layers=1,
        hidden_size=64,
    )
    figures = json.loads((tmp_path / "results.json").read_text())
    found = {(figure["model"], figure["phase"], figure["length"]) for figure in figures}
    assert found == {
        (model, phase, 32)
        for model, phases in {
            "etc": ("forward", "train"),
            "etc bfloat16": ("forward",),
            "etc checkpointed": ("train",),
            "bert": ("forward", "train"),
        }.items()
        for phase in phases
    }
    for figure in figures:
        assert len(figure["seconds_all"]) == 1 and figure["seconds"] > 0
        assert figure["peak_bytes"] > 1e8
        if figure["model"].startswith("etc"):
            work = figure["flops"] / figure["seconds"]
            assert figure["share"] > 0
            # The speeds are of the machine at that time.
            speeds = figure["matmul_flops_per_second"].values()
            assert any(figure["share"] == pytest.approx(work / speed) for speed in speeds)
    assert len(output.strip().splitlines()) == 2 + len(figures)
    assert (tmp_path / "results.png").stat().st_size > 1000


@pytest.mark.parametrize(
    ("comparison", "names"),
    [("dilation", "dilation 4 / dilation 1"), ("gmat", "GMAT / BERT on chunks")],
)
@pytest.mark.exhaustive
def test_two_systems_take_turns_and_their_ratio_is_told(comparison, names, tmp_path):
    sizes = {"num_hidden_layers": 1, "hidden_size": 64, "window": 8, "rounds": 1}
    output = run(
        "benchmarks.peers", comparisons=comparison, lengths="32", output_dir=tmp_path, **sizes
    )
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in output.splitlines()]
    found = [row[:3] for row in rows[2:]]
    assert found == [[f"{comparison}: {names}", "32", phase] for phase in ("forward", "train")]
    for _, _, _, seconds, of_other, ratio, *_ in rows[2:]:
        assert float(ratio) == pytest.approx(float(seconds) / float(of_other), rel=0.02)
    figures = json.loads((tmp_path / "results.json").read_text())
    assert [figure["phase"] for figure in figures] == ["forward", "train"]
    assert (tmp_path / "results.png").stat().st_size > 1000
