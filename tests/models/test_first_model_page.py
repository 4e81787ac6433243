"""The code of docs/first_model.md trains, saves, loads, and prints what it shows."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest

import etcmodel
from tests import page
from tests.checkpoints import berts

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "river", "is", "long", "a", "."]


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    """What the page's code defines, after all of it has run in order in one folder."""
    folder = tmp_path_factory.mktemp("page")
    berts.write_folder(folder / "my_bert", WORDS)
    names, printed = {}, []
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        names["print"] = lambda *values: printed.append(" ".join(map(str, values)) + "\n")
        for code, output in page.code_and_output("first_model.md"):
            if "opinions.csv" in code:
                continue  # `tests/test_wheel.py` runs it.
            printed.clear()
            exec(code, names)  # The library's own page.
            assert "".join(printed) == output
    return {**names, "folder": folder}


@pytest.mark.exhaustive
def test_the_page_shows_what_its_code_prints(names):
    assert names["results"]["accuracy"] == 1.0


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_bert_reads_eight_times_its_length(names):
    assert names["ids"].shape[1] > berts.POSITIONS
    assert names["vectors"].shape == [1, berts.HIDDEN] and np.isfinite(names["vectors"]).all()
    assert names["model"].processor.config.max_long_len == 8 * berts.POSITIONS


@pytest.mark.slow
def test_the_first_lines_of_the_readme_print_what_it_shows_and_no_more(tmp_path):
    readme = (page.DOCS.parent / "README.md").read_text(encoding="utf-8")
    _, code = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    (output,) = re.findall(r"```text\n(.*?)```", readme, re.DOTALL)
    environment = {k: v for k, v in os.environ.items() if k != "TF_CPP_MIN_LOG_LEVEL"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, output, "")


@pytest.mark.slow
def test_the_example_of_the_readme_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    berts.write_folder(tmp_path / "my_bert", WORDS)
    texts = ["The river is long. " * n for n in range(1, 6)]
    lines = [f"{number},{('neg', 'pos')[number % 2]},{text}" for number, text in enumerate(texts)]
    (tmp_path / "films.csv").write_text("\n".join(["id,opinion,review", *lines]))
    readme = (page.DOCS.parent / "README.md").read_text(encoding="utf-8")
    code, _ = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    assert page.blocks("site/index.md") == [code]
    names = {}
    exec(code, names)  # The library's own page.
    loaded = etcmodel.from_pretrained("films")
    assert loaded.labels == ("neg", "pos")
    np.testing.assert_array_equal(loaded(texts), names["model"](texts))


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
