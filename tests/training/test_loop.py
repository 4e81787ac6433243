"""Whole runs on one device, in this process."""

import dataclasses
import functools
import gc
import itertools
import json
import pathlib
import re
import subprocess
import sys
import time
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf

from etcmodel import onednn, training
from etcmodel.ops import tiles
from tests.training import toy

pytestmark = pytest.mark.usefixtures("eagerly")

ROOT = pathlib.Path(__file__).parents[2]


config = functools.partial(toy.config, num_train_epochs=4.0)


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def weights(task, run_config):
    return training.load_model(task, run_config).get_weights()


@pytest.mark.usefixtures("in_graphs")
def test_a_run_learns_and_keeps_its_best_and_its_latest_checkpoints(records, tmp_path):
    task = toy.ToyTask(records, evaluates=True)
    options = {"save_checkpoints_steps": 3, "keep_checkpoint_max": 2, "steps_per_summary": 2}
    run = config(tmp_path, **options)
    metrics = training.train(task, run)

    assert sorted(path.stem for path in tmp_path.glob("*.index")) == ["ckpt-6", "ckpt-8"]
    steps = [line["step"] for line in lines(tmp_path / "train_metrics.jsonl")]
    assert steps == [2, 3, 4, 6, 8]
    evaluations = lines(tmp_path / "eval_metrics.jsonl")
    assert [line["step"] for line in evaluations] == [3, 6, 8]
    assert evaluations[-1]["error"] == metrics["error"] < evaluations[0]["error"]
    assert training.best_checkpoint(str(tmp_path)) == str(tmp_path / "best" / "ckpt-8")
    assert training.evaluate(task, run) == metrics
    # The run is at its end: asked again, it has nothing to do.
    assert training.train(task, run) == metrics
    assert len(lines(tmp_path / "eval_metrics.jsonl")) == 3


def test_a_run_keeps_the_tiling_that_its_dropout_depends_on(records, tmp_path):
    task, run = toy.ToyTask(records), config(tmp_path, num_train_epochs=1.0)
    training.train(task, run)
    path = tmp_path / "run_config.json"
    kept = json.loads(path.read_text())
    assert kept.pop("attention_tiling") == {"rows": None, "logits": 4194304}
    path.write_text(json.dumps(kept))
    training.train(task, run)  # A run of a version that did not note it had this one.
    path.write_text(json.dumps({**kept, "attention_tiling": {"rows": 32, "logits": 4194304}}))
    told = r"attention_tiling.rows \(--attention_tile_rows\): 32 there, None now"
    with pytest.raises(training.OtherRunError, match=told):
        training.train(task, run)
    training.train(task, dataclasses.replace(run, attention_tile_rows=32))
    assert tiles.current_tiling() == tiles.Tiling(rows=32, logits=4194304)


def test_a_run_on_another_number_of_devices_tells_that_dropout_differs(records, tmp_path, caplog):
    caplog.set_level("INFO", logger="absl")
    task, run = toy.ToyTask(records), config(tmp_path, num_train_epochs=1.0)
    path = tmp_path / "run_config.json"
    training.train(task, run)
    kept = json.loads(path.read_text())
    assert kept["notes"].pop("num_devices") == 1
    for noted in (1, 2, None):  # None: a run of a version that did not note it.
        notes = {**kept["notes"], **({} if noted is None else {"num_devices": noted})}
        path.write_text(json.dumps({**kept, "notes": notes}))
        caplog.clear()
        training.train(task, run)
        (line,) = (x for x in caplog.messages if x.startswith("Continuing "))
        told = (
            " It began on 2 devices, and now has 1: each device draws dropout masks of its own, so "
            "the result will not be that of 2."
        )
        assert line == f"Continuing {tmp_path} at step 2.{told if noted == 2 else ''}"


def test_metrics_are_means_over_steps(records, tmp_path):
    every_step, two_steps = tmp_path / "every", tmp_path / "two"
    for path, interval in ((every_step, 1), (two_steps, 2)):
        run = config(path, steps_per_summary=interval, num_train_epochs=2.0)
        training.train(toy.ToyTask(records), run)
    singles, pairs = (lines(path / "train_metrics.jsonl") for path in (every_step, two_steps))
    for name in ("loss", "squared", "absolute", "gradient_norm"):
        means = np.reshape([line[name] for line in singles], [-1, 2]).mean(axis=1)
        np.testing.assert_allclose([line[name] for line in pairs], means, rtol=1e-5)
    # No warm-up step (0.1 of 4): a straight fall from the peak.
    rates = [line["learning_rate"] for line in singles]
    np.testing.assert_allclose(rates, 0.01 * (1 - np.arange(4) / 4), rtol=1e-5)


