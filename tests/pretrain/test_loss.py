"""Losses and metrics against NumPy, and on two devices against one."""

import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from etcmodel.pretrain import metrics as pretrain_metrics
from etcmodel.pretrain import model

ROOT = pathlib.Path(__file__).parents[2]


def slow_contrastive_loss(predictions, targets, mask):
    """Means over real sentences of cross entropy and accuracy, one sentence after the other."""
    real = np.flatnonzero(mask)
    entropies, right = [], []
    for i in real:
        logits = {j: float(predictions[i] @ targets[j]) for j in real}
        entropies.append(np.log(sum(np.exp(x - logits[i]) for x in logits.values())))
        right.append(max(logits, key=logits.get) == i)
    return np.mean(entropies), np.mean(right)


@given(st.integers(1, 7), st.integers(0, 1000))
@settings(max_examples=40)
def test_contrastive_loss_equals_the_slow_one(count, seed):
    rng = np.random.default_rng(seed)
    predictions, targets = rng.normal(size=[2, count, 4]).astype(np.float32)
    mask = rng.integers(0, 2, count)
    mask[rng.integers(count)] = 1
    losses, is_right, chance = model.contrastive_loss(
        tf.constant(predictions), tf.constant(targets), tf.constant(mask, tf.int32)
    )
    real = mask > 0
    expected_loss, expected_accuracy = slow_contrastive_loss(predictions, targets, mask)
    assert losses.numpy()[real].mean() == pytest.approx(expected_loss, rel=1e-4, abs=1e-5)
    assert is_right.numpy()[real].mean() == pytest.approx(expected_accuracy)
    assert float(chance) == pytest.approx(1 / real.sum())


def make_outputs(num_windows=3, num_sentences=2, seed=0):
    rng = np.random.default_rng(seed)
    outputs = {
        "mlm_loss": rng.random([num_windows, 4]).astype(np.float32),
        "mlm_token_ids": rng.integers(0, 2, [num_windows, 4], np.int32),
        "cpc_predictions": rng.normal(size=[num_windows, num_sentences, 3]).astype(np.float32),
        "cpc_targets": rng.normal(size=[num_windows, num_sentences, 3]).astype(np.float32),
    }
    features = {
        "mlm_labels": np.zeros([num_windows, 4], np.int32),
        "mlm_mask": rng.integers(0, 2, [num_windows, 4], np.int32),
        "cpc_mask": rng.integers(0, 2, [num_windows, num_sentences], np.int32),
    }
    features["mlm_mask"][0, 0] = features["cpc_mask"][0, 0] = 1
    return outputs, features


def losses_of(outputs, features):
    outputs, features = (
        {name: tf.constant(values) for name, values in group.items()}
        for group in (outputs, features)
    )
    losses = model.pretraining_loss(outputs, features, mlm_weight=0.8, cpc_weight=0.2)
    return {name: float(value) for name, value in losses.items()}


def test_padding_counts_nowhere():
    outputs, features = make_outputs()
    losses = losses_of(outputs, features)
    real = features["mlm_mask"] > 0
    assert losses["mlm_loss"] == pytest.approx(outputs["mlm_loss"][real].mean())
    assert losses["mlm_accuracy"] == pytest.approx((outputs["mlm_token_ids"][real] == 0).mean())
    outputs["mlm_loss"][~real] = 1e6
    outputs["cpc_targets"][features["cpc_mask"] == 0] = 1e3
    assert losses_of(outputs, features) == losses


def test_a_batch_without_masked_sentences_has_no_contrastive_loss():
    outputs, features = make_outputs()
    features["cpc_mask"][:] = 0
    losses = losses_of(outputs, features)
    assert losses["cpc_loss"] == 0 and losses["loss"] == pytest.approx(0.8 * losses["mlm_loss"])


def test_metrics_of_one_group_equal_the_losses_of_one_batch():
    outputs, features = make_outputs(num_windows=5)
    rows = [{n: v[i] for n, v in {**outputs, **features}.items()} for i in range(5)]
    metrics = pretrain_metrics.metrics(iter(rows), mlm_weight=0.8, cpc_weight=0.2)
    assert metrics == pytest.approx(losses_of(outputs, features), rel=1e-4)


def test_sentences_are_contrasted_within_groups():
    sentences = np.eye(4, dtype=np.float32) * 9
    window = {
        "mlm_loss": np.ones([1]),
        "mlm_token_ids": np.zeros([1], int),
        "mlm_labels": np.zeros([1], int),
        "mlm_mask": np.ones([1], int),
        # The third prediction is of the first sentence, which is in another group.
        "cpc_predictions": sentences[[0, 1, 0, 3]],
        "cpc_targets": sentences,
        "cpc_mask": np.ones([4], int),
    }
    together = pretrain_metrics.metrics([window], mlm_weight=1.0, cpc_weight=1.0)
    assert together["cpc_accuracy"] == 0.75 and together["cpc_chance"] == 0.25
    apart = pretrain_metrics.metrics([window], mlm_weight=1.0, cpc_weight=1.0, num_contrasted=2)
    assert apart["cpc_accuracy"] == 1.0 and apart["cpc_chance"] == 0.5


def test_windows_without_masked_tokens_have_the_metrics_of_sentences_alone():
    outputs, features = make_outputs(num_windows=3)
    rows = [{n: v[i] for n, v in {**outputs, **features}.items()} for i in range(3)]
    both = pretrain_metrics.metrics(rows, mlm_weight=0.0, cpc_weight=0.2)
    unmasked = [{**row, "mlm_mask": np.zeros_like(row["mlm_mask"])} for row in rows]
    alone = pretrain_metrics.metrics(unmasked, mlm_weight=0.0, cpc_weight=0.2)
    assert both["cpc_loss"] > 0 and both.keys() - alone.keys() == {"mlm_loss", "mlm_accuracy"}
    assert alone == {name: both[name] for name in alone}


def test_windows_without_anything_masked_are_refused():
    outputs, features = make_outputs(num_windows=1)
    features["mlm_mask"][:] = 0
    features["cpc_mask"][:] = 0
    row = {n: v[0] for n, v in {**outputs, **features}.items()}
    with pytest.raises(ValueError, match="no masked token and no masked sentence"):
        pretrain_metrics.metrics([row], mlm_weight=0.8, cpc_weight=0.2)


@pytest.mark.slow
def test_two_devices_contrast_all_sentences_and_equal_one_device():
    done = subprocess.run(
        [sys.executable, "-m", "tests.pretrain.two_devices"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    (losses, gradient), (losses_of_two, gradient_of_two) = json.loads(done.stdout.splitlines()[-1])
    assert losses["cpc_chance"] == pytest.approx(1 / 5)
    assert losses_of_two == pytest.approx(losses, rel=1e-5)
    assert gradient_of_two == pytest.approx(gradient, rel=1e-4)
    assert max(map(abs, gradient)) > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize(
    "compiled", [[], pytest.param(["compiled"], marks=pytest.mark.exhaustive)], ids=["", "compiled"]
)
def test_without_sentences_parts_on_two_devices_train_the_weights_of_one(tmp_path, compiled):
    """Nothing is gathered within the loop of parts, or within XLA."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.pretrain.divided_runs", str(tmp_path), *compiled],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout.splitlines()[-1])
    one, divided = found["one"], found["divided"]
    np.testing.assert_allclose(divided["loss"], one["loss"], rtol=1e-5)
    assert divided["weights"].keys() == one["weights"].keys()
    for name, expected in one["weights"].items():
        np.testing.assert_allclose(divided["weights"][name], expected, atol=1e-5, err_msg=name)
