"""Inputs and labels of encoder-decoders: checks, embeddings in place of ids, the loss."""

import tensorflow as tf

from etcmodel.layers import sublayers
from etcmodel.ops import argument_checks

IGNORED_LABEL = -100


def decoder_ids(labels, start_token_id, pad_token_id, name="labels"):
    """Shifts labels by one position to the decoder ids from which they are predicted.

    Args:
        labels: int [batch, length]; -100 is ignored.
        start_token_id: int. The first id of each row.
        pad_token_id: int. Replaces -100.
        name: str. Name of the labels in errors.
    Returns:
        int [batch, length].
    Raises:
        ValueError: if there is no start token, or the labels have another rank.
    """
    if start_token_id is None:
        raise ValueError(
            "The config has no `decoder_start_token_id`: give `decoder_input_ids`, or load the "
            "model with `decoder_start_token_id=0`, say."
        )
    argument_checks.check_shapes({name: labels}, {name: "batch length"})
    labels = sublayers.as_ids(labels)
    first = tf.fill([tf.shape(labels)[0], 1], tf.cast(start_token_id, labels.dtype))
    shifted = tf.concat([first, labels[:, :-1]], axis=1)
    return tf.where(tf.equal(shifted, IGNORED_LABEL), tf.cast(pad_token_id, labels.dtype), shifted)


def loss(logits, labels, label_smoothing=0.0):
    """Mean cross entropy over all labels of a batch except -100; NaN if there are none.

    Args:
        logits: float [batch, length, vocab_size].
        labels: int [batch, length].
        label_smoothing: float. Share of each label that is spread evenly over the vocabulary
            (Szegedy et al. 2016, section 7).
    Returns:
        float32 scalar.
    Raises:
        ValueError: if the labels have another shape or exceed the vocabulary; in a graph, values
            known only at run time raise `tf.errors.InvalidArgumentError`.
    """
    labels = _checked(logits, labels)
    is_label = tf.not_equal(labels, IGNORED_LABEL)
    targets = tf.where(is_label, labels, tf.zeros([], labels.dtype))
    logits = tf.cast(logits, tf.float32)
    by_token = tf.nn.sparse_softmax_cross_entropy_with_logits(targets, logits)
    if label_smoothing:
        evenly = -tf.reduce_mean(tf.nn.log_softmax(logits), axis=-1)
        by_token = (1 - label_smoothing) * by_token + label_smoothing * evenly
    weights = tf.cast(is_label, tf.float32)
    return tf.reduce_sum(by_token * weights) / tf.reduce_sum(weights)


@tf.autograph.experimental.do_not_convert
def _checked(logits, labels):
    """Checks labels against the logits and returns them as a tensor."""
    asserts, axes = [], {"logits": "batch length vocab_size", "labels": "batch length"}
    argument_checks.check_shapes({"logits": logits, "labels": labels}, axes, asserts=asserts)
    labels, vocab_size = sublayers.as_ids(labels), logits.shape[-1]
    ids = tf.where(tf.equal(labels, IGNORED_LABEL), tf.zeros([], labels.dtype), labels)
    words = f"{vocab_size}, the size of the vocabulary, or {IGNORED_LABEL} for none"
    argument_checks.check_range("labels", ids, 0, vocab_size, words, asserts=asserts)
    with tf.control_dependencies(asserts):
        return tf.identity(labels)


KINDS = ("padding", "a token")  # The meaning of 0 and 1 in a mask, as named in errors.

_ENCODER_AXES = {
    "input_ids": "batch length",
    "inputs_embeds": "batch length hidden_size",
    "attention_mask": "batch length",
    "position_ids": "batch? length",
}
_DECODER_AXES = {
    "encoder_output": "batch encoder_length hidden_size",
    "encoder_mask": "batch tokens*",
    "decoder_input_ids": "batch length",
    "decoder_inputs_embeds": "batch length hidden_size",
    "decoder_attention_mask": "batch length",
}
_ARE_IDS = ("input_ids", "decoder_input_ids", "position_ids")


@tf.autograph.experimental.do_not_convert
def of_encoder(given, hidden_size, vocab_size, is_mask_binary=True):
    """Checks the arguments of an encoder's call.

    Args:
        given: dict of `input_ids`, `inputs_embeds`, `attention_mask` and `position_ids`, some of
            which may be None or absent.
        hidden_size: int. Size of embeddings.
        vocab_size: int. Ids are below it.
        is_mask_binary: bool. Whether to check that the mask has only 0 and 1.
    Returns:
        dict like `given`, as tensors that depend on the checks.
    Raises:
        ValueError: in a line that names the argument, if they do not fit each other or the model.
            In a graph, values known only at run time raise `tf.errors.InvalidArgumentError`.
    """
    asserts = []
    sizes = {"hidden_size": hidden_size}
    sizes = argument_checks.check_shapes(given, _ENCODER_AXES, sizes, asserts)
    name = "inputs_embeds" if given.get("input_ids") is None else "input_ids"
    argument_checks.check_not_empty(name, sizes.get("length"), asserts=asserts)
    masks = ("attention_mask",) if is_mask_binary else ()
    return _after(asserts, _with_checked(given, masks, vocab_size, asserts))


@tf.autograph.experimental.do_not_convert
def of_decoder(given, hidden_size, vocab_size, mask_of_output, mask_kinds=KINDS):
    """Checks the arguments of a decoder's call.

    Args:
        given: dict by name of the tensors passed to a `seq2seq.decoder.Decoder`.
        hidden_size, vocab_size: see `of_encoder`.
        mask_of_output: function of `encoder_mask` that returns the mask of the encoder's output.
        mask_kinds: tuple of str. The meaning of 0, 1 … in `encoder_mask`.
    Returns:
        dict like `given`, as tensors that depend on the checks; `encoder_mask` is that of the
        encoder's output.
    Raises:
        ValueError: see `of_encoder`.
    """
    asserts = []
    sizes = {"hidden_size": hidden_size}
    sizes = argument_checks.check_shapes(given, _DECODER_AXES, sizes, asserts)
    if given["encoder_mask"] is not None:
        seen = argument_checks.checked_mask(
            "encoder_mask", given["encoder_mask"], mask_kinds, asserts=asserts
        )
        mask = {"encoder_mask": mask_of_output(tf.cast(seen, tf.bool))}
        axes = {"encoder_mask": "batch encoder_length"}
        argument_checks.check_shapes(mask, axes, sizes, asserts)
        given = {**given, **mask}
    given = _with_checked(given, ("decoder_attention_mask",), vocab_size, asserts)
    return _after(asserts, given)


def _with_checked(given, masks, vocab_size, asserts):
    """Checks token ids, and the masks of these names to be 0/1, and returns the arguments."""
    checked, words = dict(given), f"{vocab_size}, which is `vocab_size`"
    for name in ("input_ids", "decoder_input_ids"):
        if (ids := given.get(name)) is not None:
            checked[name] = argument_checks.checked_ids(
                name, ids, vocab_size, words, asserts=asserts
            )
    for name in masks:
        if (mask := given.get(name)) is not None:
            checked[name] = argument_checks.checked_mask(name, mask, KINDS, asserts=asserts)
    return checked


def _after(asserts, given):
    """The tensors, after the checks of a graph."""
    with tf.control_dependencies(asserts):
        return {name: _tensor(name, x) for name, x in given.items()}


def _tensor(name, x):
    if x is None:
        return None
    return tf.identity(sublayers.as_ids(x) if name in _ARE_IDS else tf.convert_to_tensor(x))
