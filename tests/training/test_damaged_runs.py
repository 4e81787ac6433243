"""Damaged run directories: the last whole checkpoint is taken, or one line names the file."""

import functools
import json
import pathlib
import re
import shutil

import numpy as np
import pytest
import tensorflow as tf
from absl import logging

from etcmodel import training
from etcmodel.training import progress, run_directory, saving
from tests.training import toy

pytestmark = pytest.mark.usefixtures("eagerly")

config = functools.partial(toy.config, num_train_epochs=3.0, save_checkpoints_steps=2)


@pytest.fixture(scope="module")
def whole_run(records, tmp_path_factory):
    """The directory of a run of six steps with checkpoints of steps 2, 4 and 6."""
    output_dir = tmp_path_factory.mktemp("run")
    training.train(toy.ToyTask(records, evaluates=True), config(output_dir))
    return output_dir


@pytest.fixture
def run(whole_run, tmp_path):
    return pathlib.Path(shutil.copytree(whole_run, tmp_path / "run"))


@pytest.fixture
def warnings(monkeypatch):
    told = []
    monkeypatch.setattr(logging, "warning", lambda text, *args: told.append(text % args))
    return told


def cut(path, share):
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("suffix", ["data-00000-of-00001", "index"])
@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_a_run_goes_back_to_the_last_whole_checkpoint_and_says_so(
    records, whole_run, run, warnings, suffix, share
):
    cut(run / f"ckpt-6.{suffix}", share)
    training.train(toy.ToyTask(records, evaluates=True), config(run))
    (told,) = [line for line in warnings if "Going back" in line]
    assert re.fullmatch(
        f"{run}/ckpt-6 cannot be read: .*. Going back to the checkpoint before it.", told
    )
    resumed, expected = toy.values(run), toy.values(whole_run)
    assert resumed.keys() == expected.keys()
    for name in expected:
        np.testing.assert_array_equal(resumed[name], expected[name], err_msg=name)
    log = (run / "train_metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in log] == [2, 4, 6]


def test_a_run_whose_checkpoints_are_all_damaged_is_not_begun_anew(records, run, warnings):
    for path in run.glob("ckpt-*.data*"):
        cut(path, 0.5)
    with pytest.raises(ValueError, match=f"{run}/ckpt-6 cannot be read: .*None of the older"):
        training.train(toy.ToyTask(records, evaluates=True), config(run))
    assert len(warnings) == 3 and len(list(run.glob("ckpt-*.index"))) == 3


FOREIGN = [b"", b"{}", b"\xff\xfe\x00", b'{"a": 1}', b"[" * 5000, b"model_checkpoint_path: 3"]


@pytest.mark.parametrize("content", FOREIGN, ids=lambda content: str(content)[:20])
def test_a_list_of_checkpoints_that_is_none_is_named(records, run, content):
    (run / "checkpoint").write_bytes(content)
    with pytest.raises(ValueError, match=f"^{run}/checkpoint: is no list of checkpoints"):
        training.train(toy.ToyTask(records, evaluates=True), config(run))
    shutil.rmtree(run / "best")
    with pytest.raises(ValueError, match=f"^{run}/checkpoint: is no list of checkpoints"):
        training.best_checkpoint(str(run))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is not valid JSON"),
        ("[1]", "must hold a JSON object, not an array"),
        ("[" * 5000, "is not valid JSON: nested deeper than 100 levels"),
        ('{"task": 3}', ": `task` must be a JSON object"),
        ('{"training": [1]}', ": `training` must be a JSON object"),
        ('{"notes": "x"}', ": `notes` must be a JSON object"),
    ],
)
def test_a_foreign_run_config_is_named(records, run, content, message):
    (run / "run_config.json").write_text(content)
    with pytest.raises(ValueError, match=rf"^{run}/run_config\.json ?{message}.*Restore the file"):
        training.train(toy.ToyTask(records, evaluates=True), config(run))


@pytest.mark.parametrize("line", ["3", "[]", '{"loss": 2}', '{"step": "2"}', '{"step": true}'])
@pytest.mark.parametrize("name", ["train_metrics.jsonl", "eval_metrics.jsonl"])
def test_a_foreign_metrics_file_is_named(records, run, name, line):
    path = run / name
    path.write_text(path.read_text() + line + "\n")
    number = len(path.read_text().splitlines())
    with pytest.raises(ValueError, match=f"^{path}: line {number} is no JSON object with an int"):
        training.train(toy.ToyTask(records, evaluates=True), config(run))


@pytest.mark.parametrize("end", ['{"step": 8, "lo', "[" * 5000, "\ufffd"])
def test_a_line_that_was_not_written_to_its_end_does_not_count(tmp_path, end):
    (tmp_path / "a.jsonl").write_bytes(b'{"step": 2}\n' + end.encode() + b"\xc3")
    assert progress.MetricsLog(str(tmp_path / "a.jsonl")).read() == [{"step": 2}]


@pytest.mark.parametrize("content", ['"x"', "[]", "{", "true", "\xff"])
def test_a_foreign_best_metric_is_named(tmp_path, content):
    (tmp_path / "best").mkdir()
    (tmp_path / "best" / "best_metric.json").write_bytes(content.encode("latin-1"))
    with pytest.raises(ValueError, match=f"^{tmp_path}/best/best_metric.json .*Restore the file"):
        saving.BestCheckpoint(str(tmp_path), "f1", higher_is_better=True, save=None)


def test_checkpoints_are_told_from_the_newest_to_the_oldest(run):
    names = [pathlib.Path(path).name for path in run_directory.checkpoint_paths(str(run))]
    assert names == ["ckpt-6", "ckpt-4", "ckpt-2"]
    assert run_directory.checkpoint_paths(str(run / "train")) == []


def test_weights_that_tensorflow_has_written_alone_are_evaluated(records, whole_run, tmp_path):
    task, run = toy.ToyTask(records, evaluates=True), config(whole_run)
    best = training.load_model(task, run)
    path = tf.train.Checkpoint(model=best).write(str(tmp_path / "weights"))
    assert training.evaluate(task, run, path) == training.evaluate(task, run)


def test_checkpoints_that_no_training_has_saved_are_told_in_one_line(records, run, tmp_path):
    task = toy.ToyTask(records, evaluates=True)
    model = training.load_model(task, config(run))
    tf.train.Checkpoint(model=model).write(str(run / "ckpt-6"))
    with pytest.raises(ValueError, match=f"'{run}/ckpt-6' holds weights without the state of a"):
        training.train(task, config(run))
    tf.train.Checkpoint(other=model).write(str(tmp_path / "other"))
    with pytest.raises(ValueError, match=f"'{tmp_path}/other' lacks weights of the model"):
        training.evaluate(task, config(run), str(tmp_path / "other"))
    values = [tf.ones(3)]
    tf.raw_ops.SaveV2(
        prefix=str(run / "ckpt-6"), tensor_names=["w"], shape_and_slices=[""], tensors=values
    )
    with pytest.raises(ValueError, match=f"^{run}/ckpt-6: holds variables by their names"):
        training.train(task, config(run))
    with pytest.raises(ValueError, match=f"No variable of .* is in '{run}/ckpt-6'"):
        training.evaluate(task, config(run), str(run / "ckpt-6"))
