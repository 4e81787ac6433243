"""The programs on true examples, described by files, and told what cannot be."""

import json
import pathlib

import pytest
from absl import flags

from tests.tasks import program_rows, programs, record_sets

pytestmark = pytest.mark.slow

SHARED = pathlib.Path(__file__).parents[4] / "shared"
REAL_EXAMPLES = SHARED / "real" / "hotpotqa_10.json"
REAL_VOCAB = SHARED / "reference" / "vocab" / "bert_uncased_vocab.txt"
SIZES = {"hidden_size": 8, "intermediate_size": 16, "local_radius": 8}


def fine_tune(**arguments):
    """What the program printed at last."""
    return program_rows.of_task("hotpotqa", **arguments).splitlines()[-1:]


def made(folder, paths, long, globals_, **options):
    """Records and a config: the flags that a training and an evaluation share."""
    lengths = {"long_seq_length": long, "global_seq_length": globals_}
    record_sets.make("hotpotqa", folder, paths, **lengths, **options)
    size = len(pathlib.Path(paths["vocab"]).read_text(encoding="utf-8").splitlines())
    return {
        **program_rows.small("etc", long, **SIZES)(size, folder),
        "vocab_file": paths["vocab"],
        "train_data": folder / "train-*.tfrecord",
        "train_batch_size": 4,
        "num_train_epochs": 1,
        "output_dir": folder / "run",
    }


@pytest.fixture(scope="module")
def generated(tmp_path_factory):
    """(folder of generated data, flags of training, those of evaluation beside them)."""
    folder = tmp_path_factory.mktemp("generated")
    paths = program_rows.demo("hotpotqa", 12, 6, seed=3)(folder)
    given = made(folder, paths, 320, 96)
    return folder, given, {"eval_data": folder / "dev-*.tfrecord", "eval_gold": paths["dev"]}


@pytest.mark.skipif(not REAL_EXAMPLES.exists(), reason="needs the true examples beside the project")
@pytest.mark.parametrize("num_word_edges", [0, 64])
@pytest.mark.exhaustive
def test_true_examples_go_the_whole_way(tmp_path, num_word_edges):
    paths = {"train": str(REAL_EXAMPLES), "dev": str(REAL_EXAMPLES), "vocab": str(REAL_VOCAB)}
    given = made(tmp_path, paths, 2048, 256, num_word_edges=num_word_edges)
    given |= {"eval_data": tmp_path / "dev-*.tfrecord", "eval_gold": REAL_EXAMPLES}
    step = {"skip_padding": True} if num_word_edges else {"grad_checkpointing_period": 1}
    (metrics,) = fine_tune(run_mode="train", **given, **step)
    assert set(json.loads(metrics)) >= {"em", "f1", "sp_f1", "joint_f1"}
    predictions = json.loads((tmp_path / "run" / "predictions.json").read_text())

    fine_tune(run_mode="export", output_dir=tmp_path / "run")
    gold = json.loads(REAL_EXAMPLES.read_text(encoding="utf-8"))
    hidden = ("answer", "supporting_facts", "type", "level")
    questions = [{key: x for key, x in raw.items() if key not in hidden} for raw in gold]
    (tmp_path / "questions.json").write_text(json.dumps(questions))
    fine_tune(
        run_mode="predict",
        export_dir=tmp_path / "run" / "export",
        input_file=tmp_path / "questions.json",
        predictions_file=tmp_path / "predictions.json",
    )
    assert json.loads((tmp_path / "predictions.json").read_text()) == predictions
    assert set(predictions["answer"]) == {example["_id"] for example in gold}


@pytest.mark.exhaustive
def test_a_run_is_described_by_files_alone(generated):
    """Of canonical names; what the run was told is kept, and taken again as a file."""
    folder, given, evaluation = generated
    (folder / "model.yaml").write_text(
        f"program:\n  model_config_file: {given['model_config_file']}\n"
        "training: {train_batch_size: 4, num_train_epochs: 9, learning_rate: 1e-3}\n"
    )
    (folder / "data.yaml").write_text(
        f"train_data: {folder}/train-*.tfrecord\n"
        f"task:\n  eval_data: {folder}/dev-*.tfrecord\n"
        f"  eval_gold: {evaluation['eval_gold']}\n  vocab_file: {given['vocab_file']}\n"
        f"num_train_epochs: 1.0\noutput_dir: {folder}/by_files\n"
    )
    config = ["--config", folder / "model.yaml", "--config", folder / "data.yaml"]
    module = ["-m", "etcmodel.tasks.hotpotqa.run_finetuning"]
    override = ["--override=training.save_checkpoints_steps=2", "--learning_rate=2e-3"]
    printed, _ = programs.finish(programs.start_python(*module, *config, *override))
    kept = json.loads((folder / "by_files" / "run_config.json").read_text())
    assert kept["training"]["learning_rate"] == 2e-3 and kept["notes"]["num_train_steps"] == 3
    assert kept["task"]["max_long_seq_length"] == 320  # The records'.
    (found,) = fine_tune(config=folder / "by_files" / "options.yaml", run_mode="evaluate")
    wanted = json.loads(printed.splitlines()[-1])
    assert json.loads(found) == pytest.approx(wanted, abs=1e-5)


# Changes of a run's flags, and of its config, with what is told of them.
REFUSED = {
    "no records": ({"train_data": ""}, {}, "--run_mode=train also needs --train_data."),
    "no answers": ({"eval_data": "dev-*"}, {}, "--run_mode=train also needs --eval_gold."),
    "no file": ({"train_data": "none-*"}, {}, "No file matches 'none-*'"),
    "no vocabulary": ({"vocab_file": "gone.txt"}, {}, "--vocab_file: no such file: 'gone.txt'"),
    "no checkpoint": ({"init_checkpoint": "gone"}, {}, "gone"),
    "other lengths": (
        {"long_seq_length": 512},
        {},
        "train.config.json was made with --long_seq_length=320. Leave the flag out, or give that",
    ),
    "too few labels": ({}, {"relative_vocab_size": 8}, "`relative_vocab_size` must be at least"),
    "other ids": ({}, {"vocab_size": 110}, "allowed are 0 to 109 (the ids of the model's vocabul"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_is_told_in_a_line(generated, name, tmp_path, capsys):
    _, given, _ = generated
    changes, of_config, message = REFUSED[name]
    config = json.loads(given["model_config_file"].read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, **of_config}))
    given = {**given, "output_dir": tmp_path / "run", **changes}
    with pytest.raises(SystemExit) as exit_info:
        fine_tune(run_mode="train", **{**given, "model_config_file": tmp_path / "config.json"})
    printed = capsys.readouterr().err
    assert exit_info.value.code == 1 and "Traceback" not in printed
    assert printed.splitlines()[-1].startswith("error: ") and message in printed


def test_all_that_an_evaluation_lacks_is_named(tmp_path, capsys):
    with pytest.raises(SystemExit):
        fine_tune(run_mode="evaluate", output_dir=tmp_path)
    lacks = "--run_mode=evaluate also needs --model_config_file, --eval_data, --eval_gold."
    no_run = f"There is no run in --output_dir={tmp_path} that has a config."
    assert capsys.readouterr().err.endswith(f"error: {lacks} {no_run}\n")


def test_an_option_outside_its_range_is_refused(generated):
    _, given, _ = generated
    with pytest.raises(flags.Error, match=r"2.0 is not a number in the range \[0, 1\]"):
        fine_tune(run_mode="train", **given, supporting_fact_threshold=2)