class SlowToTraceTask(toy.ToyTask):
    """Its loss takes long when it is traced, by a clock that can be set."""

    seconds = 0.0

    def loss(self, outputs, features):
        SlowToTraceTask.seconds += 1000.0
        return super().loss(outputs, features)


@pytest.mark.slow
@pytest.mark.usefixtures("in_graphs")
def test_the_time_of_tracing_is_not_in_the_rates(records, tmp_path, monkeypatch):
    ticks = itertools.count()  # Of a clock that nothing else on the machine makes late.
    monkeypatch.setattr(time, "monotonic", lambda: 0.001 * next(ticks) + SlowToTraceTask.seconds)
    for interval in (1, 2):
        options = {"steps_per_summary": interval, "num_train_epochs": 2.0}
        run = config(tmp_path / str(interval), **options)
        training.train(SlowToTraceTask(records), run)
        rates = [
            line.get("examples_per_second")
            for line in lines(tmp_path / str(interval) / "train_metrics.jsonl")
        ]
        # Where the step that is traced is the only one, there is no rate.
        assert (rates.pop(0) is None) if interval == 1 else rates
        assert all(rate > 12 for rate in rates)


def test_what_happens_is_told_a_line_each(records, tmp_path, capsys):
    task = toy.ToyTask(records, evaluates=True)
    metrics = training.train(task, config(tmp_path, save_checkpoints_steps=4))
    told = capsys.readouterr().err.splitlines()
    assert told[0] == "step 0/8  tracing the training step, once"
    evaluations = [line["error"] for line in lines(tmp_path / "eval_metrics.jsonl")]
    assert evaluations[1] < evaluations[0] and evaluations[1] == metrics["error"]
    others = [line for line in told[1:] if "examples/s" not in line]
    assert others == [
        "step 4/8  checkpoint saved: ckpt-4",
        f"step 4/8  evaluated  error {evaluations[0]:.4g}, the best so far: saved in best/",
        "step 8/8  checkpoint saved: ckpt-8",
        f"step 8/8  evaluated  error {evaluations[1]:.4g}, the best so far: saved in best/",
    ]
    # An evaluation that was missed is made up for: it is no better than itself.
    log = tmp_path / "eval_metrics.jsonl"
    log.write_text(log.read_text().splitlines()[0] + "\n")
    assert training.train(task, config(tmp_path, save_checkpoints_steps=4)) == metrics
    told = capsys.readouterr().err
    assert "step 8/8  evaluated  error" in told and "tracing" not in told and "best" not in told


class TwoMeans(toy.ToyTask):
    """The parts of its loss are means over examples of their own."""

    def loss(self, outputs, features):
        error, counts = outputs["sum"] - features["label"], self.loss_weight(features)
        parts = {"squared": error**2, "absolute": tf.abs(error)}
        masks = dict(zip(parts, self._masks(features), strict=True))
        means = {
            name: tf.math.divide_no_nan(
                tf.reduce_sum(tf.where(masks[name], x, 0.0)), tf.cast(counts[name], tf.float32)
            )
            for name, x in parts.items()
        }
        return {"loss": tf.add_n(list(means.values())), **means}

    def loss_weight(self, features):
        squared, absolute = map(tf.math.count_nonzero, self._masks(features))
        return {"squared": squared, "absolute": absolute}

    def _masks(self, features):
        return features["label"] > 0, features["label"] < 0.5


@pytest.mark.usefixtures("in_graphs")
@pytest.mark.slow
@pytest.mark.parametrize("task_class", [toy.ToyTask, TwoMeans])
def test_accumulated_steps_equal_whole_ones(records, tmp_path, task_class):
    task = task_class(records)
    whole = config(tmp_path / "whole")
    parts = config(tmp_path / "parts", gradient_accumulation_steps=3)
    for run in (whole, parts):
        training.train(task, run)
    for part, expected in zip(weights(task, parts), weights(task, whole), strict=True):
        np.testing.assert_allclose(part, expected, atol=1e-5)


