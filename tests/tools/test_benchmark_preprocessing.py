"""The benchmark does all of the task's work, and reports rates that follow from its figures."""

import json

import pytest

from etcmodel.tasks.hotpotqa import examples
from etcmodel.tools import benchmark_preprocessing as benchmark
from etcmodel.tools import make_demo_data


def test_every_generated_example_is_read_and_converted(tmp_path):
    paths = make_demo_data.make_demo_data(
        dataset="hotpotqa", output_dir=str(tmp_path), num_train=12, num_dev=1, seed=5
    )
    measured = benchmark.measure("hotpotqa", num_examples=12, seed=5)
    assert measured.num_examples == len(list(examples.read_examples(paths["train"]))) == 12
    assert measured.num_records == 12
    with open(paths["train"], "rb") as file:
        assert measured.megabytes == len(file.read()) / 1e6
    assert measured.seconds > 0


def test_a_slower_conversion_takes_longer(monkeypatch):
    clock = iter([100.0, 104.0])
    monkeypatch.setattr(benchmark.time, "perf_counter", lambda: next(clock))
    measured = benchmark.measure("hotpotqa", num_examples=8)
    assert measured.seconds == 4
    assert measured.examples_per_second == 2
    assert measured.megabytes_per_second == measured.megabytes / 4


def test_the_table_and_the_dict_state_rates():
    one = benchmark.Measurement(
        dataset="hotpotqa", num_examples=50, num_records=100, megabytes=3.0, seconds=4.0
    )
    other = benchmark.Measurement(
        dataset="x", num_examples=1, num_records=0, megabytes=0.5, seconds=0.1
    )
    assert benchmark.table([one, other]).splitlines() == [
        " dataset  examples  records    MB     s  examples/s  MB/s",
        "hotpotqa        50      100  3.00  4.00        12.5  0.75",
        "       x         1        0  0.50  0.10        10.0  5.00",
    ]
    assert one.to_dict() == {
        "dataset": "hotpotqa",
        "num_examples": 50,
        "num_records": 100,
        "megabytes": 3.0,
        "seconds": 4.0,
        "examples_per_second": 12.5,
        "megabytes_per_second": 0.75,
    }


@pytest.mark.parametrize("dataset", sorted(make_demo_data.GENERATORS))
def test_every_dataset_can_be_measured(dataset, capsys):
    benchmark.report([dataset], num_examples=3)
    names, figures, in_json = capsys.readouterr().out.splitlines()
    assert figures.split()[:2] == [dataset, "3"] and len(figures.split()) == len(names.split())
    (measured,) = json.loads(in_json)
    assert measured["dataset"] == dataset
    assert measured["num_records"] >= 3 and measured["examples_per_second"] > 0
