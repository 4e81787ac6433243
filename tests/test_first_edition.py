"""What users of the first edition have on their disks is read, resumed and answered as then."""

import gzip
import json
import pathlib
import shutil

import numpy as np
import pytest
import safetensors.numpy

import etcmodel
from etcmodel.checkpoints import release_names
from tests.tasks import programs

pytestmark = pytest.mark.slow

FIXTURES = pathlib.Path(__file__).parent / "fixtures" / "first_edition"
HOTPOTQA_MODEL = {
    "etc_config_file": "hotpotqa/etc_config.json",
    "vocab_file": "hotpotqa/vocab.txt",
    "max_long_seq_length": 320,
    "max_global_seq_length": 96,
    "output_dir": "hotpotqa/run",
}
HOTPOTQA_TRAINING = {
    "run_mode": "train",
    "train_tf_examples_filepattern": "hotpotqa/records/train-*.tfrecord",
    "train_batch_size": 2,
    "num_train_epochs": 1,
    "learning_rate": 0.01,
    "save_checkpoints_steps": 2,
    "steps_per_summary": 1,
}
HOTPOTQA_EVALUATION = {
    "run_mode": "evaluate",
    "predict_tf_examples_filepattern": "hotpotqa/records/dev-*.tfrecord",
    "predict_gold_json_file": "hotpotqa/hotpotqa_dev.json",
}
OTHER_TASKS = {
    "nq": (
        {
            "etc_config_file": "nq/etc_config.json",
            "vocab_file": "nq/vocab.txt",
            "max_seq_length": 128,
            "max_global_seq_length": 32,
            "question_len": 16,
            "stride": 64,
        },
        {"train_precomputed_file": "nq/records/train-*.tfrecord", "train_batch_size": 2},
        {
            "predict_precomputed_file": "nq/records/dev-*.tfrecord",
            "gold_cache_path": "nq/nq_dev.jsonl",
        },
        "long-best-threshold-f1",
    ),
    "wikihop": (
        {
            "source_model_config_file": "wikihop/etc_config.json",
            "vocab_file": "wikihop/vocab.txt",
            "long_seq_len": 160,
            "global_seq_len": 56,
        },
        {"input_tf_records_path": "wikihop/records/train-*.tfrecord", "train_batch_size": 2},
        {
            "dev_tf_records_path": "wikihop/records/dev-*.tfrecord",
            "input_dev_json_filepath": "wikihop/wikihop_dev.json",
        },
        "accuracy",
    ),
    "openkp": (
        {
            "etc_config_file": "openkp/etc_config.json",
            "bert_vocab_path": "openkp/vocab.txt",
            "long_max_length": 104,
            "global_max_length": 16,
            "url_num_code_points": 100,
        },
        {"input_tfrecord": "openkp/records/openkp_train-*.tfrecord", "batch_size": 2},
        {
            "eval_input_tfrecord": "openkp/records/openkp_dev-*.tfrecord",
            "eval_text_example_path": "openkp/openkp_dev.jsonl",
        },
        "f1@3",
    ),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A copy of the fixtures, as the current directory: run configurations hold relative paths."""
    shutil.copytree(FIXTURES, tmp_path, dirs_exist_ok=True)
    for packed in tmp_path.glob("*/export/*/*.gz"):
        packed.with_suffix("").write_bytes(gzip.decompress(packed.read_bytes()))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "hotpotqa"


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


def last_metrics(capsys):
    return json.loads(capsys.readouterr().out.splitlines()[-1])


def losses(path):
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [(line["step"], line["loss"], line["answer_begin_loss"]) for line in lines]


def test_a_run_is_evaluated_and_exported_with_the_results_it_had(folder, capsys):
    programs.fine_tune("hotpotqa", **HOTPOTQA_EVALUATION, **HOTPOTQA_MODEL)
    metrics, expected = last_metrics(capsys), read(folder / "expected_metrics.json")
    assert {name: metrics[name] for name in expected} == pytest.approx(expected)
    expected = read(folder / "expected_predictions.json")
    assert read(folder / "run" / "predictions.json") == expected
    programs.fine_tune("hotpotqa", run_mode="export", **HOTPOTQA_MODEL)
    assert (folder / "run" / "export" / "2" / "saved_model.pb").exists()


def test_a_run_is_resumed_where_it_was_stopped(folder):
    programs.fine_tune("hotpotqa", **HOTPOTQA_TRAINING, **HOTPOTQA_MODEL)
    resumed = losses(folder / "run" / "train_metrics.jsonl")
    expected = losses(folder / "expected_train_metrics.jsonl")
    assert [step for step, *_ in resumed] == [1, 2, 3, 4]
    np.testing.assert_allclose(resumed, expected, rtol=1e-4)


def test_an_export_answers_as_it_did(folder):
    programs.fine_tune(
        "hotpotqa",
        run_mode="predict",
        export_dir="hotpotqa/export",
        predict_input_json_file="hotpotqa/hotpotqa_dev.json",
        predictions_file="answers.json",
    )
    expected = read(folder / "expected_predictions.json")
    assert read(folder.parent / "answers.json") == expected


@pytest.mark.slow_cases(1)
@pytest.mark.parametrize("task", OTHER_TASKS)
def test_records_train_and_evaluate_a_model(folder, task, capsys):
    model, training, evaluation, metric = OTHER_TASKS[task]
    model = {**model, "output_dir": "run"}
    programs.fine_tune(task, run_mode="train", num_train_epochs=1, **training, **model)
    (line,) = (folder.parent / "run" / "train_metrics.jsonl").read_text().splitlines()
    assert np.isfinite(json.loads(line)["loss"])
    programs.fine_tune(task, run_mode="evaluate", **evaluation, **model)
    assert 0 <= last_metrics(capsys)[metric] <= 1


@pytest.mark.parametrize("directory", ["released", "tf2", "safetensors"])
def test_checkpoints_of_each_format_give_the_weights_of_the_run(directory):
    checkpoints = FIXTURES / "checkpoints"
    expected = safetensors.numpy.load_file(checkpoints / "safetensors" / "model.safetensors")
    model = etcmodel.load_pretrained(str(checkpoints / directory))
    weights = release_names(model)
    assert set(expected) >= set(weights) and len(weights) > 20
    for name, variable in weights.items():
        np.testing.assert_array_equal(variable, expected[name], err_msg=name)


@pytest.mark.exhaustive
def test_a_checkpoint_starts_a_new_run(folder):
    run = {**HOTPOTQA_TRAINING, **HOTPOTQA_MODEL, "output_dir": "new", "num_train_epochs": 0.25}
    programs.fine_tune("hotpotqa", init_checkpoint="checkpoints/released/model.ckpt", **run)
    ((step, loss, begin_loss),) = losses(folder.parent / "new" / "train_metrics.jsonl")
    random_weights = losses(folder / "expected_train_metrics.jsonl")[0]
    assert step == 1 and loss < random_weights[1] and begin_loss < random_weights[2]
