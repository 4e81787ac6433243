"""The code of docs/first_model.md trains, saves, loads, and prints what it shows."""

import json
import os

import numpy as np
import pytest

from tests import page
from tests.checkpoints import berts

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "river", "is", "long", "a", "."]


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    """What the page's code defines, after all of it has run in order in one folder."""
    folder = tmp_path_factory.mktemp("page")
    berts.write_folder(folder / "my_bert", WORDS)
    # What has the others is run by `tests/test_wheel.py`.
    names = page.check_output("first_model.md", folder, leave_out="opinions.csv")
    return {**names, "folder": folder}


@pytest.mark.exhaustive
def test_the_page_shows_what_its_code_prints(names):
    assert names["results"]["accuracy"] == 1.0


@pytest.mark.exhaustive
def test_a_folder_is_all_that_a_model_is_made_of(names):
    for name in ("reviews", "books"):
        assert sorted(os.listdir(names["folder"] / name)) == [
            "config.json",
            "head_config.json",
            "model.safetensors",
            "processor_config.json",
            "vocab.txt",
        ]
    settings = json.loads((names["folder"] / "books" / "processor_config.json").read_text())
    assert (settings["max_long_len"], settings["stride"]) == (64, 16)


@pytest.mark.exhaustive
def test_a_bert_reads_eight_times_its_length(names):
    assert names["ids"].shape[1] > berts.POSITIONS
    assert names["vectors"].shape == [1, berts.HIDDEN] and np.isfinite(names["vectors"]).all()
    assert names["model"].processor.config.max_long_len == 8 * berts.POSITIONS


@pytest.mark.parametrize("kind", ["SequenceClassification", "QuestionAnswering"])
def test_from_installation_to_a_served_model_are_less_than_forty_lines(kind):
    name = {"SequenceClassification": "reviews", "QuestionAnswering": "books"}[kind]
    blocks = page.blocks("first_model.md")
    (model,) = (code for code in blocks if f"EtcFor{kind}(config" in code)
    (served,) = (code for code in blocks if f"served_{name}" in code)
    installation = 1
    lines = [line for line in (model + served).splitlines() if line]
    assert installation + len(lines) == {"reviews": 31, "books": 39}[name] < 40
    assert not any(";" in line for line in lines)
