"""The order of training examples."""

import glob
import os

import numpy as np
import pytest
import tensorflow as tf

from etcmodel import training
from etcmodel.training import input_pipeline, model_garden
from etcmodel.training import task as task_lib
from tests.training import toy


def labels(records, num_batches, *, length_of=None, **request):
    request = task_lib.TrainDataRequest(**{"global_batch_size": 4, "seed": 5, **request})
    parse = toy.ToyTask(records)._parse
    batches = input_pipeline.training_batches(
        records, parse, request, shuffle_buffer=8, length_of=length_of
    )
    return [batch["label"].numpy() for batch in batches.take(num_batches)]


def test_examples_are_counted(records):
    assert input_pipeline.count_examples(records) == toy.NUM_EXAMPLES


def test_no_more_examples_are_read_than_asked_for(records):
    assert input_pipeline.count_examples(records, at_most=7) == 7
    assert input_pipeline.count_examples(records, at_most=99) == toy.NUM_EXAMPLES


def test_missing_files_are_named():
    with pytest.raises(ValueError, match="No file matches '/no/such/file'"):
        input_pipeline.count_examples("/no/such/file")


def test_a_damaged_file_is_named(tmp_path):
    pattern = toy.write_records(str(tmp_path))
    damaged = tmp_path / "train-1.tfrecord"
    content = bytearray(damaged.read_bytes())
    content[60] ^= 1
    damaged.write_bytes(content)
    with pytest.raises(ValueError, match=rf"^{damaged}: corrupted record at \d+\. Copy the file"):
        input_pipeline.count_examples(pattern)


def test_every_epoch_has_all_examples_in_another_order(records):
    first, second = np.split(np.concatenate(labels(records, 12)), 2)
    assert sorted(first) == sorted(second) and len(set(first)) == toy.NUM_EXAMPLES
    assert list(first) != list(second)


def test_packed_files_give_the_same_batches(records, tmp_path):
    for name in glob.glob(records):
        with tf.io.TFRecordWriter(str(tmp_path / os.path.basename(name)), "GZIP") as writer:
            for record in tf.data.TFRecordDataset(name):
                writer.write(record.numpy())
    packed = str(tmp_path / os.path.basename(records))
    np.testing.assert_array_equal(labels(packed, 12), labels(records, 12))


def test_batches_by_length_have_no_copies_of_an_example_from_other_epochs(records):
    found = labels(records, 18, length_of=lambda example: example["token_id"])
    for epoch in np.split(np.concatenate(found), 3):
        assert len(set(epoch)) == toy.NUM_EXAMPLES


def test_the_seed_decides_the_order(records):
    np.testing.assert_array_equal(labels(records, 6), labels(records, 6))
    assert not np.array_equal(labels(records, 6), labels(records, 6, seed=6))


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("steps_done", [1, 6, 9])
def test_a_resumed_run_continues_at_its_example(records, steps_done):
    resumed = labels(records, 3, skip_examples=4 * steps_done)
    np.testing.assert_array_equal(resumed, labels(records, steps_done + 3)[steps_done:])


def test_workers_share_the_global_batch(records):
    contexts = [
        tf.distribute.InputContext(2, worker, num_replicas_in_sync=2) for worker in range(2)
    ]
    shares = [labels(records, 6, skip_examples=8, input_context=c) for c in contexts]
    together = np.concatenate(shares, axis=1)
    whole = labels(records, 6, skip_examples=8)
    np.testing.assert_array_equal(np.sort(together, axis=1), np.sort(whole, axis=1))


@pytest.mark.usefixtures("eagerly")
def test_iterators_of_runs_are_not_tuned(records, tmp_path, monkeypatch):
    """So that they end at once: see `autotuning`."""
    tuned = {"training": [], "evaluation": []}
    distribute, iterate = model_garden.make_distributed_dataset, tf.data.Dataset.__iter__

    def make_distributed_dataset(strategy, make):
        tuned["training"].append(make(None).options().autotune.enabled)
        return distribute(strategy, make)

    def make_iterator(dataset):
        tuned["evaluation"].append(dataset.options().autotune.enabled)
        return iterate(dataset)

    monkeypatch.setattr(model_garden, "make_distributed_dataset", make_distributed_dataset)
    config = training.TrainingConfig(
        output_dir=str(tmp_path), train_batch_size=12, num_train_epochs=1.0
    )
    training.train(toy.ToyTask(records), config)
    monkeypatch.setattr(tf.data.Dataset, "__iter__", make_iterator)
    training.evaluate(toy.ToyTask(records, evaluates=True), config)
    assert tuned == {"training": [False], "evaluation": [False]}
