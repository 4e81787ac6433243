"""Models with heads, trained by the trainer of this library."""

import numpy as np
import pytest

import etcmodel
from etcmodel import training
from tests.models import head_cases


def run_of(tmp_path, **options):
    defaults = {"learning_rate": 0.01, "train_batch_size": 32, "num_train_epochs": 8.0}
    return training.TrainingConfig(output_dir=str(tmp_path), **{**defaults, **options})


def task_of(name):
    return training.HeadTask(
        lambda: head_cases.make(name), head_cases.data(name), head_cases.data(name, 40, seed=1)
    )


@pytest.mark.slow
def test_a_run_learns_and_its_model_is_kept_in_a_folder(tmp_path):
    task, run = task_of("sequence"), run_of(tmp_path / "run", num_train_epochs=14.0)
    metrics = training.train(task, run)
    assert metrics["accuracy"] > 0.9 and metrics["loss"] < 0.4
    model = training.load_model(task, run)
    model.save_pretrained(tmp_path / "model")
    features, _ = head_cases.data("sequence", 4)
    loaded = etcmodel.from_pretrained(tmp_path / "model")
    np.testing.assert_array_equal(loaded(features), model(features))


@pytest.mark.slow
def test_several_outputs_have_losses_and_metrics_by_name(tmp_path):
    metrics = training.train(task_of("question"), run_of(tmp_path, num_train_epochs=2.0))
    outputs = ("start", "end", "type", "evidence")
    names = {f"{name}_{kind}" for name in outputs for kind in ("loss", "accuracy")}
    assert set(metrics) == {"loss", *names}
    total = sum(metrics[f"{name}_loss"] for name in outputs)
    np.testing.assert_allclose(metrics["loss"], total, rtol=1e-5)


def test_the_loss_is_that_of_keras():
    task = task_of("question")
    model = task.build_model()
    features, labels = head_cases.data("question", 4)
    outputs = model(features)
    named = {f"labels/{name}": x for name, x in labels.items()}
    found = task.loss(outputs, {**features, **named})
    expected = {name: loss(labels[name], outputs[name]) for name, loss in task._losses.items()}
    for name, value in expected.items():
        np.testing.assert_allclose(found[f"{name}_loss"], value, rtol=1e-6)
    np.testing.assert_allclose(found["loss"], sum(map(float, expected.values())), rtol=1e-6)


def test_arrays_of_other_lengths_are_refused():
    features, labels = head_cases.data("sequence", 4)
    with pytest.raises(ValueError, match="as many examples. Received: .*'labels/logits': 3"):
        training.HeadTask(lambda: None, (features, labels[:3]))
    with pytest.raises(ValueError, match="There are no labels for"):
        task = training.HeadTask(lambda: head_cases.make("sequence"), (features, {"other": labels}))
        task.loss({"logits": task.build_model()(features)}, features)