@pytest.mark.slow
@pytest.mark.usefixtures("in_graphs")
@pytest.mark.parametrize("precision", ["mixed_bfloat16", "mixed_float16"])
@pytest.mark.parametrize("optimizer", ["adamw", "lamb", "bert_adam"])
def test_mixed_precision_trains(records, tmp_path, precision, optimizer):
    run = config(tmp_path, mixed_precision=precision, optimizer=optimizer, steps_per_summary=1)
    training.train(toy.ToyTask(records, dropout=0.1), run)
    losses = [line["loss"] for line in lines(tmp_path / "train_metrics.jsonl")]
    assert np.isfinite(losses).all() and losses[-1] < losses[0]


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize(
    "instructions, chosen",
    [
        (("avx2",), "float32"),
        ((), "float32"),
        (("avx2", "avx512_bf16"), "mixed_bfloat16"),
        (("avx2", "amx_bf16"), "mixed_bfloat16"),
    ],
)
def test_auto_is_bfloat16_where_the_processor_has_instructions(
    records, tmp_path, monkeypatch, instructions, chosen
):
    monkeypatch.setattr(onednn, "instructions", lambda: instructions)
    run = config(tmp_path, mixed_precision="auto", num_train_epochs=1.0)
    if chosen == "float32":
        training.train(toy.ToyTask(records), run)
        assert training.read_run_config(tmp_path)["training"]["mixed_precision"] == chosen
        # Elsewhere the run goes on as it began.
        monkeypatch.setattr(onednn, "instructions", lambda: ("amx_bf16",))
    assert training.resumed_config(run).mixed_precision == chosen


# The file of a run as the first version wrote it.
FIRST_FORM = """{"task": {}, "training": {"gradient_accumulation_steps": 1,
"init_checkpoint": null, "learning_rate": 5e-05, "learning_rate_schedule": "poly_decay",
"mixed_precision": "mixed_float16", "num_train_epochs": 3.0, "optimizer": "adamw",
"poly_power": 1.0, "random_seed": 0, "start_warmup_step": 0, "train_batch_size": 32,
"warmup_proportion": 0.1, "weight_decay_rate": 0.01}}"""


@pytest.mark.parametrize(
    "file, chosen",
    [
        (FIRST_FORM, "mixed_float16"),
        (FIRST_FORM.replace('"mixed_precision": "mixed_float16", ', ""), "float32"),
        ('{"task": {}}', "float32"),
    ],
)
def test_a_run_of_an_earlier_version_keeps_its_precision(tmp_path, monkeypatch, file, chosen):
    monkeypatch.setattr(onednn, "instructions", lambda: ("amx_bf16",))
    (tmp_path / "run_config.json").write_text(file)
    run = config(tmp_path, mixed_precision="auto")
    assert training.resumed_config(run).mixed_precision == chosen


def test_bfloat16_without_instructions_is_told_to_be_slower(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(onednn, "instructions", lambda: ("avx2",))
    assert training.precision_of(config(tmp_path, mixed_precision="mixed_bfloat16"))
    assert "no instructions for bfloat16" in caplog.text


def test_another_run_in_the_same_directory_is_refused(records, tmp_path):
    training.train(toy.ToyTask(records), config(tmp_path, num_train_epochs=1.0))
    message = "task.dropout: 0.0 there, 0.5 now; training.num_train_epochs: 1.0 there, 2.0 now"
    with pytest.raises(training.OtherRunError, match=message):
        training.train(toy.ToyTask(records, dropout=0.5), config(tmp_path, num_train_epochs=2.0))


class ExplodingTask(toy.ToyTask):
    def loss(self, outputs, features):
        losses = super().loss(outputs, features)
        is_wrong = tf.reduce_any(features["label"] > self.limit)
        return {**losses, "loss": losses["loss"] * tf.where(is_wrong, np.nan, 1.0)}


def test_a_loss_that_is_not_finite_stops_the_run_before_it_is_saved(records, tmp_path):
    task = ExplodingTask(records)
    request = training.TrainDataRequest(global_batch_size=4, seed=0)
    batches = task.train_dataset(request).take(6).as_numpy_iterator()
    peaks = [batch["label"].max() for batch in batches]
    worst = int(np.argmax(peaks))
    task.limit = (sorted(peaks)[-1] + sorted(peaks)[-2]) / 2
    run = config(tmp_path, train_batch_size=4, num_train_epochs=1.0)
    message = f"The loss of step {worst + 1} is not finite"
    with pytest.raises(training.NonFiniteLossError, match=message):
        training.train(task, run)
    assert not list(tmp_path.glob("*.index"))


def test_a_new_run_starts_from_the_initial_checkpoint(records, tmp_path):
    task = toy.ToyTask(records)
    first = config(tmp_path / "first", num_train_epochs=1.0)
    training.train(task, first)
    changes = {"init_checkpoint": str(tmp_path / "first"), "learning_rate": 0.0}
    still = dataclasses.replace(first, output_dir=str(tmp_path / "second"), **changes)
    training.train(task, still)
    for weight, expected in zip(weights(task, still), weights(task, first), strict=True):
        np.testing.assert_array_equal(weight, expected)


def test_predictions_come_in_order_and_without_padding(records, tmp_path):
    task = toy.ToyTask(records, evaluates=True)
    run = config(tmp_path, num_train_epochs=1.0, predict_batch_size=7)
    training.train(task, run)
    predictions = list(training.predict(task, run))
    expected = next(iter(task.eval_dataset(toy.NUM_EXAMPLES)))
    np.testing.assert_array_equal([p["label"] for p in predictions], expected.pop("label"))
    outputs = training.load_model(task, run)(expected)
    np.testing.assert_allclose([p["sum"] for p in predictions], outputs["sum"], rtol=1e-5)


def test_devices_must_divide_the_batch(records, tmp_path):
    run = config(tmp_path, train_batch_size=3)
    two_devices = mock.patch.object(tf.distribute.OneDeviceStrategy, "num_replicas_in_sync", 2)
    message = "`train_batch_size` must be a multiple of 2: 2 devices"
    with two_devices, pytest.raises(ValueError, match=message):
        training.train(toy.ToyTask(records), run)


@pytest.mark.parametrize("name", ["off", "one_device", "mirrored"])
def test_strategies_by_name(tmp_path, name):
    strategy = training.build_strategy(config(tmp_path, distribution_strategy=name, num_gpus=0))
    kinds = {
        "off": type(tf.distribute.get_strategy()),
        "one_device": tf.distribute.OneDeviceStrategy,
        "mirrored": tf.distribute.MirroredStrategy,
    }
    assert isinstance(strategy, kinds[name])


def test_more_gpus_than_there_are_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="`num_gpus` must be at most .*Received: 99"):
        training.build_strategy(config(tmp_path, num_gpus=99))


