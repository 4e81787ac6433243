"""The commands of the task's page, run as they are written there."""

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

PAGE = pathlib.Path(__file__).parents[3] / "docs" / "data_sets.md"


def test_the_commands_run_and_the_model_reads_both_ends(tmp_path):
    blocks = re.findall(r"^```\w*\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    (commands,) = [block for block in blocks if "--dataset=classification" in block]
    folder = os.path.dirname(sys.executable)
    done = subprocess.run(
        ["bash", "-e", "-c", commands],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "TF_CPP_MIN_LOG_LEVEL": "2"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    text = (tmp_path / "try/classification/predictions.jsonl").read_text(encoding="utf-8")
    predictions = {told["id"]: told["label"] for told in map(json.loads, text.splitlines())}
    text = (tmp_path / "try/classification/classification_dev.jsonl").read_text(encoding="utf-8")
    gold = {raw["id"]: raw["label"] for raw in map(json.loads, text.splitlines())}
    assert predictions.keys() == gold.keys()
    right = sum(predictions[name] == label for name, label in gold.items())
    assert right / len(gold) >= 0.9  # By the last sentences alone, four of five are.
