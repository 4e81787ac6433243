"""Two models that take turns, and what happens when one of them dies."""

import sys

import pytest

from benchmarks import pairs, systems
from etcmodel.tools.benchmarks import turns

ANSWERS = """
import json, sys
for line in sys.stdin:
    print(json.dumps({"time": 2.0, "processor": 1.0, "peak_bytes": 3}), flush=True)
"""
DIES = "import sys; sys.stdin.readline()"


def worker(name, source):
    return turns.Worker(name, [sys.executable, "-c", source])


@pytest.fixture
def options(tmp_path):
    return systems.SystemsOptions(comparisons=("gmat",), lengths=(512,), rounds=2)


def figures(options, tmp_path, monkeypatch, make):
    monkeypatch.setitem(pairs.MAKERS, "gmat", lambda *_: (make(), options.phases, None))
    return list(systems.compare("gmat", 512, options, pairs.Files(str(tmp_path))))


def test_two_that_answer_are_compared(options, tmp_path, monkeypatch):
    found = figures(
        options, tmp_path, monkeypatch, lambda: [worker(name, ANSWERS) for name in ("one", "two")]
    )
    assert [x["phase"] for x in found] == ["forward", "train"]
    assert found[0]["seconds"] == [[2.0, 2.0], [2.0, 2.0]] and found[0]["peak_bytes"] == [3, 3]


@pytest.mark.parametrize("dead", [0, 1])
def test_one_that_dies_ends_its_comparison_alone(options, tmp_path, monkeypatch, capsys, dead):
    sources = [ANSWERS, ANSWERS]
    sources[dead] = DIES
    made = [worker(f"model {number}", source) for number, source in enumerate(sources)]
    assert figures(options, tmp_path, monkeypatch, lambda: made) == []
    assert f"error: model {dead} died during forward" in capsys.readouterr().err
    for one in made:
        one.close()  # Twice does no harm.


def test_one_that_dies_before_anything_is_measured_does_so_too(
    options, tmp_path, monkeypatch, capsys
):
    def make():
        worker("ours", DIES).measure("write")

    assert figures(options, tmp_path, monkeypatch, make) == []
    assert "error: ours died during write" in capsys.readouterr().err


def test_gmat_is_compared_on_whole_chunks():
    with pytest.raises(ValueError, match="--lengths=1000 is no multiple of --window=512"):
        systems.SystemsOptions(comparisons=("gmat",), lengths=(512, 1000))
