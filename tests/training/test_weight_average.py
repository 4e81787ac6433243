"""The moving average of the weights, in training and in all that reads its checkpoints."""

import functools
import json
import pathlib
import shutil

import numpy as np
import pytest
import tensorflow as tf

from etcmodel import training
from etcmodel.checkpoints import sources
from etcmodel.training import run, run_directory
from tests.training import toy

pytestmark = pytest.mark.usefixtures("eagerly")

DECAY = 0.35
NUM_STEPS = 6  # So that (1 + t) / (10 + t) is less at first, 0.1, and more at the end, 0.4.


config = functools.partial(
    toy.config,
    learning_rate=0.05,
    num_train_epochs=NUM_STEPS / 2,
    save_checkpoints_steps=4,
    keep_checkpoint_max=30,
    steps_per_summary=4,
)


def task(records):
    return toy.ToyTask(records, dropout=0.3, evaluates=True)


@pytest.fixture(scope="module")
def averaged(records, tmp_path_factory):
    """A run with the average, all of whose steps are saved."""
    run = config(tmp_path_factory.mktemp("averaged"), ema_decay=DECAY, save_checkpoints_steps=1)
    training.train(task(records), run)
    return run


def trained_weights(run, step):
    """The weights that the optimizer moves, in the model's order."""
    reader = tf.train.load_checkpoint(f"{run.output_dir}/ckpt-{step}")
    suffix = ".ATTRIBUTES/VARIABLE_VALUE"
    names = [name for name in reader.get_variable_to_shape_map() if "trained_weights/" in name]
    numbers = sorted(int(name.split("/")[1]) for name in names)
    return [reader.get_tensor(f"trained_weights/{i}/{suffix}") for i in numbers]


def weights(records, run, checkpoint):
    return training.load_model(task(records), run, checkpoint).get_weights()


def test_checkpoints_have_the_average_as_the_weights(records, averaged):
    expected = run.build_model(task(records), averaged).get_weights()
    for step in range(NUM_STEPS):
        decay = min(DECAY, (1 + step) / (10 + step))
        current = trained_weights(averaged, step + 1)
        assert len(current) == len(expected)
        expected = [decay * a + (1 - decay) * w for a, w in zip(expected, current, strict=True)]
    found = weights(records, averaged, f"{averaged.output_dir}/ckpt-{NUM_STEPS}")
    for average, value in zip(found, expected, strict=True):
        np.testing.assert_allclose(average, value, atol=1e-6)
    distance = max(np.abs(a - w).max() for a, w in zip(expected, current, strict=True))
    assert distance > 1e-3


def test_converters_find_the_average_alone(averaged):
    source = sources.open_source(f"{averaged.output_dir}/ckpt-{NUM_STEPS}")
    plain = sources.open_source(training.best_checkpoint(averaged.output_dir))
    assert source.shapes == plain.shapes
    assert "trained_weights/0" in source.training_state
    assert not any("average" in name for name in source.shapes)


@pytest.mark.slow
def test_the_training_is_that_without_an_average(records, averaged, tmp_path):
    plain = config(tmp_path)
    training.train(task(records), plain)
    assert "trained_weights" not in "".join(toy.values(f"{tmp_path}/ckpt-{NUM_STEPS}"))
    expected = weights(records, plain, f"{tmp_path}/ckpt-{NUM_STEPS}")
    for value, other in zip(trained_weights(averaged, NUM_STEPS), expected, strict=True):
        np.testing.assert_array_equal(value, other)


def test_evaluations_and_the_best_checkpoint_are_of_the_average(records, averaged):
    path = pathlib.Path(averaged.output_dir)
    lines = [json.loads(line) for line in (path / "eval_metrics.jsonl").read_text().splitlines()]
    for line in (lines[0], lines[-1]):
        checkpoint = f"{path}/ckpt-{line.pop('step')}"
        assert training.evaluate(task(records), averaged, checkpoint) == line
    chosen = training.best_checkpoint(str(path))
    assert f"/{run_directory.BEST}/" in chosen
    last = chosen.rpartition("-")[2]
    for value, other in zip(
        weights(records, averaged, chosen),
        weights(records, averaged, f"{path}/ckpt-{last}"),
        strict=True,
    ):
        np.testing.assert_array_equal(value, other)


@pytest.mark.slow
def test_a_resumed_run_equals_one_that_was_not_stopped_bit_by_bit(records, averaged, tmp_path):
    stopped = shutil.copytree(averaged.output_dir, tmp_path / "stopped")
    for step in range(4, NUM_STEPS + 1):
        for file in stopped.glob(f"ckpt-{step}.*"):
            file.unlink()
    lines = (
        f'{name}: "ckpt-3"\n' for name in ("model_checkpoint_path", "all_model_checkpoint_paths")
    )
    (stopped / "checkpoint").write_text("".join(lines))
    resumed = config(stopped, ema_decay=DECAY, save_checkpoints_steps=1)
    training.train(task(records), resumed)
    of_last = f"ckpt-{NUM_STEPS}"
    found, expected = (toy.values(f"{x}/{of_last}") for x in (stopped, averaged.output_dir))
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)


@pytest.mark.slow
def test_an_average_begins_with_the_initial_checkpoint(records, averaged, tmp_path):
    still = {"learning_rate": 0.0, "num_train_epochs": 1.0, "ema_decay": 0.5}
    first = f"{averaged.output_dir}/ckpt-{NUM_STEPS}"
    run = config(tmp_path, init_checkpoint=first, **still)
    training.train(task(records), run)
    expected = weights(records, averaged, first)
    for value, other in zip(weights(records, run, f"{tmp_path}/ckpt-2"), expected, strict=True):
        np.testing.assert_array_equal(value, other)


def test_a_run_without_average_does_not_go_on_with_one(records, averaged):
    with pytest.raises(training.OtherRunError, match="training.ema_decay: 0.35 there, 0.0 now"):
        training.train(task(records), config(averaged.output_dir))
