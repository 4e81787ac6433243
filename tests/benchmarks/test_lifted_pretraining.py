"""The benchmark of lifting: options that cannot be, and a tiny run."""

import gzip
import json
import random

import pytest

from benchmarks import lifted_pretraining

NAMES = ("Ada", "Bo", "Cora", "Dan")
VERBS = ("saw", "met", "called", "followed")


def options(folder, **changes):
    tiny = {
        "texts": (str(folder / "text.txt.gz"),),
        "output_dir": str(folder / "out"),
        "heldout_share": 0.2,
        "vocab_size": 300,
        "hidden_size": 32,
        "num_layers": 1,
        "short_length": 8,
        "long_length": 32,
        "tokens_per_step": 64,
        "short_steps": 5,
        "updates": 4,
    }
    return lifted_pretraining.LiftedPretrainingOptions(**{**tiny, **changes})


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"texts": ()}, "--texts must be given"),
        ({"hidden_size": 48}, "--hidden_size=48 must be a multiple of 32, the size of a head"),
        ({"short_length": 7}, "--short_length=7 must be even"),
        ({"long_length": 6}, "--long_length=6 must not be below --short_length=8"),
        ({"tokens_per_step": 48}, "--tokens_per_step=48 must be a multiple of --long_length=32"),
        ({"tokens_per_step": 36}, "--tokens_per_step=36 must be a multiple of --short_length=8"),
    ],
)
def test_options_that_cannot_be_are_refused(tmp_path, changes, told):
    with pytest.raises(ValueError, match=told):
        options(tmp_path, **changes)


@pytest.mark.slow
def test_a_tiny_run(tmp_path, monkeypatch):
    from benchmarks import lifted_stages

    kinds = [kind for kind in lifted_stages.LIFTED if not kind[1]]  # The others differ in weights.
    monkeypatch.setattr(lifted_stages, "LIFTED", kinds)

    rng = random.Random(0)
    lines = [f"{rng.choice(NAMES)} {rng.choice(VERBS)} {rng.choice(NAMES)}.\n" for _ in range(300)]
    with gzip.open(tmp_path / "text.txt.gz", "wt", encoding="utf-8") as file:
        file.writelines(lines)
    rows = lifted_stages.measure(options(tmp_path))
    assert [(name, length, list(losses)) for name, length, losses in rows] == [
        ("short model", 8, [5]),
        ("random positions", 32, [0, 2, 4]),
    ]
    (losses,) = (losses for _, _, losses in rows[1:])
    assert losses[4] < losses[0]
    told = json.loads((tmp_path / "out" / "result.json").read_text())
    assert told == json.loads(json.dumps(rows))
