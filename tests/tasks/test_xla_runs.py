"""Whole runs under `jit_compile`: the losses of those without it, also with checkpointing."""

import json
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf

from etcmodel import training
from etcmodel.ops.dropout import seed_scope
from etcmodel.training import trainer
from etcmodel.training.task import TrainDataRequest
from tests.tasks.test_xla import make_openkp, plain_strategy
from tests.tasks.trainers import BATCH_SIZE, build

pytestmark = pytest.mark.xla

DROPOUT = {"hidden_dropout_prob": 0.3, "attention_probs_dropout_prob": 0.3}
CHECKPOINTING = {"grad_checkpointing_period": 1}
STEP = 1e-2


def losses(folder, sizes, **options):
    """Losses of three steps of a whole run."""
    task = make_openkp(folder, num_hidden_layers=2, **sizes)
    config = training.TrainingConfig(
        output_dir=str(folder),
        learning_rate=0.01,
        train_batch_size=4,
        num_train_epochs=12 / task.num_train_examples,
        steps_per_summary=1,
        **options,
    )
    with mock.patch.object(type(task), "eval_dataset", return_value=None):
        training.train(task, config)
    lines = (folder / "train_metrics.jsonl").read_text().splitlines()
    found = [json.loads(line) for line in lines]
    assert [line["step"] for line in found] == [1, 2, 3]
    return [line["loss"] for line in found]


@pytest.mark.parametrize("num_parts", [1, 2])
def test_compiled_training_has_the_losses_of_training(tmp_path, num_parts):
    options = {"gradient_accumulation_steps": num_parts}
    expected = losses(tmp_path / "plain", {}, **options)
    assert expected[2] < expected[0]
    for sizes in ({}, CHECKPOINTING):
        folder = tmp_path / f"compiled{len(sizes)}"
        found = losses(folder, sizes, jit_compile=True, **options)
        np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_compiled_layers_recompute_with_the_dropout_they_had(tmp_path):
    """The gradient is the slope of the loss, whose masks the seed decides, within one program."""
    task = make_openkp(tmp_path, num_hidden_layers=2, **DROPOUT, **CHECKPOINTING)
    model, _ = build(task, plain_strategy())
    features = next(iter(task.train_dataset(TrainDataRequest(global_batch_size=BATCH_SIZE))))

    @tf.function(jit_compile=True)
    def run(features, seed):
        with tf.GradientTape() as tape, seed_scope(seed):
            outputs = trainer.call_model(model, features, training=True, select=task.model_features)
            loss = task.loss(outputs, features)["loss"]
        gradients = tape.gradient(loss, model.trainable_variables, unconnected_gradients="zero")
        return loss, [tf.convert_to_tensor(x) for x in gradients]

    seed, other_seed = tf.constant([3, 4]), tf.constant([3, 5])
    (_, gradients), (_, others) = run(features, seed), run(features, other_seed)
    norm = tf.linalg.global_norm(gradients)
    values = []
    for change in (STEP, -2 * STEP):
        for variable, gradient in zip(model.trainable_variables, gradients, strict=True):
            variable.assign_add(change * gradient / norm)
        values.append(run(features, seed)[0])
    slope = (values[0] - values[1]) / (2 * STEP)
    np.testing.assert_allclose(norm, slope, rtol=0.02)
    pairs = zip(others, gradients, strict=True)
    slope_by_others = tf.add_n([tf.reduce_sum(x * y) for x, y in pairs]) / norm
    assert abs(slope_by_others / norm - 1) > 0.1
