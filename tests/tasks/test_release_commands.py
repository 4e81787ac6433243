"""The commands of the release's documentation, with small data and without a TPU."""

import contextlib
import importlib
import io
import json
import pathlib
import shutil

import pytest
from absl import flags

from etcmodel import finetuning, options, training
from etcmodel.finetuning import command_line
from etcmodel.finetuning import program as program_lib
from etcmodel.preprocessing import program
from etcmodel.tasks.nq import examples as nq_gold
from etcmodel.tools import make_demo_data
from tests.tasks import programs, record_sets
from tests.tasks.release_commands import (
    COMMANDS,
    ETC_CONFIG,
    LENGTHS,
    OTHER_FLAGS,
    TASKS,
    TPU,
    command,
    here,
)

pytestmark = pytest.mark.slow


def parsed(task, monkeypatch, **arguments):
    """A task's program with these flags, resolved, and the lines that it tells."""
    found = []

    def run_program(config_class, *, defaults=None, release=None):
        parts = command_line.load_task(config_class)
        made = program_lib.Program(*parts, flags.FlagValues(), release)
        made.define_flags(defaults or {})
        made.flag_values(["run_finetuning", *programs.flag_list(arguments)])
        with contextlib.redirect_stderr(io.StringIO()) as told:
            made.resolve_flags()
        found.append((made, told.getvalue().splitlines()))

    monkeypatch.setattr(finetuning, "run_program", run_program)
    programs.run_module(task)
    return found[0]


@pytest.fixture(scope="module", params=TASKS)
def made(request, tmp_path_factory):
    """A task and a folder with its data, under the names of the release."""
    task = request.param
    folder = tmp_path_factory.mktemp(task)
    paths = make_demo_data.make_demo_data(
        dataset=task, output_dir=str(folder / "raw"), num_train=12, num_dev=4, seed=3
    )
    shutil.copy(paths["vocab"], folder / "vocab.txt")
    shutil.copy(paths["dev"], folder / f"dev{pathlib.Path(paths['dev']).suffix}")
    vocab_size = len((folder / "vocab.txt").read_text(encoding="utf-8").splitlines())
    config = {**ETC_CONFIG, "vocab_size": vocab_size}
    (folder / "etc_config.json").write_text(json.dumps(config))
    make_records(task, folder, paths)
    return task, folder


# How the release's scripts name the records.
RECORDS = {
    "hotpotqa": ("tf_examples_train", "tf_examples_dev_distractor"),
    "nq": ("nq-train", "nq-dev"),
    "openkp": ("OpenKPTrain.tfrecord", "OpenKPDev.tfrecord"),
}
OWN = {"nq": {"question_len": 16, "stride": 64}, "wikihop": {"tokenizer_type": "BERT"}}


def make_records(task, folder, paths):
    given = dict(zip(("long_seq_length", "global_seq_length"), LENGTHS[task], strict=True))
    given |= {**OWN.get(task, {}), "num_shards": 2, "vocab_file": paths["vocab"], "strict": True}
    sets = [{"input_pattern": paths[x], "is_training": x == "train"} for x in ("train", "dev")]
    for of_set, name in zip(sets, RECORDS.get(task, ()), strict=False):
        of_set["output_prefix"] = str(folder / name)
    if task == "wikihop":
        both = {"input_pattern": paths["train"], "dev_input_pattern": paths["dev"]}
        sets = [{**both, "output_dir": str(folder / "records")}]
    module = importlib.import_module(f"etcmodel.tasks.{task}.preprocess")
    for of_set in sets:
        list(program.run(module.PreprocessOptions(**given, **of_set), module.load_parts))
    if task == "nq":
        nq_gold.write_gold_cache(paths["dev"], str(folder / "cache"))
    for path in sorted(
        (folder / "records").rglob("*.tfrecord")
    ):  # Without the settings beside them.
        (folder / path.parent.name).mkdir(exist_ok=True)
        path.rename(folder / path.parent.name / path.stem)


