"""Batches of examples of about the same length."""

import numpy as np
import pytest
import tensorflow as tf

from etcmodel.training import TrainDataRequest
from etcmodel.training import input_pipeline as length_batches

NUM_EXAMPLES, BATCH = 50, 4
LENGTHS = np.random.default_rng(0).integers(1, 1000, NUM_EXAMPLES)
POOL = length_batches.POOL_BATCHES * BATCH


def batches(num_batches, **request):
    """Numbers of the examples, by batch."""
    records = tf.data.Dataset.range(NUM_EXAMPLES).repeat()
    made = length_batches.batches_by_length(
        records,
        lambda number: {"number": number, "length": tf.gather(LENGTHS, number)},
        lambda example: example["length"],
        TrainDataRequest(**{"global_batch_size": BATCH, "seed": 3, **request}),
    )
    return [batch["number"].numpy() for batch in made.take(num_batches)]


def test_each_pool_has_its_examples_sorted_into_batches():
    made = np.array(batches(2 * length_batches.POOL_BATCHES))
    for number, pool in enumerate(np.split(made, 2)):
        wanted = np.arange(number * POOL, (number + 1) * POOL) % NUM_EXAMPLES
        assert sorted(pool.ravel()) == sorted(wanted)
        in_order = sorted(LENGTHS[pool].tolist(), key=lambda row: (row[0], row[-1]))
        assert np.concatenate(in_order).tolist() == sorted(LENGTHS[wanted])


@pytest.mark.parametrize(
    ("num_examples", "expected"), [(3, 1), (4, 1), (11, 2), (64, 16), (999, 16)]
)
def test_no_more_batches_are_made_at_a_time_than_an_epoch_has(num_examples, expected):
    assert length_batches.pool_batches(num_examples, BATCH) == expected


def test_the_order_of_batches_is_drawn_by_seed_and_pool():
    made = batches(2 * length_batches.POOL_BATCHES)
    means = np.array([LENGTHS[batch].mean() for batch in made]).reshape(2, -1)
    ranks = means.argsort(axis=1).argsort(axis=1)
    assert ranks[0].tolist() != sorted(ranks[0]) and ranks[0].tolist() != ranks[1].tolist()
    assert not np.array_equal(made, batches(len(made), seed=4))


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("steps_done", [0, 1, 15, 16, 23])
def test_a_resumed_run_makes_the_same_batches(steps_done):
    wanted = batches(steps_done + 3)[steps_done:]
    np.testing.assert_array_equal(batches(3, skip_examples=BATCH * steps_done), wanted)


def test_workers_and_devices_share_a_batch():
    whole = batches(3)
    for worker in range(2):
        context = tf.distribute.InputContext(2, worker, num_replicas_in_sync=4)
        parts = batches(6, input_context=context)
        assert {len(part) for part in parts} == {1}
        found = np.concatenate(parts).reshape(3, 2)
        np.testing.assert_array_equal(found, [batch[worker::2] for batch in whole])
