"""The command `etcmodel`: its table, its help and what it says of words that name no program."""

import importlib
import pathlib
import re
import subprocess
import sys

import pytest

import etcmodel
from etcmodel.cli import main
from etcmodel.cli.commands import COMMANDS
from etcmodel.finetuning import command_line

ROOT = pathlib.Path(__file__).parents[2]
HEAVY = {"tensorflow", "tf_keras", "apache_beam"}


def programs_in(*patterns):
    """Names of the modules that are programs, below `etcmodel` or the root."""
    paths = [path for pattern in patterns for path in ROOT.glob(pattern)]
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in paths
        if "__main__" in path.read_text(encoding="utf-8")
    }


def told(words, capsys):
    """(exit code, output, errors) of words that start no program."""
    try:
        main.run(words)
        code = 0
    except SystemExit as end:
        code = end.code
    return code, *capsys.readouterr()


def start(*words):
    return subprocess.run(
        [sys.executable, "-m", "etcmodel", *words], capture_output=True, text=True
    )


def test_every_program_has_a_command_and_every_command_a_program():
    found = {x.module for command in COMMANDS.values() for x in command.programs().values()}
    of_benchmarks = programs_in("benchmarks/*.py") - {"benchmarks.peers_worker"}
    of_package = programs_in("tasks/*/*.py", "pretrain/*.py", "tools/*.py")
    assert of_package | of_benchmarks <= found
    assert found <= programs_in("tasks/*/*.py", "pretrain/*.py", "tools/**/*.py") | of_benchmarks


def test_each_data_set_is_in_the_commands_of_its_programs():
    folders = {path.parent.name for path in (ROOT / "tasks").glob("*/__init__.py")}
    assert {"hotpotqa", "nq", "wikihop", "openkp"} <= folders
    for name in folders:
        if (ROOT / "tasks" / name / "preprocess.py").exists():
            assert name in COMMANDS["preprocess"].names()
        if (ROOT / "tasks" / name / "run_finetuning.py").exists():
            for mode in set(command_line.RUN_MODES) - {"save_pretrained"}:
                program = COMMANDS[mode].programs()[name]
                assert program.module == f"tasks.{name}.run_finetuning"
                assert program.flags == (f"--run_mode={mode}",)


def test_what_is_saved_for_python_are_the_heads():
    names = COMMANDS["train"].names()
    tasks = {x: f"etcmodel.tasks.{x}.task" for x in names if x in COMMANDS["export"].names()}
    classes = {
        name: [x for x in vars(importlib.import_module(path)).values() if hasattr(x, "saves_head")]
        for name, path in tasks.items()
    }
    heads = {name for name, found in classes.items() if any(x.saves_head for x in found)}
    assert {*COMMANDS["save_pretrained"].names()} == {"pretraining", *heads}


def test_what_is_trained_without_a_data_set_has_the_modes_of_its_programs():
    for command in ("train", "evaluate"):
        program = COMMANDS[command].programs()["char_lm"]
        assert program.module == "pretrain.run_char_lm"
        assert program.flags == (f"--run_mode={command}",)
    assert {"pretraining", "char_lm"} <= set(COMMANDS["train"].names())
    assert "pretraining" in COMMANDS["preprocess"].names()
    assert not {"pretraining", "char_lm"} & set(COMMANDS["export"].names())


@pytest.mark.parametrize("words", [[], ["--help"], ["-h"]])
def test_help_lists_the_commands(words, capsys):
    code, output, errors = told(words, capsys)
    assert (code, errors) == (0, "")
    assert re.findall(r"^  (\w+) +[A-Z].*\.$", output, re.M) == list(COMMANDS)
    block = output.partition("\nUse a trained model:\n")[2].partition("\n\n")[0]
    assert re.findall(r"^  (\w+) ", block, re.M) == [
        *("predict_records", "export", "predict", "embed", "serve", "convert", "export_onnx"),
        "export_stablehlo",
    ]


def test_help_of_a_command_lists_what_may_follow_with_the_programs_own_words(capsys):
    code, output, errors = told(["train", "--help"], capsys)
    assert (code, errors) == (0, "")
    names = re.findall(r"^  (\w+) +[A-Z].*$", output, re.M)
    assert names == COMMANDS["train"].names()
    assert "Fine-tunes, evaluates, exports and runs ETC on HotpotQA" in output