@pytest.mark.slow_cases(1)
def test_training_and_then_the_second_job_evaluate_every_checkpoint(made, capsys):
    task, folder = made
    shutil.rmtree(folder / "model", ignore_errors=True)
    if task == "wikihop":  # As documented, the jobs run beside each other.
        evaluation = programs.start(task, "run_finetuning", **here(task, "evaluation", folder))
        programs.fine_tune(task, **here(task, "training", folder))
        printed, told = programs.finish(evaluation)
    else:
        if task == "hotpotqa":
            programs.run(task, "run_finetuning", **here(task, "training", folder))
        else:
            programs.fine_tune(task, **here(task, "training", folder))
        capsys.readouterr()
        programs.fine_tune(task, **here(task, "evaluation", folder))
        printed, told = capsys.readouterr()
    found = record_sets.read_lines(folder / "model" / "eval_metrics.jsonl")
    steps = sorted(line.pop("step") for line in found)
    last = int(told.rpartition("step ")[2].partition("/")[0]) if "  evaluated in" in told else None
    assert steps == list(range(1, steps[-1] + 1)) and len(steps) >= 2
    assert json.loads(printed.splitlines()[-1]) == found[-1]
    # NQ's and HotpotQA's training has the evaluation's flags and has done it.
    assert last == (steps[-1] if task in ("wikihop", "openkp") else None)
    assert (folder / "model" / "best" / "best_metric.json").exists()


@pytest.mark.parametrize("task", TASKS)
def test_the_commands_ask_for_what_they_say(task, monkeypatch, tmp_path):
    made_program, lines = parsed(task, monkeypatch, **command(task, "training", tmp_path))
    config = made_program.training_config()
    assert made_program.flag_values.run_mode == "train"
    assert config.distribution_strategy == "tpu"
    assert (config.tpu_name, config.tpu_zone, config.gcp_project) == tuple(TPU.values())[1:]
    assert config.train_batch_size == 4 and config.init_checkpoint == f"{tmp_path}/model.ckpt"
    assert "--use_tpu=true is read as --distribution_strategy=tpu." in lines

    made_program, lines = parsed(task, monkeypatch, **command(task, "evaluation", tmp_path))
    values = made_program.flag_values
    assert values.run_mode == "continuous_eval"
    asked = COMMANDS[task]["both"] | COMMANDS[task]["evaluation"]
    names = ("predict_precomputed_file", "predict_tf_examples_filepattern")
    names += ("input_tf_records_path", "input_tfrecord")
    (expected,) = {asked[name] for name in names if name in asked}
    assert values.eval_data == expected.format(tmp_path)
    assert all(line.endswith(".") and "\n" not in line for line in lines)


def canonical(program, arguments):
    """The same flags under the names that all programs share."""
    aliases = options.aliases_of(program.task_class.config_class)
    aliases |= {**options.ModelOptions.aliases, **program.release.aliases}
    return {aliases.get(name, name): value for name, value in arguments.items()}


@pytest.mark.parametrize("task", TASKS)
def test_the_canonical_names_ask_for_the_same(task, monkeypatch, tmp_path):
    arguments = command(task, "training", tmp_path)
    by_aliases, _ = parsed(task, monkeypatch, **arguments)
    renamed = canonical(by_aliases, arguments)
    assert {"train_data", "model_config_file"} < set(renamed) and renamed != arguments
    by_names, _ = parsed(task, monkeypatch, **renamed)
    for options_class in (by_names.task_class.config_class, training.TrainingConfig):
        values = [
            options.values_from_flags(options_class, program.flag_values, only_given=True)
            for program in (by_aliases, by_names)
        ]
        assert values[0] == values[1]
    assert by_aliases.flag_values.model_config_file == by_names.flag_values.model_config_file


@pytest.mark.parametrize("task", TASKS)
def test_all_other_flags_are_taken(task, monkeypatch, tmp_path):
    others = dict(flag.split("=") for flag in OTHER_FLAGS[task].split())
    arguments = {**command(task, "training", tmp_path), **others}
    _, lines = parsed(task, monkeypatch, **arguments)
    without_effect = {line.split(" ")[0] for line in lines if "has no effect" in line}
    assert {"--iterations_per_loop", "--master", "--tpu_job_name"} <= without_effect
