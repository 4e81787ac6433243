"""Training on a full disk: one line, the last checkpoint stays whole, and a rerun goes on from it.

A limit on the size of files stands for the full disk, as in `tests/test_write_failures.py`.
"""

import functools
import os
import shutil

import numpy as np
import pytest
import tensorflow as tf

from etcmodel import atomic_files, program_end, training
from etcmodel.training import progress
from tests import test_write_failures
from tests.preprocessing.jobs import files_of_at_most
from tests.training import toy

pytestmark = pytest.mark.usefixtures("eagerly")

LARGEST = 6200  # Bytes: more than a checkpoint's data.


config = functools.partial(toy.config, save_checkpoints_steps=2, steps_per_summary=1)


class StoppedTask(toy.ToyTask):
    """Its run ends after the first checkpoint, before that was evaluated."""

    def evaluate(self, predictions):
        raise ValueError("stopped")


@pytest.fixture(scope="module")
def runs(records, tmp_path_factory):
    """Directories of a run to the end, and of one that was stopped after its first checkpoint."""
    whole, begun = (tmp_path_factory.mktemp(name) for name in ("whole", "begun"))
    training.train(toy.ToyTask(records, evaluates=True), config(whole))
    with pytest.raises(ValueError, match="stopped"):
        training.train(StoppedTask(records, evaluates=True), config(begun))
    return whole, begun


def assert_same(output_dir, expected_dir):
    found, expected = toy.values(output_dir), toy.values(expected_dir)
    assert found.keys() == expected.keys()
    for name in expected:
        np.testing.assert_array_equal(found[name], expected[name], err_msg=name)


def train_on_a_full_disk(task, run, size, capsys):
    """The line that told of it; None if all could be written."""
    capsys.readouterr()
    try:
        with program_end.ends_in_one_line(), files_of_at_most(size):
            training.train(task, run)
    except SystemExit as ended:
        (line,) = [x for x in capsys.readouterr().err.splitlines() if not x.startswith("step ")]
        assert ended.code == 1 and line.startswith("error: ")
        return line
    return None


def unfinished(output_dir):
    return [path for path in output_dir.rglob("*") if "temp" in path.name or ".tmp" in path.name]


@pytest.mark.slow
@pytest.mark.parametrize("start", ["new", "resumed"])
def test_training_on_a_full_disk_loses_nothing_that_was_complete(
    records, runs, tmp_path, capsys, start
):
    whole, begun = runs
    task, failed = toy.ToyTask(records, evaluates=True), []
    for size in test_write_failures.sizes_up_to(LARGEST, 10):
        output_dir = tmp_path / str(size)
        if start == "resumed":
            shutil.copytree(begun, output_dir)
        line = train_on_a_full_disk(task, config(output_dir), size, capsys)
        failed.append(line is not None)
        assert line is None or str(output_dir) in line
        assert not unfinished(output_dir) and "training.lock" not in os.listdir(output_dir)
        if line and start == "resumed":
            if training.best_checkpoint(str(output_dir)).endswith("ckpt-2"):
                assert_same(output_dir, begun)
            training.train(task, config(output_dir))
            assert_same(output_dir, whole)
    assert failed == sorted(failed, reverse=True) and sum(failed) >= 8 and not failed[-1]


@pytest.mark.slow
def test_what_a_killed_process_left_of_a_checkpoint_is_removed(records, runs, tmp_path):
    whole, begun = runs
    output_dir = tmp_path / "run"
    shutil.copytree(begun, output_dir)
    for folder in (output_dir / "ckpt-3_temp", output_dir / "best" / "ckpt-1_temp"):
        folder.mkdir(parents=True)
        (folder / "part-00000-of-00001.data-00000-of-00001").write_bytes(b"half")
    (output_dir / "checkpoint.tmp0123456789abcdef").write_text("model_checkp")
    training.train(toy.ToyTask(records, evaluates=True), config(output_dir))
    assert not unfinished(output_dir)
    assert_same(output_dir, whole)


def test_metrics_on_a_full_disk_keep_the_lines_before(tmp_path):
    log = progress.MetricsLog(str(tmp_path / "train_metrics.jsonl"))
    log.append(1, {"loss": 2.0})
    first = (tmp_path / "train_metrics.jsonl").stat().st_size
    for size in range(first, first + 21, 4):
        with (
            pytest.raises((OSError, tf.errors.OpError), match="train_metrics.jsonl"),
            files_of_at_most(size),
        ):
            log.append(2, {"loss": 1.0})
        assert log.read() == [{"step": 1, "loss": 2.0}]
    log.append(2, {"loss": 1.0})
    assert [line["step"] for line in log.read()] == [1, 2]


def test_predictions_on_a_full_disk_keep_the_older_ones(tmp_path, capsys):
    path = tmp_path / "predictions.json"
    atomic_files.write_json(path, {"a": "old"})
    for size in test_write_failures.sizes_up_to(20_000, 6):

        def write(size=size):
            with files_of_at_most(size):
                atomic_files.write_json(path, {str(i): "answer" for i in range(2000)})

        assert test_write_failures.fails_in_one_line(write, tmp_path, capsys)
