"""Attention layers of decoders: causal and cross-attention; on whole inputs or token by token."""

import tensorflow as tf
import tf_keras

from etcmodel import tensor_utils
from etcmodel.layers.attention.projected import ProjectedAttention
from etcmodel.ops import offsets
from etcmodel.ops.key_sets import KeySet, PreparedKeySet
from etcmodel.ops.labels import LabelTables, OffsetLabels
from etcmodel.ops.masks import CausalMask, KeyMask


class KeyCache:
    """Keys and values of a layer's previous tokens, to which the layer adds the next one.

    Attributes:
        keys: float [num_heads, batch, max_length, size_per_head].
        values: likewise.
        position: int32 scalar. Position of the next token; everything from there on is unused.
    """

    def __init__(self, keys, values, position):
        self.keys, self.values, self.position = keys, values, position

    def add(self, keys, values):
        """Sets the keys and values, [batch, 1, num_heads, size_per_head], of the next token."""
        is_next = tf.equal(tf.range(tf.shape(self.keys)[2]), self.position)[:, tf.newaxis]
        self.keys, self.values = (
            tf.where(is_next, tf.transpose(new, [2, 0, 1, 3]), old)
            for new, old in ((keys, self.keys), (values, self.values))
        )


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class CausalSelfAttention(ProjectedAttention):
    """Causal self-attention: each token attends to itself and to those before it.

    Args:
        hidden_size, num_heads, size_per_head, **kwargs: see `ProjectedAttention`.
        max_distance: int or None. The distance at which the last of T5's buckets begins; None for
            no biases.
    Call args:
        inputs: float [batch, length, hidden_size]; with a cache the length is 1.
        bias_table: float [num_buckets, num_heads], or None without biases.
        att_mask: 0/1 int [batch, length] or None. 0 for tokens that no other one attends to.
        cache: `KeyCache` or None. The previous tokens; this one is added.
        training: bool.
    Returns:
        Same shape as `inputs`.
    """

    def __init__(self, hidden_size, num_heads, size_per_head=None, *, max_distance=None, **kwargs):
        super().__init__(hidden_size, num_heads, size_per_head, **kwargs)
        self.max_distance = max_distance

    def call(self, inputs, bias_table=None, att_mask=None, cache=None, training=None):
        labels = None
        if bias_table is not None:
            num_buckets = tensor_utils.get_shape_list(bias_table)[0]
            buckets = offsets.CausalLogBuckets(num_buckets, self.max_distance)
            labels = OffsetLabels(LabelTables(biases=bias_table), buckets)
        masks = (CausalMask(),) if att_mask is None else (CausalMask(), KeyMask(att_mask))
        rules = {"masks": masks, "labels": labels}
        queries, keys_values = self.split(self.query(inputs)), self.keys_values(inputs)
        if cache is None:
            return self.attend(queries, [KeySet(*keys_values, **rules)], training)
        position = cache.position
        cache.add(*keys_values)
        key_set = PreparedKeySet(cache.keys, cache.values, **rules)
        return self.attend(queries, [key_set], training, query_positions=position[tf.newaxis])

    def get_config(self):
        return {**super().get_config(), "max_distance": self.max_distance}


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class CrossAttention(ProjectedAttention):
    """Cross-attention: each token attends to the whole output of the encoder.

    Args: see `ProjectedAttention`.
    Call args:
        inputs: float [rows, length, hidden_size]. `rows` is the encoder's batch or a multiple of
            it: the rows of an example, such as its beams, are adjacent and share its keys.
        encoder_output: float [batch, encoder_length, hidden_size]; or the result of `prepare`.
        att_mask: 0/1 int [batch, encoder_length] or None. 0 for padding, which is not attended to.
        training: bool.
    Returns:
        Same shape as `inputs`.
    """

    def prepare(self, encoder_output):
        """Computes an encoder output's keys and values, for many calls: a `PreparedKeySet`."""
        return KeySet(*self.keys_values(encoder_output)).prepare()

    def call(self, inputs, encoder_output, att_mask=None, training=None):
        masks = () if att_mask is None else (KeyMask(att_mask),)
        if isinstance(encoder_output, PreparedKeySet):
            keys, values = encoder_output.keys, encoder_output.values
            key_set, batch = PreparedKeySet(keys, values, masks=masks), tf.shape(keys)[1]
        else:
            key_set = KeySet(*self.keys_values(encoder_output), masks=masks)
            batch = tensor_utils.get_shape_list(encoder_output)[0]
        shape = tensor_utils.get_shape_list(inputs)
        queries = self.split(self.query(inputs))
        # The queries of an example are rows of one attention, so that nothing is repeated for them.
        queries = tf.reshape(queries, [batch, -1, self.num_heads, self.size_per_head])
        return tf.reshape(self.attend(queries, [key_set], training), shape)
