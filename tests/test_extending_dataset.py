"""The data set of docs/extending.md, built from the page itself, trains and evaluates."""

import json
import os
import re
import subprocess

import pytest

from tests import page
from tests.warm import python as warm

pytestmark = pytest.mark.slow

FILE = re.compile(r"^### claims/(\S+)\n.*?^(`{3,})\w+\n(.*?)^\2$", re.M | re.S)
LABELS = ("no", "yes", "maybe")


@pytest.fixture
def folder(tmp_path):
    """A folder with the page's package, raw files, a vocabulary and a config."""
    (tmp_path / "claims").mkdir()
    (tmp_path / "claims" / "__init__.py").touch()
    for name, _, text in FILE.findall(page.section("Add a data set")):
        (tmp_path / "claims" / name).write_text(text, encoding="utf-8")
    for split, count in (("train", 8), ("dev", 3)):
        claims = [
            {
                "id": f"{split} {number}",
                "question": "is it so",
                "text": f"it is {LABELS[number % 3]}. so it is.",
                "label": LABELS[number % 3],
            }
            for number in range(count)
        ]
        (tmp_path / f"{split}.jsonl").write_text("\n".join(map(json.dumps, claims)))
    vocab = ["[PAD]", "[UNK]", "is", "it", "so", ".", *LABELS]
    (tmp_path / "vocab.txt").write_text("\n".join(vocab))
    config = {
        "vocab_size": len(vocab),
        "hidden_size": 8,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 8,
        "local_radius": 4,
        "relative_pos_max_distance": 2,
        "relative_vocab_size": 8,
    }
    (tmp_path / "etc_config.json").write_text(json.dumps(config))
    return tmp_path


def run(folder, command):
    done = subprocess.run(
        command.replace("python ", f"{warm.python()} ", 1),
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        shell=True,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_the_commands_of_the_page_train_for_two_steps_and_evaluate(folder):
    files = sorted(path.name for path in (folder / "claims").iterdir())
    expected = ["README", "__init__", "examples", "features", "model", "program", "task"]
    assert [name.partition(".")[0] for name in files] == expected
    readme = (folder / "claims" / "README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```\n(.*?)^```$", readme, re.M | re.S)
    *commands, evaluation = block.replace("\\\n", " ").splitlines()
    for command in commands:
        run(folder, command)
    kept = json.loads((folder / "run" / "run_config.json").read_text())
    assert kept["notes"]["num_train_steps"] == 2
    assert kept["task"]["max_long_seq_length"] == 64  # As the records have it.
    assert (folder / "run" / "ckpt-2.index").exists()
    (metrics,) = run(folder, evaluation).splitlines()
    predictions = json.loads((folder / "run" / "predictions.json").read_text())
    assert set(predictions) == {"dev 0", "dev 1", "dev 2"}
    right = sum(predictions[f"dev {number}"] == LABELS[number] for number in range(3))
    assert json.loads(metrics)["accuracy"] == pytest.approx(right / 3)
