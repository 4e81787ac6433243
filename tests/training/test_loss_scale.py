"""Steps with a scaled loss: which are skipped, which stop the run."""

import json

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from etcmodel import training
from etcmodel.training import model_garden
from etcmodel.training import optimizer as optimizer_lib
from etcmodel.training import trainer as trainer_lib
from tests.training import toy

pytestmark = pytest.mark.usefixtures("eagerly")

FIRST_SCALE = 2.0**15


class SteepTask(toy.ToyTask):
    """Its loss is so large that float16 gradients overflow until the scale has come down."""

    def loss(self, outputs, features):
        losses = super().loss(outputs, features)
        return {**losses, "loss": 2.0**8 * losses["loss"]}


class NoGradientTask(toy.ToyTask):
    """Its loss is finite, but the gradient is not a number."""

    def loss(self, outputs, features):
        losses = super().loss(outputs, features)
        nothing = tf.sqrt(tf.reduce_sum(outputs["sum"]) * 0.0)
        return {**losses, "loss": losses["loss"] + nothing}


class NoLossTask(toy.ToyTask):
    """Its loss is small, so that no gradient overflows, but not a number at some steps."""

    def __init__(self, records, is_bad):
        super().__init__(records)
        self.is_bad, self.step = is_bad, None

    def loss(self, outputs, features):
        losses = super().loss(outputs, features)
        factor = tf.where(self.is_bad(self.step), np.nan, 2.0**-6)
        return {**losses, "loss": factor * losses["loss"]}


def make_trainer(task, **options):
    """A trainer and its parts, as a run puts them together."""
    config = training.TrainingConfig(
        train_batch_size=12, learning_rate=0.01, **{"mixed_precision": "mixed_float16", **options}
    )
    tf_keras.mixed_precision.set_global_policy(config.mixed_precision)
    tf_keras.utils.set_random_seed(0)
    model = task.build_model()
    optimizer = optimizer_lib.build_optimizer(config, config.learning_rate)
    global_step = model_garden.create_global_step()
    task.step = global_step
    trainer = trainer_lib.Trainer(
        task=task,
        model=model,
        optimizer=optimizer,
        config=config,
        strategy=tf.distribute.get_strategy(),
        global_step=global_step,
    )
    return trainer, model, optimizer


def steps(trainer, model, optimizer, num_steps):
    """After each step: (metrics, loss scale, weights)."""
    for _ in range(num_steps):
        metrics = trainer.train(tf.constant(1))
        yield metrics, float(optimizer.loss_scale), model.get_weights()


def are_equal(weights, others):
    return all(np.array_equal(x, y) for x, y in zip(weights, others, strict=True))


@pytest.mark.usefixtures("in_graphs")
def test_steps_are_skipped_until_the_scale_is_low_enough_and_means_are_over_the_others(records):
    parts = make_trainer(SteepTask(records))
    before, scale_before = parts[1].get_weights(), FIRST_SCALE
    was_taken, one_by_one = [], []
    for metrics, scale, weights in steps(*parts, num_steps=14):
        was_taken.append(scale == scale_before)
        one_by_one.append(metrics)
        assert np.isfinite(list(metrics.values())).all()
        assert ("gradient_norm" in metrics) is was_taken[-1]
        assert are_equal(weights, before) is not was_taken[-1]
        if not was_taken[-1]:
            assert scale == scale_before / 2
        before, scale_before = weights, scale
    num_skipped = was_taken.index(True)
    assert 1 <= num_skipped < 14 and all(was_taken[num_skipped:])

    trainer, *_ = make_trainer(SteepTask(records))
    together = trainer.train(tf.constant(14))
    for name in ("loss", "gradient_norm", "squared"):
        values = [metrics[name] for metrics in one_by_one if name in metrics]
        np.testing.assert_allclose(together[name], np.mean(values), rtol=1e-4)


def test_a_gradient_that_no_scale_makes_finite_stops_the_run(records):
    """After 15 halvings the scale is 1: the 16th step cannot be blamed on it."""
    parts = make_trainer(NoGradientTask(records))
    weights = parts[1].get_weights()
    scales = [scale for _, scale, *_ in steps(*parts, num_steps=15)]
    assert scales == [2.0**n for n in range(14, -1, -1)]
    with pytest.raises(training.NonFiniteLossError, match="The gradient of step 16 is not finite"):
        parts[0].train(tf.constant(1))
    assert are_equal(parts[1].get_weights(), weights)


def test_a_loss_that_no_scale_makes_finite_stops_the_run_before_it_is_saved(records, tmp_path):
    config = training.TrainingConfig(
        output_dir=str(tmp_path),
        train_batch_size=12,
        num_train_epochs=10.0,
        mixed_precision="mixed_float16",
    )
    task = NoLossTask(records, is_bad=lambda step: True)
    with pytest.raises(training.NonFiniteLossError, match="The loss of step 16 is not finite"):
        training.train(task, config)
    assert not list(tmp_path.glob("*.index"))


def test_without_a_scale_a_gradient_that_is_not_finite_stops_the_run_at_once(records):
    trainer, *_ = make_trainer(NoGradientTask(records), mixed_precision="float32")
    with pytest.raises(training.NonFiniteLossError, match="The gradient of step 1 is not finite"):
        trainer.train(tf.constant(1))


def test_a_single_bad_step_is_skipped_and_leaves_no_trace_in_the_metrics(records):
    parts = make_trainer(NoLossTask(records, is_bad=lambda step: tf.equal(step, 2)))
    before, scales = parts[1].get_weights(), []
    for step, (metrics, scale, weights) in enumerate(steps(*parts, num_steps=5)):
        json.loads(json.dumps(metrics), parse_constant=pytest.fail)
        assert ("loss" in metrics) is (step != 2)
        assert are_equal(weights, before) is (step == 2)
        scales.append(scale)
        before = weights
    assert scales == [FIRST_SCALE, FIRST_SCALE, FIRST_SCALE / 2, FIRST_SCALE / 2, FIRST_SCALE / 2]