def test_a_run_that_is_at_its_end_leaves_no_warning_of_what_it_did_not_need(
    records, tmp_path, caplog
):
    task, run = toy.ToyTask(records), config(tmp_path, num_train_epochs=1.0)
    training.train(task, run)
    training.train(task, run)
    gc.collect()  # TensorFlow warns when the checkpoint's object goes.
    assert not [line for line in caplog.messages if "restore" in line]


def test_without_a_gpu_mirrored_tells_so(tmp_path, caplog):
    training.build_strategy(config(tmp_path, distribution_strategy="mirrored", num_gpus=0))
    line = "There is no GPU for distribution_strategy=mirrored: the CPU trains."
    assert caplog.messages.count(line) == 1


TWO_WORKERS = {"worker": ["localhost:1", "localhost:2"]}


def test_one_of_several_workers_that_would_train_alone_is_told(tmp_path, caplog, monkeypatch):
    as_worker = {"cluster": TWO_WORKERS, "task": {"type": "worker", "index": 1}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(as_worker))
    training.build_strategy(config(tmp_path, distribution_strategy="one_device", num_gpus=0))
    assert caplog.messages == [
        "TF_CONFIG names 2 processes, and distribution_strategy=one_device is of one: it works "
        "alone. For all of them, give multi_worker_mirrored."
    ]


def test_workers_without_a_cluster_are_told_so(tmp_path, caplog, monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    training.build_strategy(config(tmp_path, distribution_strategy="multi_worker_mirrored"))
    line = (
        "TF_CONFIG is not set, which tells distribution_strategy=multi_worker_mirrored the "
        "processes of the training: this one works alone."
    )
    assert caplog.messages.count(line) == 1


@pytest.mark.parametrize("given", ['{"cluster": {', json.dumps({"cluster": TWO_WORKERS})])
def test_what_is_wrong_with_the_cluster_is_told_with_its_name(given, tmp_path, monkeypatch):
    monkeypatch.setenv("TF_CONFIG", given)
    with pytest.raises(ValueError, match=f"TF_CONFIG={re.escape(given)}: "):
        training.build_strategy(config(tmp_path, distribution_strategy="multi_worker_mirrored"))


@pytest.mark.slow
def test_a_tpu_that_is_not_there_is_told_in_a_line(tmp_path):
    command = [sys.executable, "-m", "tests.training.toy", f"--output_dir={tmp_path}/run"]
    command += ["--distribution_strategy=tpu", "--tpu_name=local"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "error: No TPU can be used as tpu_name='local': TPUs not found in the cluster. "
        "Without one, give distribution_strategy=one_device, and no --use_tpu."
    )
    assert "Traceback" not in done.stderr


def test_a_tpu_needs_a_name(tmp_path):
    with pytest.raises(ValueError, match="`tpu_name` must be given"):
        training.build_strategy(config(tmp_path, distribution_strategy="tpu"))
