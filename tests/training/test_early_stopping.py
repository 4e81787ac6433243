"""Runs that end when their evaluations bring nothing better."""

import json
import math

import pytest

from etcmodel import training
from etcmodel.finetuning import trained_run
from etcmodel.training import run_directory
from tests.training import toy

pytestmark = pytest.mark.usefixtures("eagerly")


def train(records, output_dir, *, evaluates=True, changes=None, kind=toy.ToyTask, **options):
    given = {"train_batch_size": 12, "num_train_epochs": 4.0, "save_checkpoints_steps": 1}
    config = training.TrainingConfig(output_dir=str(output_dir), **{**given, **options})
    return training.train(kind(records, evaluates=evaluates), config, changes=changes)


def evaluated_steps(output_dir):
    text = (output_dir / "eval_metrics.jsonl").read_text(encoding="utf-8")
    return [json.loads(line)["step"] for line in text.splitlines()]


def test_a_run_that_learns_nothing_ends_and_stays_ended(records, tmp_path):
    options = {"learning_rate": 0.0, "early_stopping_patience": 2}
    metrics = train(records, tmp_path, **options)
    assert evaluated_steps(tmp_path) == [1, 2, 3]  # The first is the best; two are no better.
    assert train(records, tmp_path, **options) == metrics
    assert evaluated_steps(tmp_path) == [1, 2, 3]
    assert training.best_checkpoint(str(tmp_path)).endswith("ckpt-1")


def test_a_metric_that_is_no_number_is_the_worst(records, tmp_path):
    class Diverging(toy.ToyTask):
        values = iter([math.nan, 0.5, math.nan, 0.4, 0.4, 0.5, 0.3])

        def evaluate(self, predictions):
            return {**super().evaluate(predictions), self.best_metric: next(self.values)}

    train(records, tmp_path, kind=Diverging, early_stopping_patience=2)
    assert not toy.ToyTask.higher_is_better
    assert evaluated_steps(tmp_path) == list(range(1, 7))
    assert training.best_checkpoint(str(tmp_path)).endswith("ckpt-4")


@pytest.mark.slow
def test_a_run_that_learns_goes_to_its_end(records, tmp_path):
    train(records, tmp_path, learning_rate=0.01, early_stopping_patience=3)
    assert evaluated_steps(tmp_path) == list(range(1, 9))


@pytest.mark.slow
def test_a_run_may_end_early_at_a_step_at_which_it_was_only_stopped(records, tmp_path):
    options = {"learning_rate": 0.0, "num_train_epochs": 2.0}
    metrics = train(records, tmp_path, **options)
    log = tmp_path / "eval_metrics.jsonl"
    log.write_text("".join(log.read_text().splitlines(keepends=True)[:-1]))
    changes = {"num_train_epochs": 4.0, "save_checkpoints_steps": 3, "early_stopping_patience": 1}
    assert train(records, tmp_path, changes=changes, **options) == metrics
    assert evaluated_steps(tmp_path) == [1, 2, 3]


def test_patience_needs_evaluations(records, tmp_path):
    with pytest.raises(ValueError, match="`early_stopping_patience` needs evaluation data"):
        train(records, tmp_path, evaluates=False, early_stopping_patience=1)
    assert not (tmp_path / "run_config.json").exists()


@pytest.mark.slow
def test_a_run_that_stops_at_a_step_keeps_the_rates_of_the_whole_one(records, tmp_path):
    """Four steps are planned, and the run with more than two is another one."""
    options = {"learning_rate": 0.01, "warmup_proportion": 0.0, "steps_per_summary": 1}
    options["num_train_epochs"] = 2.0
    train(records, tmp_path, stop_at_step=2, **options)
    assert evaluated_steps(tmp_path) == [1, 2]
    lines = (tmp_path / "train_metrics.jsonl").read_text().splitlines()
    rates = [json.loads(line)["learning_rate"] for line in lines]
    assert rates == pytest.approx([0.01 * (1 - step / 4) for step in range(2)])
    train(records, tmp_path, stop_at_step=2, **options)
    assert trained_run.TrainedRun.find(str(tmp_path)).last_step == 2
    with pytest.raises(training.OtherRunError, match="training.stop_at_step: 2 there, None now"):
        train(records, tmp_path, **options)


@pytest.mark.slow
def test_a_changed_plan_stops_at_the_step_all_the_same(records, tmp_path):
    options = {"learning_rate": 0.01, "warmup_proportion": 0.0, "stop_at_step": 3}
    train(records, tmp_path, num_train_epochs=1.0, **options)
    assert evaluated_steps(tmp_path) == [1, 2]
    train(records, tmp_path, changes={"num_train_epochs": 2.0}, num_train_epochs=1.0, **options)
    assert evaluated_steps(tmp_path) == [1, 2, 3]
    assert trained_run.TrainedRun.find(str(tmp_path)).last_step == 3
    assert run_directory.last_step(str(tmp_path), 2) == 3
