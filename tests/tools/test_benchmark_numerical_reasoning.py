"""The table and the runs of the benchmark of numerical reasoning; no run is made here."""

import json

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
