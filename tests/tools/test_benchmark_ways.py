"""A forward pass as a graph, eagerly and from an export: the table, and a tiny measurement."""

import pytest

from etcmodel.tools.benchmarks import ways, worker

TINY = {
    "long_length": 40,
    "global_length": 5,
    "batch_size": 2,
    "hidden_size": 64,
    "num_hidden_layers": 1,
    "rounds": 3,
}


def test_ratios_are_of_the_same_rounds_and_shares_of_the_fastest_products():
    times = {"graph": [1.0, 2.0, 1.0], "eager": [1.5, 2.0, 2.0]}
    times |= {"float32": [3.0, 3.0, 2.0], "numpy": [2.0, 2.0, 3.0]}
    flops = 0.25 * worker.matmul_seconds_to_speed(2.0)
    assert ways.table(times, flops).splitlines()[2:] == [
        "| graph | 1 | 1 to 2 | 1.000 | 1.000 to 1.000 | 0.25 |",
        "| eager | 2 | 1.5 to 2 | 1.500 | 1.000 to 2.000 | 0.12 |",
    ]


def test_more_global_than_long_tokens_are_refused():
    with pytest.raises(ValueError, match="`global_length` must be at most `long_length`"):
        ways.WaysOptions(**{**TINY, "global_length": 41})


@pytest.mark.slow
def test_a_tiny_model_is_measured(capsys):
    ways.main(ways.WaysOptions(**TINY, clock="processor"))
    rows = capsys.readouterr().out.splitlines()[2:]
    assert [row.split(" | ")[0] for row in rows] == ["| graph", "| eager", "| exported"]
