"""Garbage of a process of tests is collected, whatever is in it."""

import gc
import threading

import pytest
import tensorflow as tf

from tests import memory


@pytest.mark.parametrize("is_distributed", [False, True])
def test_a_thread_that_collects_the_iterator_it_reads_for_does_not_wait_for_itself(is_distributed):
    dropped, collected = threading.Event(), threading.Event()

    def numbers():
        yield 0
        dropped.wait(60)
        gc.collect()
        collected.set()
        yield 1

    spec = tf.TensorSpec([], tf.int32)
    dataset = tf.data.Dataset.from_generator(numbers, output_signature=spec).prefetch(1)
    if is_distributed:
        dataset = tf.distribute.OneDeviceStrategy("cpu").experimental_distribute_dataset(dataset)
    cycle = [iter(dataset)]
    assert next(cycle[0]) == 0
    cycle.append(cycle)
    del cycle
    dropped.set()
    assert collected.wait(60)
    memory.collect_garbage()
