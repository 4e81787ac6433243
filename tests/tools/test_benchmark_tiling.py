"""Which tiling is said to be the fastest; and a real measurement of a tiny model."""

import numpy as np
import pytest

from etcmodel import training
from etcmodel.ops import tiles
from etcmodel.tools.benchmarks import tiling as benchmark

DEFAULT, SMALL, LARGE = benchmark.DEFAULT, (32, 1 << 22), (None, 1 << 24)
STEADY = [1.0, 2.0, *[1.0] * 8]  # The machine was slow in the second round.


def test_the_default_is_that_of_attention_and_of_training():
    assert tiles.Tiling(*DEFAULT) == tiles.Tiling()
    assert training.TrainingConfig().attention_tiling() == tiles.Tiling()


def test_more_logits_than_int32_counts_are_refused():
    with pytest.raises(ValueError, match="`attention_logits` must be between 1 and 2147483647"):
        training.TrainingConfig(attention_logits=1 << 31)


def test_functions_take_turns_and_the_first_round_is_not_measured():
    calls, ticks = [], iter(range(100))
    functions = {name: lambda name=name: calls.append(name) for name in "ab"}
    times = benchmark.times_by_turns(functions, 2, clock=lambda: next(ticks))
    assert calls == list("ababab") and times == {"a": [1, 1], "b": [1, 1]}


@pytest.mark.parametrize(
    ("small", "expected"),
    [
        ([0.9, 1.8, *[0.9] * 8], SMALL),
        ([0.9, 1.8, 1.1, *[0.9] * 7], SMALL),  # Slower once.
        ([0.9, 1.8, 1.1, 1.1, *[0.9] * 6], DEFAULT),  # Faster in most rounds: may be chance.
        ([1.0, 0.9, *[1.0] * 8], DEFAULT),  # Faster where the others happened to be slow.
    ],
)
def test_a_tiling_must_be_faster_in_nearly_every_round(small, expected):
    times = {DEFAULT: STEADY, SMALL: small, LARGE: [2 * x for x in STEADY]}
    assert benchmark.best(times) == expected


def test_chance_rarely_prefers_one_of_many_that_are_as_fast():
    pairs = benchmark.TilingOptions().sizes()
    random = np.random.default_rng(0)
    found = [
        benchmark.best({pair: list(random.lognormal(sigma=0.03, size=12)) for pair in pairs})
        for _ in range(500)
    ]
    assert sum(pair != DEFAULT for pair in found) <= 0.05 * len(found)


def test_too_few_rounds_for_so_many_sizes_are_refused():
    with pytest.raises(ValueError, match="7 are too few to tell the best of 12 sizes"):
        benchmark.TilingOptions(rounds=7)
    assert benchmark.TilingOptions(rounds=8)


def test_flags_and_table():
    assert benchmark.flags_of(DEFAULT) == ""
    assert benchmark.flags_of(SMALL) == "--attention_tile_rows=32"
    assert benchmark.flags_of((96, 1 << 24)) == (
        "--attention_tile_rows=96 --attention_logits=16777216"
    )
    times = {DEFAULT: STEADY[:5], SMALL: [0.5, 1.0, 0.75, 0.5, 0.5]}
    assert benchmark.table(times).splitlines()[2:] == [
        "| 32 | 4194304 | 0.500 | 0.500 | 0.500 to 0.750 |",
        "| default | 4194304 | 1.000 | 1.000 | 1.000 to 1.000 |",
    ]


@pytest.mark.slow
def test_a_tiny_model_is_measured(capsys):
    options = benchmark.TilingOptions(
        long_length=200,
        global_length=8,
        batch_size=2,
        hidden_size=64,
        num_hidden_layers=1,
        phase="forward",
        rows=(0, 16),
        logits=(1 << 22,),
        rounds=5,
    )
    assert options.sizes() == [DEFAULT, (16, 1 << 22)]
    benchmark.main(options)
    *rows, last = capsys.readouterr().out.splitlines()
    assert {row.split(" | ")[0] for row in rows[2:4]} == {"| default", "| 16"}
    assert last.startswith(("Fastest: --attention_tile_rows=16", "No sizes are faster"))
