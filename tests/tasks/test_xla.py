"""Every task's training step and prediction as an XLA device runs them: compiled, and whole.

A strategy stands in for that of a TPU: what it is given to run, it compiles. The compiled programs
are then looked into: what is not in them cannot be asked of a TPU. Whole runs under `jit_compile`
have the losses of those without it, also with checkpointing.
"""

import json
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf

from etcmodel import training
from etcmodel.ops.dropout import seed_scope
from etcmodel.training import evaluator, trainer
from etcmodel.training.task import TrainDataRequest
from tests.tasks import first_editions, lowering, lowering_cases
from tests.tasks.trainers import BATCH_SIZE, build

pytestmark = pytest.mark.xla

# So narrow a layer would have hardly any gradient. XLA draws other random numbers than TensorFlow's
# kernels do: there is no dropout.
SIZES = {"hidden_size": 16, "intermediate_size": 16, "initializer_range": 0.2}
DROPOUT = {"hidden_dropout_prob": 0.3, "attention_probs_dropout_prob": 0.3}
CHECKPOINTING = {"grad_checkpointing_period": 1}
STEP = 1e-2


class CompilingStrategy(lowering.LoweringStrategy):
    """Runs what it compiles, as TPUStrategy does, and keeps it."""

    def run(self, fn, args=(), kwargs=None, options=None):
        specs = tf.nest.map_structure(lambda x: tf.TensorSpec(x.shape, x.dtype), args)
        compiled = tf.function(fn, jit_compile=True, autograph=False)
        self.programs.append(lowering.Program(self, compiled, specs))
        return tf.distribute.OneDeviceStrategy.run(self, compiled, args, kwargs, options)


@pytest.fixture(scope="module", params=[*first_editions.TASKS, "pretraining"])
def task(request, tmp_path_factory):
    if request.param == "pretraining":
        return lowering_cases.make_pretraining(tmp_path_factory.mktemp(request.param))
    options = {"mask_long_output": True} if request.param == "nq" else {}
    return first_editions.make(request.param, SIZES, **options)


def train(task, strategy):
    """Metrics of a step, and the weights after it."""
    model, trainer = build(task, strategy)
    metrics = trainer.train(tf.constant(1))
    metrics.pop("examples_per_second", None)
    return metrics, model.get_weights()


def predict(task, strategy):
    model, _ = build(task, strategy)
    predictor = evaluator.Predictor(model, strategy, select=task.model_features)
    return list(predictor(task.eval_dataset, BATCH_SIZE))


def plain_strategy():
    return tf.distribute.OneDeviceStrategy("CPU:0")


def check_programs(strategy):
    assert strategy.programs
    for program in strategy.programs:
        lowering.check(program)


def test_a_training_step_is_one_program_for_the_device(task):
    strategy = CompilingStrategy()
    metrics, weights = train(task, strategy)
    expected_metrics, expected_weights = train(task, plain_strategy())
    assert metrics == pytest.approx(expected_metrics, rel=1e-4)
    for weight, expected in zip(weights, expected_weights, strict=True):
        np.testing.assert_allclose(weight, expected, atol=1e-4)
    check_programs(strategy)


def test_a_prediction_is_one_program_for_the_device(task):
    strategy = CompilingStrategy()
    rows, expected_rows = predict(task, strategy), predict(task, plain_strategy())
    (features,) = task.eval_dataset(len(rows))
    for row, expected in zip(rows, expected_rows, strict=True):
        assert row.keys() == expected.keys()
        for name, value in row.items():
            if np.asarray(value).dtype.kind == "f":
                np.testing.assert_allclose(value, expected[name], atol=1e-4, err_msg=name)
            elif name in features:  # Places of the best logits may change where two are equal.
                np.testing.assert_array_equal(value, expected[name], err_msg=name)
    check_programs(strategy)


def losses(folder, sizes, **options):
    """Losses of three steps of a whole run."""
    task = first_editions.make("openkp", {**SIZES, "num_hidden_layers": 2, **sizes})
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


def test_compiled_layers_recompute_with_the_dropout_they_had():
    """The gradient is the slope of the loss, whose masks the seed decides, within one program."""
    sizes = {**SIZES, "num_hidden_layers": 2, **DROPOUT, **CHECKPOINTING}
    task = first_editions.make("openkp", sizes)
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
