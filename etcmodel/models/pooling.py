"""Pools hidden states into one vector per text or sentence."""

import tensorflow as tf

from etcmodel.models import features as features_lib
from etcmodel.models import padding
from etcmodel.ops import argument_checks

OF_TEXTS = ("mean", "first", "first_global")
POOLINGS = (*OF_TEXTS, "max", "mean_sqrt_len", "weighted_mean", "last", "sentence")
_LOWEST = -1e9  # Below what any token has.


def check_pooling(pooling, among=POOLINGS):
    """Raises ValueError if `pooling` is not one of `among`."""
    if pooling not in among:
        argument_checks.fail(f"`pooling` must be one of {list(among)}. Received: {pooling!r}")


@tf.autograph.experimental.do_not_convert
def pool(long_output, global_output, inputs, pooling):
    """Pools hidden states into one vector per text, or per sentence.

    Args:
        long_output: float [batch, long_len, hidden_size].
        global_output: float [batch, global_len, hidden_size].
        inputs: `features.EncoderInputs`.
        pooling: 'mean' (of all long tokens except padding), 'first' (the first long token that is
            not padding, such as CLS), 'first_global' (the first such global token), 'max' (of each
            number), 'mean_sqrt_len' (the sum divided by the square root of their number),
            'weighted_mean' (weights grow with the position: 1, 2, 3 …), 'last' (the last long
            token that is not padding), or 'sentence' (the mean of the long tokens linked to each
            global token).
    Returns:
        float32 [batch, hidden_size]; for 'sentence' [batch, global_len, hidden_size]. Means over no
        tokens are 0.
    Raises:
        ValueError: if `pooling` is unknown; for 'first_global', if there is no global token; or,
            except for 'sentence', if a row holds several examples. Values known only when a graph
            runs raise `tf.errors.InvalidArgumentError` instead.

    >>> from etcmodel import models
    >>> from etcmodel.models import features
    >>> inputs = features.completed([[2, 7, 3, 0]], etcmodel.EtcConfig(128))
    >>> long_output = tf.constant([[[3.0], [6.0], [9.0], [99.0]]])  # The last one is padding.
    >>> models.pool(long_output, tf.zeros([1, 1, 1]), inputs, "mean").numpy()
    array([[6.]], dtype=float32)
    """
    check_pooling(pooling)
    asserts = []
    if pooling != "sentence":
        argument_checks.check_range(
            "example_ids",
            inputs.example_ids,
            0,
            2,
            f"2, one example a row, for `pooling` {pooling!r}",
            asserts=asserts,
        )
    if pooling == "first_global":
        length = tf.shape(global_output)[1]
        words = "`pooling` 'first_global' needs a global token. Received global_len:"
        argument_checks.check(length > 0, words, length, asserts=asserts)
    with tf.control_dependencies(asserts):
        return _POOLS[pooling](long_output, global_output, inputs)


def _mean(long_output, global_output, inputs):
    return _weighted(long_output, tf.cast(inputs.mask, tf.float32))


def _mean_sqrt_len(long_output, global_output, inputs):
    mean = _mean(long_output, global_output, inputs)
    number = tf.reduce_sum(tf.cast(inputs.mask, tf.float32), axis=1, keepdims=True)
    return mean * tf.sqrt(number)


def _weighted_mean(long_output, global_output, inputs):
    places = padding.places_from_first_real(inputs.mask) + 1
    return _weighted(long_output, tf.cast(tf.where(inputs.mask, places, 0), tf.float32))


def _weighted(long_output, weights):
    """The mean by weights, float32 [batch, long_len], which are 0 or at least 1."""
    weights = weights[:, :, tf.newaxis]
    sums = tf.reduce_sum(tf.cast(long_output, tf.float32) * weights, axis=1)
    return sums / tf.maximum(tf.reduce_sum(weights, axis=1), 1.0)


def _max(long_output, global_output, inputs):
    is_real = inputs.mask[:, :, tf.newaxis]
    return tf.reduce_max(tf.where(is_real, tf.cast(long_output, tf.float32), _LOWEST), axis=1)


def _last(long_output, global_output, inputs):
    backwards = padding.first_real(long_output[:, ::-1], inputs.mask[:, ::-1])
    return tf.cast(backwards, tf.float32)


def _first(long_output, global_output, inputs):
    return tf.cast(padding.first_real(long_output, inputs.mask), tf.float32)


def _first_global(long_output, global_output, inputs):
    return tf.cast(padding.first_real(global_output, inputs.global_mask), tf.float32)


def _sentences(long_output, global_output, inputs):
    is_of = tf.equal(
        inputs.links[:, tf.newaxis], tf.range(tf.shape(global_output)[1])[:, tf.newaxis]
    )
    is_of = tf.cast(is_of & inputs.mask[:, tf.newaxis], tf.float32)
    # [batch, global_len, long_len] of [batch, long_len, hidden_size].
    sums = tf.matmul(is_of, tf.cast(long_output, tf.float32))
    return sums / tf.maximum(tf.reduce_sum(is_of, axis=-1, keepdims=True), 1.0)


_POOLS = {
    "mean": _mean,
    "first": _first,
    "first_global": _first_global,
    "max": _max,
    "mean_sqrt_len": _mean_sqrt_len,
    "weighted_mean": _weighted_mean,
    "last": _last,
    "sentence": _sentences,
}


def embed(encoder, features, pooling="mean", *, relation_names=(), normalize=False):
    """Computes embedding vectors of texts, without dropout.

    Args:
        encoder: `Encoder`.
        features: a batch as in `models.features`.
        pooling: as in `pool`.
        relation_names: sequence of str. See `models.features`.
        normalize: bool. Whether to scale vectors to length 1.
    Returns:
        float32, shaped as the result of `pool`.
    Raises:
        ValueError: see `pool` and `features.completed`.

    >>> from etcmodel import models
    >>> encoder = etcmodel.from_pretrained("my_model", as_class=etcmodel.EtcModel)
    >>> models.embed(encoder, encoder.processor(["Good!", "It is bad."]), "sentence").shape
    TensorShape([2, 2, 12])
    """
    inputs = features_lib.completed(features, encoder.config, relation_names)
    long_output, global_output = encoder(**inputs.arguments, training=False)
    vectors = pool(long_output, global_output, inputs, pooling)
    return tf.math.l2_normalize(vectors, axis=-1) if normalize else vectors
