"""Skips what is padding in every row of a batch when encoding."""

import contextlib
import threading

import tensorflow as tf

# Lengths are rounded up to a multiple of this share of the full length: few different lengths, and
# tensors of similar sizes.
_STEPS = 32
_state = threading.local()


@contextlib.contextmanager
def kept():
    """Context manager in which this thread's calls encode whole batches, padding included.

    Everything else that models do about padding is unchanged, so their outputs stay the same.
    """
    before = _is_kept()
    _state.is_kept = True
    try:
        yield
    finally:
        _state.is_kept = before


def encode_without_padding(encode, features, long_is_real, global_is_real, axes):
    """Encodes only the part of a batch that is not padding.

    Tokens never attend to padding, so the outputs of real tokens are the same. In code that XLA
    compiles, where shapes must be known, the whole batch is encoded; likewise within `kept`.

    Args:
        encode: function of features to float outputs [batch, long_len, hidden_size] and [batch,
            global_len, hidden_size].
        features: dict of tensors [batch, ...].
        long_is_real, global_is_real: bool [batch, long_len] and [batch, global_len].
        axes: pair of collections of str. The names of the features whose second axis is the long
            tokens, and of those whose second axis is the global tokens; others stay whole.
    Returns:
        The outputs of `encode` for the whole features; 0 for what was left out.
    """
    if stays_whole():
        return encode(features)
    masks = (long_is_real, global_is_real)
    for is_real, names in zip(masks, axes, strict=True):
        features = cut(features, is_real, names)
    outputs = encode(features)
    return tuple(restored(x, is_real) for x, is_real in zip(outputs, masks, strict=True))


def cut(features, is_real, names):
    """Cuts off the positions at the end of a batch that are padding in all of its rows.

    In code that XLA compiles, and within `kept`, the batch stays whole.

    Args:
        features: dict of tensors [batch, ...].
        is_real: bool [batch, len].
        names: collection of str. The features, if present, whose second axis is that of `is_real`;
            others stay whole.
    Returns:
        dict of tensors; the named ones are [batch, kept, ...], see `kept_length`.
    """
    if stays_whole():
        return features
    length = kept_length(is_real)
    cut_ones = {name: features[name][:, :length] for name in names if name in features}
    return {**features, **cut_ones}


def kept_length(is_real):
    """Returns how many positions of a batch are encoded.

    Args:
        is_real: bool [batch, len].
    Returns:
        int32 scalar: the number of positions up to the last that is real in any row, at least 1,
        rounded up to a 32nd of `len`.
    """
    whole = tf.shape(is_real)[1]
    places = tf.range(1, whole + 1)
    longest = tf.reduce_max(tf.where(tf.reduce_any(is_real, axis=0), places, 1))
    longest = tf.maximum(longest, 1)  # The maximum over no positions is the least integer.
    step = tf.maximum(-(-whole // _STEPS), 1)
    return tf.minimum(-(-longest // step) * step, whole)


def cut_text(features):
    """Applies `cut` to a batch for an encoder of one text.

    Args:
        features: dict with int [batch, length] `input_ids` and `attention_mask`, 0 for padding, and
            others, which stay whole.
    Returns:
        dict of tensors.
    """
    return cut(features, features["attention_mask"] > 0, ("input_ids", "attention_mask"))


def restored(output, is_real, fill=0):
    """Pads the outputs of a batch that was `cut` to the length of the whole batch.

    Args:
        output: tensor [batch, kept, ...].
        is_real: tensor [batch, len]. The mask passed to `cut`.
        fill: number. The value of what was left out.
    Returns:
        tensor [batch, len, ...].
    """
    missing = tf.shape(is_real)[1] - tf.shape(output)[1]
    widths = [[0, 0], [0, missing], *[[0, 0]] * (output.shape.rank - 2)]
    padded = tf.pad(output, widths, constant_values=fill)
    return tf.ensure_shape(padded, [output.shape[0], is_real.shape[1], *output.shape[2:]])


def is_first_real(is_real):
    """Marks the first token of each row that is not padding: bool, as `is_real` [batch, len]."""
    return is_real & tf.equal(tf.cumsum(tf.cast(is_real, tf.int32), axis=1), 1)


def places_from_first_real(is_real):
    """Counts 0, 1, 2 … from each row's first real token: int32 [batch, len], 0 before it."""
    has_begun = tf.cumsum(tf.cast(is_real, tf.int32), axis=1) > 0
    return tf.cumsum(tf.cast(has_begun, tf.int32), axis=1, exclusive=True)


def first_real(x, is_real):
    """Gathers each row's entry for its first token that is not padding: [batch, ...].

    Args:
        x: tensor [batch, len, ...].
        is_real: bool [batch, len]. A row without tokens gives its first entry. None: there is no
            padding.
    """
    return x[:, 0] if is_real is None else tf.gather(x, _first_places(is_real), batch_dims=1)


def from_first_real(x, is_real):
    """Rotates rows so that their first token that is not padding comes first.

    Args:
        x: tensor [batch or 1, len, ...].
        is_real: bool [batch, len].
    Returns:
        tensor [batch, len, ...].
    """
    x = tf.convert_to_tensor(x)
    batch, length = tf.unstack(tf.shape(is_real))
    places = (tf.range(length) + _first_places(is_real)[:, tf.newaxis]) % length
    whole = tf.broadcast_to(x, tf.concat([[batch], tf.shape(x)[1:]], 0))
    return tf.ensure_shape(tf.gather(whole, places, batch_dims=1), [is_real.shape[0], *x.shape[1:]])


def _first_places(is_real):
    return tf.argmax(tf.cast(is_real, tf.int32), axis=1, output_type=tf.int32)


def stays_whole():
    """Returns whether batches are encoded whole: in code that XLA compiles, and within `kept`."""
    return _is_kept() or tf.__internal__.get_enclosing_xla_context() is not None


def _is_kept():
    return getattr(_state, "is_kept", False)
