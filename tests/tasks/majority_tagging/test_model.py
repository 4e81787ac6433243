"""The model and its loss, and what a run refuses."""

import dataclasses

import numpy as np
import pytest

from etcmodel.tasks.majority_tagging import model
from etcmodel.tasks.majority_tagging import task as task_lib
from tests.models.gmat import small
from tests.tasks.slow_losses import slow_loss

LABELS = np.array([[0, 3, 2, -1, -1], [1, 1, 0, 0, 2]], np.int32)


def config(**changes):
    entries = {"encoder_config": small.config(), "long_seq_length": 5, "pairs": 2}
    return task_lib.MajorityConfig(**{**entries, **changes})


def test_the_loss_is_over_all_tokens_but_padding():
    logits = np.random.default_rng(0).normal(size=[2, 5, 4]).astype(np.float32)
    found = model.loss({"logits": logits}, {"labels": LABELS})
    wanted = slow_loss(logits, LABELS)
    np.testing.assert_allclose([found["loss"], found["train_accuracy"]], wanted, rtol=1e-5)


def test_a_batch_of_padding_has_no_loss():
    logits, labels = np.ones([1, 3, 4], np.float32), np.full([1, 3], -1, np.int32)
    found = model.loss({"logits": logits}, {"labels": labels})
    assert float(found["loss"]) == float(found["train_accuracy"]) == 0.0


@pytest.mark.parametrize("num_memory_tokens", [-1, 0])
def test_the_model_has_a_logit_for_each_tag(num_memory_tokens):
    task = task_lib.MajorityTask(config(num_memory_tokens=num_memory_tokens, chunk_size=2))
    made = task.build_model()
    assert made.encoder.config.num_memory_tokens == (0 if num_memory_tokens == 0 else 3)
    assert made.encoder.config.chunk_size == 2
    features = {"input_ids": small.ids(2, 5), "attention_mask": np.ones([2, 5], np.int32)}
    # What else the records have is of no matter to the model.
    logits = made({**features, "labels": LABELS})
    assert logits.shape == [2, 5, 4]
    np.testing.assert_array_equal(logits, made(features))


def test_an_initialization_of_another_model_is_refused():
    mimetic = task_lib.MajorityTask(dataclasses.replace(config(), initialization="mimetic"))
    with pytest.raises(ValueError, match="Mimetic initialization is for ETC's attention"):
        mimetic.build_model()
