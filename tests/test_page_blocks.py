"""Blocks of the pages that are short to run, from the pages' own text."""

import dataclasses
import json
import re
import shlex
import subprocess
import sys

import numpy as np
import pytest
from absl import flags

import etcmodel
from etcmodel import options
from etcmodel.finetuning import program as program_lib
from etcmodel.models import modeling
from etcmodel.models.gmat import GmatForMaskedLM
from etcmodel.tasks.nq.task import NqConfig
from etcmodel.text.word_vocabulary import write_vocabulary
from etcmodel.tools import inspect_attention
from tests import code_blocks, page
from tests.models import etcs
from tests.pretrain import text_runs


def block(place, kinds=code_blocks.COMMANDS, having=""):
    """The text of the one block of a page or section, of these kinds, that has these words."""
    name, _, section = place.partition("#")
    (found,) = (
        x.text
        for x in code_blocks.all_blocks()
        if x.page == f"docs/{name}" and x.kind in kinds and having in x.text
        if not section or section in x.sections
    )
    return found


def options_of(command, options_class, **changes):
    """The options that a command of a page gives."""
    values = flags.FlagValues()
    program = options.ProgramFlags({"options": options_class}, values)
    program.define()
    values(shlex.split(command.replace("\\\n", " "))[2:])
    return options_class(**{**program.values("options"), **changes})


@pytest.mark.parametrize("place", code_blocks.TASK_PAGES.values())
def test_the_forms_of_data_are_json(place):
    runner = code_blocks.Runner("", place, ("",), r"\A\{")
    texts = [x.text for x in code_blocks.all_blocks() if runner.runs(x)]
    assert texts
    for text in texts:
        objects = [json.loads(part) for part in re.split(r"\n(?=\{)", text)]
        assert all({"id", "article_id"} & {*x} for x in objects)


def test_the_yaml_file_of_the_page_gives_the_options(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nq.yaml").write_text(block("programs.md#options", ("yaml",)), encoding="utf-8")
    made = program_lib.Program(
        dataclasses.make_dataclass("Task", [("config_class", type, NqConfig)]),
        None,
        flags.FlagValues(),
    )
    made.define_flags({})
    made.flag_values(shlex.split(block("programs.md#options").replace("\\\n", " "))[2:])
    made.resolve_flags()
    values = {name: made.flag_values[name].value for name in ("num_train_epochs", "output_dir")}
    assert values == {"num_train_epochs": 5, "output_dir": "runs/nq"}
    assert made.flag_values["learning_rate"].value == 5e-5
    assert made.flag_values["train_data"].value == "data/records/nq-train-*.tfrecord"


def test_the_shell_completes_after_the_line_of_the_page(tmp_path):
    (tmp_path / "etcmodel").write_text(f'#!/bin/sh\nexec {sys.executable} -m etcmodel "$@"\n')
    (tmp_path / "etcmodel").chmod(0o755)
    command = f"PATH={tmp_path}:$PATH\n{block('programs.md', having='completion bash')}"
    done = subprocess.run(
        ["bash", "-c", f"{command}complete -p etcmodel"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.rstrip().endswith("etcmodel")


@pytest.mark.slow
def test_the_attention_of_the_page_is_of_three_layers_and_two_heads(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = "The river rises on moors. It is long."
    (tmp_path / "text.txt").write_text(text)
    size = write_vocabulary("etc_base_2x_pretrain/vocab.txt", [text])
    config = modeling.EtcConfig(
        vocab_size=size, **etcs.sizes(num_hidden_layers=12, intermediate_size=8)
    )
    model = modeling.EtcModel(config)
    model(**model.structure([[1, 2, 3]]))  # Builds it.
    etcmodel.save_pretrained(model, "etc_base_2x_pretrain")
    command = block("inspection.md")
    inspect_attention.run(options_of(command, inspect_attention.InspectOptions))
    found = (tmp_path / "attention.html").read_text(encoding="utf-8")
    rows = json.loads(re.search(r'id="data">(.*?)</script>', found)[1])["attention"]
    assert {(row["layer"], row["head"]) for row in rows} == {
        (layer, head) for layer in (0, 5, 11) for head in (-1, 0, 1)
    }


@pytest.mark.slow
class TestPretraining:
    first, second = page.blocks("pretraining.md")

    def test_the_lifted_models_are_those_of_the_page(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        text_runs.write_roberta(tmp_path / "roberta-base")
        text_runs.write_bert(tmp_path / "bert-base-uncased")
        exec(self.first, {})  # The library's own page.
        made = etcmodel.from_pretrained("longformer")
        assert made.encoder.config.max_position_embeddings == 4096 + 2
        assert isinstance(etcmodel.from_pretrained("gmat"), GmatForMaskedLM)

    def test_the_stage_of_compression_begins_with_the_weights(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        config = etcmodel.GmatConfig(
            vocab_size=30, **etcs.sizes(num_hidden_layers=12, intermediate_size=8)
        )
        model = GmatForMaskedLM(config)
        model(np.array([[1, 2, 3]]))  # Builds it.
        model.save_pretrained("runs/gmat/pretrained")
        exec(self.second, {})  # The library's own page.
        made = etcmodel.from_pretrained("gmat_compressed")
        assert made.encoder.config.num_compression_layers == 9
