"""A directory belongs to one run."""

import dataclasses

import pytest
import tensorflow as tf

from etcmodel import training
from etcmodel.training import run_directory
from tests.training import toy

pytestmark = pytest.mark.usefixtures("eagerly")


def test_the_same_run_may_come_back(tmp_path):
    config = {"training": {"learning_rate": 1e-5, "sizes": (1, (2, 3))}}
    run_directory.claim_directory(str(tmp_path / "run"), config)
    run_directory.claim_directory(str(tmp_path / "run"), config)


def test_another_run_is_refused_and_told_why(tmp_path):
    old = {"training": {"learning_rate": 1e-5, "optimizer": "adamw"}, "task": {"radius": 84}}
    new = {"training": {"learning_rate": 2e-5, "optimizer": "adamw"}, "task": {"length": 9}}
    run_directory.claim_directory(str(tmp_path), old)
    message = (
        "other options.*task.length: '\\(not set\\)' there, 9 now; task.radius: 84 there, "
        "'\\(not set\\)' now; training.learning_rate: 1e-05 there, 2e-05 now$"
    )
    with pytest.raises(run_directory.OtherRunError, match=message):
        run_directory.claim_directory(str(tmp_path), new)


def test_a_worker_only_compares(tmp_path):
    run_directory.claim_directory(str(tmp_path), {"training": {}}, write=False)
    assert not list(tmp_path.iterdir())


def test_a_directory_without_checkpoint_has_no_best_one(tmp_path):
    with pytest.raises(ValueError, match="must hold a checkpoint"):
        run_directory.best_checkpoint(str(tmp_path))


def test_a_run_that_is_done_claims_its_directory_again(tmp_path):
    task, output_dir = toy.ToyTask(toy.write_records(str(tmp_path))), tmp_path / "run"
    run = toy.config(output_dir, num_train_epochs=1.0)
    training.train(task, run)
    kept = (output_dir / "run_config.json").read_text()
    (output_dir / "run_config.json").unlink()
    training.train(task, run)
    assert (output_dir / "run_config.json").read_text() == kept
    with pytest.raises(training.OtherRunError, match="train_batch_size: 12 there, 4 now"):
        training.train(task, dataclasses.replace(run, train_batch_size=4))


class TooLargeTask(toy.ToyTask):
    """Its first step fails as long as it is too large: while it is traced, or when it runs."""

    when = "tracing"

    def loss(self, outputs, features):
        if self.when == "tracing":
            raise ValueError("too large for the memory")
        losses = super().loss(outputs, features)
        if self.when == "running":
            with tf.control_dependencies([tf.debugging.Assert(False, ["too large"])]):
                losses = tf.nest.map_structure(tf.identity, losses)
        return losses


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("when", ["tracing", "running"])
def test_a_run_whose_first_step_fails_does_not_claim_its_directory(tmp_path, when):
    task, output_dir = TooLargeTask(toy.write_records(str(tmp_path))), tmp_path / "run"
    task.when = when
    run = training.TrainingConfig(
        output_dir=str(output_dir), train_batch_size=12, num_train_epochs=1.0
    )
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match="too large"):
        training.train(task, run)
    assert not (output_dir / "run_config.json").exists()
    task.when = "never"
    training.train(task, dataclasses.replace(run, train_batch_size=4))
    assert run_directory.read_run_config(str(output_dir))["training"]["train_batch_size"] == 4
    with pytest.raises(training.OtherRunError, match="train_batch_size: 4 there, 12 now"):
        training.train(task, run)
