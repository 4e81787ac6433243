"""Two models that take turns, what is drawn of them, and what happens when one of them dies."""

import sys

import numpy as np
import pytest

from benchmarks import pairs, peers
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
    return peers.PeersOptions(comparisons=("gmat",), lengths=(512,), rounds=2)


def figures(options, tmp_path, monkeypatch, make):
    monkeypatch.setitem(pairs.MAKERS, "gmat", lambda *_: (make(), options.phases, None))
    return list(peers.compare("gmat", 512, options, pairs.Files(str(tmp_path))))


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
        peers.PeersOptions(comparisons=("gmat",), lengths=(512, 1000))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"comparisons": ("longformer", "gmat")}, "longformer needs --torch_python"),
        ({"comparisons": ("keras_hub_bert",)}, "keras_hub_bert needs --keras_hub_python"),
        ({"comparisons": ("dilation",), "shortest": 0.5}, "--shortest=0.5 needs several --rows"),
        ({"comparisons": ("gmat",), "shortest": 0.5, "rows": 2}, "whose texts are all as long"),
    ],
)
def test_what_cannot_be_compared_so_is_refused(settings, said):
    with pytest.raises(ValueError, match=said):
        peers.PeersOptions(lengths=(512,), **settings)


@pytest.mark.parametrize(("shortest", "lengths"), [(1.0, [64, 64, 64]), (0.125, [64, 36, 8])])
def test_texts_of_a_batch_become_shorter_to_the_share_that_is_asked_for(
    tmp_path, shortest, lengths
):
    options = peers.PeersOptions(
        comparisons=("dilation",), rows=3, num_generated=5, shortest=shortest
    )
    files = pairs.Files(str(tmp_path))
    files.write_inputs(64, options)
    inputs = np.load(files.inputs)
    assert inputs["attention_mask"].sum(-1).tolist() == lengths
    assert inputs["input_ids"].shape == (3, 64) and inputs["labels"].shape == (3, 5)


def test_ratios_are_drawn_by_length_with_a_line_for_each_comparison():
    def figure(comparison, length, seconds, peaks):
        return {
            "comparison": comparison,
            "length": length,
            "phase": "forward",
            "seconds": seconds,
            "peak_bytes": peaks,
        }

    time, memory = peers.panels(
        [
            figure("led", 128, [[1.0, 2.0, 3.0], [2.0, 2.0, 2.0]], [1, 4]),
            figure("led", 64, [[1.0], [4.0]], [3, 4]),
            figure("gmat", 64, [[8.0], [4.0]], [5, 4]),
        ]
    )
    assert [(line.label, line.points) for line in time.lines] == [
        ("led", ((64, 0.25), (128, 1.0))),
        ("gmat", ((64, 2.0),)),
        ("equal", ((64, 1), (128, 1))),
    ]
    assert [line.points for line in memory.lines[:2]] == [((64, 0.75), (128, 0.25)), ((64, 1.25),)]
