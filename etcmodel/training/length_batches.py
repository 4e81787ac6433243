"""Batches of examples of similar length, in an order that a resumed run can continue."""

import tensorflow as tf

__all__ = ["POOL_BATCHES", "batches_by_length", "pool_batches"]

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
        parse, request: see `input_pipeline.training_batches`; examples to skip make whole batches.
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
