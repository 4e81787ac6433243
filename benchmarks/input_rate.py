"""Measures how fast a CPU core makes training batches: reads, parses, checks, shuffles, batches.

    python -m benchmarks.input_rate --long_seq_length=4096 --global_seq_length=230

The records have HotpotQA's features, with random values in their ranges; no model runs. Other
programs on the machine affect the examples per second, but hardly the examples per second and core,
which are computed from the CPU time of this process's threads.
"""

import dataclasses
import os
import tempfile
import time

from etcmodel.options import Options, option, run_program

__all__ = ["InputRateOptions", "Rate", "main", "measure"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class InputRateOptions(Options):
    """The records to read, and their number."""

    long_seq_length: int = option(4096, "Length of the long input, in tokens.", lower_bound=1)
    global_seq_length: int = option(230, "Length of the global input, in tokens.", lower_bound=1)
    num_records: int = option(
        256, "Number of records written, and then read repeatedly.", lower_bound=1
    )
    batch_size: int = option(32, "Number of examples per batch.", lower_bound=1)
    num_batches: int = option(64, "Number of timed batches, after an untimed one.", lower_bound=1)
    rounds: int = option(5, "Number of rounds; the median is reported.", lower_bound=1)


@dataclasses.dataclass(frozen=True)
class Rate:
    """The measured rate.

    Attributes:
        examples: int.
        record_bytes: float. Of an example, in its file.
        batch_bytes: float. Of an example, in a batch.
        seconds, core_seconds: float. Of the clock, and of all threads of the process.
    """

    examples: int
    record_bytes: float
    batch_bytes: float
    seconds: float
    core_seconds: float


def measure(options):
    """A list of `Rate`, one for each of `options.rounds`."""
    from etcmodel import finetuning, training  # Imports TensorFlow, which takes seconds.
    from etcmodel.autotuning import without_autotuning
    from etcmodel.tasks.hotpotqa import task

    config = task.RecordConfig(
        long_seq_length=options.long_seq_length,
        global_seq_length=options.global_seq_length,
        vocab_size=30522,
        segment_vocab_size=16,
    )
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "train.tfrecord")
        _write(path, config, options.num_records)
        request = training.TrainDataRequest(global_batch_size=options.batch_size)
        batches = iter(without_autotuning(finetuning.make_train_dataset(path, config, request)))
        size = os.path.getsize(path) / options.num_records
        next(batches)
        return [_timed(batches, options, size) for _ in range(options.rounds)]


def _timed(batches, options, record_bytes):
    start, core_start = time.perf_counter(), time.process_time()
    for _ in range(options.num_batches):
        batch = next(batches)
    seconds, core_seconds = time.perf_counter() - start, time.process_time() - core_start
    batch_bytes = sum(x.shape.num_elements() * x.dtype.size for x in batch.values())
    return Rate(
        examples=options.num_batches * options.batch_size,
        record_bytes=record_bytes,
        batch_bytes=batch_bytes / options.batch_size,
        seconds=seconds,
        core_seconds=core_seconds,
    )


def _write(path, config, num_records):
    """Records of random values, the same each time."""
    import numpy as np
    import tensorflow as tf

    from etcmodel import preprocessing

    rng, ranges = np.random.default_rng(0), config.ranges()
    shapes = {**config.model_features(), **config.label_features()}
    shapes = {name: tuple(feature.shape) for name, feature in shapes.items()}

    def values(name, shape):
        lowest, bound = ranges[name].lowest, ranges[name].bound
        bound = shapes[bound][0] if isinstance(bound, str) else bound
        return rng.integers(lowest, bound or config.long_seq_length, shape).ravel().tolist()

    with tf.io.TFRecordWriter(path) as writer:
        for _ in range(num_records):
            features = {name: values(name, shape) for name, shape in shapes.items()}
            writer.write(preprocessing.to_tf_example(features).SerializeToString())


def main(options):
    """Prints the round with the median rate a core."""
    rates = sorted(measure(options), key=lambda rate: rate.examples / rate.core_seconds)
    median = rates[len(rates) // 2]
    by_core = [rate.examples / rate.core_seconds for rate in (rates[0], median, rates[-1])]
    print(
        f"{options.long_seq_length:,} + {options.global_seq_length:,} tokens, "
        f"{median.record_bytes / 1e3:.1f} kB a record, {median.batch_bytes / 1e3:.1f} kB an "
        f"example of a batch of {options.batch_size}\n"
        f"{by_core[1]:,.0f} ({by_core[0]:,.0f}-{by_core[2]:,.0f}) examples a second and core; "
        f"{median.examples / median.seconds:,.0f} a second on {os.cpu_count()} cores, as busy as "
        "they were"
    )


if __name__ == "__main__":
    run_program(InputRateOptions, main)
