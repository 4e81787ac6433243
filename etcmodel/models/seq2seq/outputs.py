"""The outputs of encoder-decoder models."""

import tensorflow as tf

from etcmodel.models.seq2seq import labels as labels_lib

__all__ = ["named", "tied_logits", "with_logits"]


def named(encoded, decoded):
    """Merges the outputs of an encoder and of a decoder into one dict.

    Args:
        encoded, decoded: dict of the outputs by name.
    Returns:
        dict: names begin with `encoder_` or `decoder_`, except `cross_attentions`. The decoder's
        `last_hidden_state` is left out.
    """
    outputs = {f"encoder_{name}": value for name, value in encoded.items()}
    for name, value in decoded.items():
        if name != "last_hidden_state":
            outputs[name if name.startswith("cross") else f"decoder_{name}"] = value
    return outputs


def tied_logits(hidden, table):
    """Computes logits as products with the token embeddings.

    Args:
        hidden: float [..., size].
        table: variable [vocab_size, size].
    Returns:
        float32 [..., vocab_size].
    """
    *outer, size = hidden.shape.as_list()
    outer = tf.shape(hidden)[:-1] if None in outer else outer
    rows, table = tf.reshape(hidden, [-1, size]), tf.cast(table, hidden.dtype)
    logits = tf.matmul(rows, table, transpose_b=True)
    logits = tf.reshape(logits, tf.concat([outer, [table.shape[0]]], 0))
    return tf.cast(logits, tf.float32)


def with_logits(model, outputs, labels=None):
    """Turns the outputs of an `EncoderDecoder` into those of conditional generation.

    Args:
        model: object with a method `logits` of hidden states.
        outputs: dict, whose `last_hidden_state` is left out.
        labels: int [batch, target_length], or None.
    Returns:
        dict: `logits`, float32 [batch, target_length, vocab_size]; with labels `loss`, float32
        scalar, the mean over all labels; and the other outputs.
    """
    outputs = dict(outputs)
    logits = model.logits(outputs.pop("last_hidden_state"))
    loss = {} if labels is None else {"loss": labels_lib.loss(logits, labels)}
    return {"logits": logits, **loss, **outputs}