def test_the_version_is_told(capsys):
    assert told(["--version"], capsys) == (0, f"etcmodel {etcmodel.__version__}\n", "")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["trian"], "there is no command 'trian'. The nearest: train."),
        (
            ["pre-process", "nq"],
            "there is no command 'pre-process'. The nearest: preprocess, prepare.",
        ),
        (["train", "HotPot"], "`etcmodel train` has no 'HotPot'. The nearest: hotpotqa."),
        (["prepare", "zzz"], "`etcmodel prepare` has no 'zzz'. There are hotpotqa, nq, openkp."),
        (
            ["fit", "majority_tagging"],
            "`etcmodel fit` has no 'majority_tagging'. For majority_tagging there are: preprocess, "
            "train, evaluate, continuous_eval, predict_records, export, predict.",
        ),
        (["prepare"], "`etcmodel prepare` must be followed by one of hotpotqa, nq, openkp."),
        (
            ["prepare", "--x=1"],
            "`etcmodel prepare` must be followed by one of hotpotqa, nq, openkp.",
        ),
        (["serve", "export"], "`etcmodel serve` takes flags alone. Received: 'export'"),
        (
            ["export", "nq", "--run_mode=train"],
            "`etcmodel export nq` gives --run_mode=export itself. Leave --run_mode out.",
        ),
    ],
)
def test_words_that_name_no_program_are_told_in_one_sentence(words, line, capsys):
    assert told(words, capsys) == (1, "", f"error: {line}\n")


def test_a_benchmark_is_found_in_the_checkout_from_any_folder(tmp_path):
    code = "from etcmodel.cli import main; main.run(['benchmark', 'real_tokens', '--help'])"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "\n  etcmodel benchmark real_tokens --train_data=" in done.stdout


def test_an_installed_package_has_no_benchmarks(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(main.etcmodel, "__file__", str(tmp_path / "etcmodel" / "__init__.py"))
    line = (
        f"`etcmodel benchmark serving` is in the checkout, and {str(tmp_path)!r} is none. Run this "
        "from one, after `make` or `pip install -e .`."
    )
    assert told(["benchmark", "serving", "--calls=1"], capsys) == (1, "", f"error: {line}\n")


def test_help_of_a_program_is_its_own_and_imports_no_tensorflow():
    command = [sys.executable, "-X", "importtime", "-m", "etcmodel", "train", "hotpotqa", "--help"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout.startswith("Fine-tunes, evaluates, exports and runs ETC on HotpotQA")
    assert "\n  etcmodel train hotpotqa --output_dir=run " in done.stdout
    groups = dict(re.findall(r"^(\w[\w ,()']+):\n((?:  .*\n)+)", done.stdout, re.M))
    assert [group.partition(" (")[0] for group in groups] == [
        *("needed", "data", "model", "training", "evaluation", "devices", "serving", "other"),
        "compatibility",
    ]
    flags = {group: re.findall(r"^  --(?:\[no\])?(\w+):", x, re.M) for group, x in groups.items()}
    *of_groups, compatibility = flags.values()
    assert flags["needed"] == ["output_dir", "init_checkpoint", "train_data"]
    assert {"learning_rate", "save_checkpoints_steps"} <= {*flags["training"]}
    assert {"distribution_strategy", "tpu_name", "mixed_precision"} <= {*flags["devices"]}
    assert {"eval_data", "eval_gold", "eval_batch_size"} <= {*flags["evaluation"]}
    assert {"input_file", "export_dir"} <= {*flags["serving"]}
    assert {"etc_config_file", "use_tpu", "release_compatible"} <= {*compatibility}
    assert "iterations_per_loop" not in done.stdout  # It has no effect here.
    assert len({name for names in flags.values() for name in names}) == sum(
        map(len, flags.values())
    )
    imported = set(re.findall(r"^import time:.*\| +(\w+)$", done.stderr, re.M))
    assert "absl" in imported and not imported & HEAVY


def test_help_of_a_mode_marks_what_that_mode_needs():
    evaluate = start("evaluate", "classification", "--help")
    assert evaluate.returncode == 0
    assert evaluate.stdout.splitlines()[2:4] == [
        "  etcmodel evaluate classification --output_dir=run '--eval_data=records/dev-*'",
        "",
    ]
    needed = evaluate.stdout.partition("\nneeded:\n")[2].partition("\n\n")[0]
    assert re.findall(r"^  --(\w+):", needed, re.M) == ["output_dir", "eval_data"]
    full = start("train", "hotpotqa", "--helpfull").stdout
    assert "  --iterations_per_loop: Accepted for compatibility with the release; no effect" in full


def test_config_files_and_exit_codes_are_the_programs():
    done = start("draw", "--config=nowhere.yaml")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "error: --config: no such file: 'nowhere.yaml'\n"
    done = start("train", "nq", "--learning_rat=1")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: Unknown command line flag 'learning_rat'.")


def test_a_program_runs_as_the_main_module_under_its_own_name(tmp_path, monkeypatch, capsys):
    (tmp_path / "probed_program.py").write_text(
        "'''Tells\nof itself.'''\nimport sys\n"
        "if __name__ == '__main__':\n"
        "    print(sys.argv, sys.modules['__main__'].__spec__.name, __doc__)\n"
        "    sys.exit(3)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    before = sys.argv, sys.modules["__main__"]
    with pytest.raises(SystemExit) as end:
        main.run_module("probed_program", "etcmodel x", ["--flag"])
    assert end.value.code == 3
    expected = "['etcmodel x', '--flag'] probed_program Tells\nof itself.\n"
    assert capsys.readouterr().out == expected
    assert (sys.argv, sys.modules["__main__"]) == before
    assert main.summary("probed_program") == "Tells"
