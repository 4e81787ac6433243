"""Leaves out of the encoder what is padding in every row of a batch."""

import tensorflow as tf

__all__ = ["encode_without_padding", "kept_length"]

# Lengths are rounded up to this share of the whole one: few different ones, of similar tensors.
_STEPS = 32


def encode_without_padding(encode, features, long_is_real, global_is_real, axes):
    """Encodes the part of a batch that is not padding alone.

    Tokens never see padding, so the outputs of real tokens are the same. In code that XLA compiles,
    where shapes must be known, the whole batch is encoded.

    Args:
        encode: function of features to float outputs [batch, long_len, hidden_size] and [batch,
            global_len, hidden_size].
        features: dict of tensors [batch, ...].
        long_is_real, global_is_real: bool [batch, long_len] and [batch, global_len].
        axes: pair of collections of str. The names of the features whose second axis is that of
            long tokens, and of those where it is that of global tokens; others stay whole.
    Returns:
        As of `encode` for the whole features; 0 for what was left out.
    """
    if tf.__internal__.get_enclosing_xla_context() is not None:
        return encode(features)
    masks = (long_is_real, global_is_real)
    kept = dict(features)
    for is_real, names in zip(masks, axes, strict=True):
        length = kept_length(is_real)
        kept |= {name: features[name][:, :length] for name in names if name in features}
    outputs = encode(kept)
    return tuple(_padded(x, is_real) for x, is_real in zip(outputs, masks, strict=True))


def kept_length(is_real):
    """How much of a batch is encoded.

    Args:
        is_real: bool [batch, len].
    Returns:
        int32 scalar: the number of places up to the last that is real in any row, at least 1,
        rounded up to a 32nd of `len`.
    """
    whole = tf.shape(is_real)[1]
    places = tf.range(1, whole + 1)
    longest = tf.reduce_max(tf.where(tf.reduce_any(is_real, axis=0), places, 1))
    longest = tf.maximum(longest, 1)  # The maximum of no places is the least integer.
    step = tf.maximum(-(-whole // _STEPS), 1)
    return tf.minimum(-(-longest // step) * step, whole)


def _padded(output, is_real):
    """`output` with zeros up to the length of `is_real`."""
    missing = tf.shape(is_real)[1] - tf.shape(output)[1]
    padded = tf.pad(output, [[0, 0], [0, missing], [0, 0]])
    return tf.ensure_shape(padded, [output.shape[0], is_real.shape[1], output.shape[2]])
