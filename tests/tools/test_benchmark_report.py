"""What the benchmark's picture says."""

import json
import pathlib

import pytest

from etcmodel.tools import benchmark
from tests import page

RESULTS = pathlib.Path(benchmark.__file__).parents[1] / "benchmarks" / "encoder.json"


def figure(model, length, seconds, phase="forward"):
    figure = {"model": model, "length": length, "phase": phase, "seconds": seconds}
    return {**figure, "peak_bytes": 2_000_000_000}


FIGURES = [
    figure("etc", 512, 1.0),
    figure("etc", 4096, 2.0),
    figure("hf bert", 4096, 5.0),
    figure("bert", 4096, 7.0),
    figure("etc bfloat16", 4096, 0.5),
    figure("etc", 8192, 4.0),
    figure("etc", 512, 3.0, "train"),
]


def test_the_headline_says_how_much_faster_at_4096_tokens():
    assert benchmark.headline(FIGURES) == (
        "4,096 tokens: ETC reads them in 2 s,\n"
        "3.5× as fast as BERT, 2.5× as fast as Hugging Face's BERT"
    )


def test_elsewhere_it_is_of_the_longest_input_that_two_read():
    figures = [*FIGURES[:1], figure("bert", 512, 1.5), figure("etc", 1024, 2.0)]
    assert benchmark.headline(figures).startswith("512 tokens: ETC reads them in 1 s,\n1.5× as")
    assert benchmark.headline(FIGURES[:2]) == ""


def test_the_panels_have_one_measure_each_and_human_names():
    panels = benchmark.panels(FIGURES)
    assert [panel.title for panel in panels] == [
        "Reading: seconds (lower is better)",
        "Training step: seconds (lower is better)",
        "Reading: peak memory, GB (lower is better)",
        "Training step: peak memory, GB (lower is better)",
    ]
    seconds, of_training, memory, _ = panels
    assert {line.label: line.points for line in seconds.lines} == {
        "ETC": ((512, 1.0), (4096, 2.0), (8192, 4.0)),
        "HF BERT": ((4096, 5.0),),
        "BERT": ((4096, 7.0),),
        "ETC in bfloat16": ((4096, 0.5),),
    }
    assert [line.points for line in of_training.lines] == [((512, 3.0),)]
    assert memory.lines[1].points == ((4096, pytest.approx(2.0)),)
    assert [line.color for line in memory.lines] == [0, 1, 2, 3]


def test_the_stored_figures_say_what_the_readme_does():
    text = benchmark.headline(json.loads(RESULTS.read_text()))
    assert text.startswith("4,096 tokens: ETC reads them in 3.2 s,\n")
    assert "3.8× as fast as Hugging Face's Longformer" in text


def test_the_page_on_costs_has_the_figures_of_the_file():
    figures = json.loads(RESULTS.read_text(encoding="utf-8"))
    text = page.read("performance.md")
    for phase in ("forward", "train"):
        assert benchmark.by_length(figures, phase) in text
    assert len(text.splitlines()) <= 100
