"""Training batches from TFRecord files, in an order that a resumed run can continue."""

import tensorflow as tf

from etcmodel import record_files
from etcmodel.autotuning import without_autotuning

POOL_BATCHES = 16


def pool_batches(num_examples, batch):
    """The number of batches to make at a time: int, at least 1.

    At most the number of batches in an epoch: otherwise, copies of an example from several epochs
    would be neighbors by length and end up in the same batch.

    Args:
        num_examples: int. Number of examples in an epoch.
        batch: int. Number of examples in a batch.
    """
    return max(1, min(POOL_BATCHES, num_examples // batch))


def batches_by_length(records, parse, length_of, request, num_batches=POOL_BATCHES):
    """Batches of neighbors by length, from pools of several batches.

    The examples of each pool are sorted by length and cut into batches, which are shuffled. A run
    that is resumed in the middle of a pool makes the same batches again. A pool may span the end of
    an epoch and the start of the next.

    Args:
        records: endless tf.data.Dataset of serialized records, string [].
        parse, request: see `training_batches`; examples to skip make whole batches.
        length_of: function of what `parse` returns to an int scalar.
        num_batches: int. Batches that are made at a time, see `pool_batches`.
    Returns:
        As `training_batches`.
    """
    batch = request.global_batch_size
    pool = num_batches * batch
    first_pool, skipped = divmod(request.skip_examples, pool)
    examples = records.skip(first_pool * pool).map(
        lambda record: _with_length(parse(record), length_of),
        num_parallel_calls=tf.data.AUTOTUNE,
        deterministic=True,
    )
    pools = examples.batch(pool, drop_remainder=True).enumerate(first_pool)
    batches = pools.map(lambda number, x: _arranged(x, batch, [request.seed, number])).unbatch()
    batches = batches.skip(skipped // batch)
    if (context := request.input_context) is not None:
        workers, own = context.num_input_pipelines, context.input_pipeline_id
        batches = batches.map(lambda x: {name: value[own::workers] for name, value in x.items()})
    if request.per_replica_batch_size < batch:
        batches = batches.unbatch().batch(request.per_replica_batch_size, drop_remainder=True)
    return batches.prefetch(tf.data.AUTOTUNE)


def _with_length(example, length_of):
    return tf.cast(length_of(example), tf.int32), example


def _arranged(pool, batch, seed):
    """The batches of a pool: tensors [number of batches, batch, ...]."""
    lengths, examples = pool
    order = tf.reshape(tf.argsort(lengths, stable=True), [-1, batch])
    seed = tf.stack([tf.cast(x, tf.int32) for x in seed])
    order = tf.random.experimental.stateless_shuffle(order, seed)
    return {name: tf.gather(value, order) for name, value in examples.items()}


_FILES_AT_ONCE = 16


def count_examples(file_pattern, at_most=None):
    """Number of records in the files; reads all records if no settings file has the number.

    Args:
        file_pattern: see `record_files.matching_files`.
        at_most: int. Stop reading and counting after this many records.
    Raises:
        ValueError: if no file matches, or naming the file, if one is damaged.

    >>> from etcmodel import training
    >>> training.count_examples("my_records/train")
    4
    """
    files = record_files.matching_files(file_pattern)
    known = record_files.known_num_records(files)
    if known is not None:
        return known
    try:
        return _count(files, at_most)
    except tf.errors.DataLossError:
        for file in files:  # One file at a time, since the error does not name the file.
            try:
                _count([file])
            except tf.errors.DataLossError as error:
                raise ValueError(
                    f"{file}: {_first_line(error)}. Copy the file again, or preprocess again."
                ) from error
        raise


def _count(files, at_most=None):
    counter = record_files.records(files, num_parallel_reads=min(4, len(files)))
    counter = counter if at_most is None else counter.take(at_most)
    counter = without_autotuning(counter)
    return int(counter.reduce(tf.constant(0, tf.int64), lambda count, _: count + 1))


def _first_line(error):
    """The first line of an error's message, without the operation's name."""
    return error.message.splitlines()[0].rpartition("}} ")[2].partition(" [Op:")[0]


def training_batches(file_pattern, parse, request, *, shuffle_buffer=1024, length_of=None):
    """Endless batches, reshuffled every epoch; the order depends on `request.seed` only.

    All workers use the same order of examples and take turns, so that a global batch has the same
    examples for any number of devices.

    Args:
        file_pattern: see `record_files.matching_files`.
        parse: function from a serialized record, string [], to a dict of tensors.
        request: TrainDataRequest. Examples to skip are read but not parsed.
        shuffle_buffer: int. Number of records from which the next one is drawn.
        length_of: function from the result of `parse` to an int scalar, to group examples of
            similar length into batches; see `batches_by_length`. None: lengths are ignored.
    Returns:
        tf.data.Dataset of dicts of tensors [request.per_replica_batch_size, ...].
    Raises:
        ValueError: if no file matches.

    >>> from etcmodel import training
    >>> request = training.TrainDataRequest(global_batch_size=2)
    >>> parse = lambda record: {"size": tf.strings.length(record)}
    >>> batches = training.training_batches("my_records/train", parse, request)
    >>> next(iter(batches))["size"].shape
    TensorShape([2])
    """
    files = record_files.matching_files(file_pattern)
    records = _shuffled_records(files, request.seed, shuffle_buffer)
    if length_of is not None:
        batch = request.global_batch_size
        num_examples = count_examples(file_pattern, at_most=POOL_BATCHES * batch)
        num_batches = pool_batches(num_examples, batch)
        return batches_by_length(records.repeat(), parse, length_of, request, num_batches)
    records = records.repeat().skip(request.skip_examples)
    if request.input_context is not None:
        context = request.input_context
        records = records.shard(context.num_input_pipelines, context.input_pipeline_id)
    examples = records.map(parse, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
    batches = examples.batch(request.per_replica_batch_size, drop_remainder=True)
    return batches.prefetch(tf.data.AUTOTUNE)


def _shuffled_records(files, seed, shuffle_buffer):
    """Shuffled records; the seed and the iteration's number determine the order."""
    opened = (files, record_files.compressions(files))
    dataset = tf.data.Dataset.from_tensor_slices(opened).shuffle(len(files), seed=seed)
    records = dataset.interleave(
        tf.data.TFRecordDataset,
        cycle_length=min(_FILES_AT_ONCE, len(files)),
        num_parallel_calls=tf.data.AUTOTUNE,
        deterministic=True,
    )
    return records.shuffle(shuffle_buffer, seed=seed)
