"""The table and the runs of the benchmark of numerical reasoning; no model is trained here."""

import json
import subprocess
import sys

from etcmodel.tools.benchmarks import numerical_reasoning as benchmark


def test_the_runs_differ_in_chunks_and_memory_alone():
    options = benchmark.NumericalBenchmarkOptions(long_seq_length=47, num_memory_tokens=5)
    assert benchmark.memories(options) == {
        "none": {"chunk_size": 24, "num_memory_tokens": 0},
        "tied": {"chunk_size": 24, "num_memory_tokens": 5, "untied_memory": False},
        "untied": {"chunk_size": 24, "num_memory_tokens": 5, "untied_memory": True},
        "full": {"chunk_size": 47, "num_memory_tokens": 0},
    }


def test_what_is_there_is_not_made_again(tmp_path, capsys):
    """With all results there, nothing is run: the programs would fail without data."""
    data = tmp_path / "data"
    data.mkdir()
    for name in ("gmat_config.json", "train.stats.json", "dev.stats.json"):
        (data / name).write_text("{}")
    for memory, rate in (("none", 0.25), ("full", 0.75)):
        (tmp_path / f"{memory}_3").mkdir()
        scores = {"exact_match": rate, "seconds": 61.4}
        scores |= {"exact_match_sum": 1.0} if memory == "full" else {}
        (tmp_path / f"{memory}_3" / "scores.json").write_text(json.dumps(scores))
    options = benchmark.NumericalBenchmarkOptions(
        output_dir=str(tmp_path), seeds=(3,), memories=("none", "full")
    )
    benchmark.main(options)
    assert capsys.readouterr().out.split("\n\n")[-2].splitlines() == [
        "| memory | seed | exact_match | exact_match_sum | seconds |",
        "| --- | --- | --- | --- | --- |",
        "| none | 3 | 0.250 |  | 61 |",
        "| full | 3 | 0.750 | 1.000 | 61 |",
    ]


def test_a_training_that_goes_on_tells_no_seconds(tmp_path, monkeypatch, capsys):
    """The programs are replaced by one that prints the scores."""
    program = [sys.executable, "-c", "print('{\"exact_match\": 0.5}')"]
    run = subprocess.run
    monkeypatch.setattr(
        benchmark.programs.subprocess, "run", lambda _, **options: run(program, **options)
    )
    (tmp_path / "none_1").mkdir()
    (tmp_path / "none_1" / "ckpt-7.index").write_text("")
    options = benchmark.NumericalBenchmarkOptions(
        output_dir=str(tmp_path), seeds=(1,), memories=("none", "tied")
    )
    benchmark.main(options)
    stopped, whole = (
        line.split("|")[1:-1] for line in capsys.readouterr().out.split("\n\n")[-2].splitlines()[2:]
    )
    assert [cell.strip() for cell in stopped] == ["none", "1", "0.500", ""]
    assert whole[3].strip().isdigit()
    assert "seconds" not in json.loads((tmp_path / "none_1" / "scores.json").read_text())
