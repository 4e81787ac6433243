"""Attention of given queries, keys and values, with relative positions."""

import tensorflow as tf
import tf_keras

from etcmodel.layers import base, initializers, sublayers
from etcmodel.layers.attention.side_inputs import WINDOW
from etcmodel.ops import argument_checks
from etcmodel.ops import attention as attention_ops

# The initializer of label embeddings, which are added to keys, not to hidden states.
RELATIVE_INITIALIZER = tf_keras.initializers.TruncatedNormal(stddev=0.5)

_FULL_AXES = {
    "queries": "batch query_len num_heads size_per_head",
    "keys": "batch key_len num_heads size_per_head",
    "values": "batch key_len num_heads value_size_per_head",
    "att_mask": "batch? query_len key_len",
    "relative_att_ids": "batch query_len key_len",
}


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class QkvRelativeAttention(base.Layer):
    """Scaled dot-product attention with relative labels (paper, section 3.1).

    Args:
        relative_vocab_size: int or None. Number of labels; None for no labels.
        att_dropout_prob: float. Dropout rate of attention probabilities.
        initializer: initializer of the label embeddings; None for the default.
        use_one_hot_lookup: bool. Whether to look up labels by matrix products.
        name: name of the layer.
    Call args:
        queries: float [batch, query_len, num_heads, size_per_head].
        keys: float [batch, key_len, num_heads, size_per_head].
        values: float [batch, key_len, num_heads, value_size_per_head].
        att_mask: 0/1 int or bool [batch or 1, query_len, key_len], or None.
        relative_att_ids: int [batch, query_len, key_len], or None.
        training: bool.
    Returns:
        float [batch, query_len, num_heads, value_size_per_head].
    Raises:
        ValueError: if labels are given without `relative_vocab_size`, a number is out of range, or
            shapes do not match.

    >>> from etcmodel import layers
    >>> attention = layers.QkvRelativeAttention(relative_vocab_size=5)
    >>> queries, keys = tf.zeros([1, 3, 2, 4]), tf.zeros([1, 6, 2, 4])
    >>> attention(queries, keys, keys, relative_att_ids=tf.zeros([1, 3, 6], tf.int32)).shape
    TensorShape([1, 3, 2, 4])
    """

    def __init__(
        self,
        relative_vocab_size=None,
        att_dropout_prob=0.0,
        initializer=RELATIVE_INITIALIZER,
        use_one_hot_lookup=False,
        name="qkv_relative_attention",
        **kwargs,
    ):
        super().__init__(name=name, **kwargs)
        if relative_vocab_size is not None:
            base.check_at_least_1(relative_vocab_size=relative_vocab_size)
        base.check_rates(att_dropout_prob=att_dropout_prob)
        self.relative_vocab_size = relative_vocab_size
        self.att_dropout_prob = att_dropout_prob
        self.initializer = initializers.as_initializer(initializer) or RELATIVE_INITIALIZER
        self.use_one_hot_lookup = use_one_hot_lookup
        self.relative_emb_table = self.relative_bias_table = None

    def build(self, queries_shape):
        if self.relative_vocab_size is not None:
            num_heads, size_per_head = queries_shape[-2:]
            self.relative_emb_table = self.add_weight(
                name="relative_emb_table",
                shape=(self.relative_vocab_size, num_heads, size_per_head),
                initializer=initializers.fresh(self.initializer),
            )
            self.relative_bias_table = self.add_weight(
                name="relative_bias_table",
                shape=(self.relative_vocab_size, num_heads),
                initializer="zeros",
            )
        super().build(queries_shape)

    def labels(self, are_given):
        """Returns the label tables for the ops, or None if no labels are given."""
        if not are_given:
            return None
        if self.relative_vocab_size is None:
            argument_checks.fail(
                f"Layer {self.name!r} got relative labels, but its `relative_vocab_size` is None."
            )
        return attention_ops.RelativeLabels(
            self.relative_emb_table, self.relative_bias_table, self.use_one_hot_lookup
        )

    def dropout_rate(self, training):
        """Returns the dropout rate of a call: 0 unless training."""
        return self.att_dropout_prob if training else 0.0

    def call(self, queries, keys, values, att_mask=None, relative_att_ids=None, training=None):
        inputs = {
            "queries": queries,
            "keys": keys,
            "values": values,
            "att_mask": att_mask,
            "relative_att_ids": relative_att_ids,
        }
        argument_checks.check_shapes(inputs, _FULL_AXES)
        return attention_ops.attend(
            *sublayers.cast_all(self, queries, keys, values),
            att_mask=att_mask,
            att_ids=relative_att_ids,
            labels=self.labels(relative_att_ids is not None),
            dropout_rate=self.dropout_rate(training),
        )

    def attend_by_structure(self, queries, own, other, structure, training=None):
        """Attends from global queries to global and long keys.

        Args:
            queries: float [batch, global_len, num_heads, size_per_head].
            own: keys and values of global tokens, [batch, global_len, num_heads, size_per_head].
            other: keys and values of long tokens, [batch, long_len, num_heads, size_per_head].
            structure: `ops.structure.GlobalLocalStructure`.
            training: bool.
        Returns:
            float [batch, global_len, num_heads, size_per_head].
        """
        return attention_ops.global_attend(
            queries,
            own,
            other,
            structure,
            labels=self.labels(structure.has_labels),
            dropout_rate=self.dropout_rate(training),
        )

    def get_config(self):
        return {**super().get_config(), **base.config_entries(self, __class__)}


_AXES = {
    "queries": "batch long_len num_heads size_per_head",
    "keys": "batch long_len num_heads size_per_head",
    "values": "batch long_len num_heads value_size_per_head",
    "att_mask": f"batch? long_len {WINDOW}",
    "relative_att_ids": f"batch long_len {WINDOW}",
    "side_keys": "batch side_len num_heads size_per_head",
    "side_values": "batch side_len num_heads value_size_per_head",
    "side_att_mask": "batch? long_len side_len",
    "side_relative_att_ids": "batch long_len side_len",
}


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class QkvRelativeLocalAttention(base.Layer):
    """Sliding-window attention with side keys and relative labels (paper, section 3.2).

    Each token attends to the tokens within `local_radius` and to all side keys, in one softmax.

    Args:
        local_radius: int, at least 1. Tokens attended to on each side.
        relative_vocab_size: int or None. Number of labels; None for no labels.
        att_dropout_prob: float. Dropout rate of attention probabilities.
        initializer: initializer of the label embeddings; None for the default.
        use_one_hot_lookup: bool. Whether to look up labels by matrix products.
        name: name of the layer.
    Call args:
        queries: float [batch, long_len, num_heads, size_per_head].
        keys: float [batch, long_len, num_heads, size_per_head].
        values: float [batch, long_len, num_heads, value_size_per_head].
        att_mask: 0/1 int or bool [batch or 1, long_len, 2 * local_radius + 1], or None.
        relative_att_ids: int [batch, long_len, 2 * local_radius + 1], or None.
        side_keys: float [batch, side_len, num_heads, size_per_head], or None.
        side_values: float [batch, side_len, num_heads, value_size_per_head], or None.
        side_att_mask: 0/1 int or bool [batch or 1, long_len, side_len], or None.
        side_relative_att_ids: int [batch, long_len, side_len], or None.
        att_implementation: 'auto', 'sparse' or 'full'; see `ops.attention.local_attend`.
        training: bool.
    Returns:
        float [batch, long_len, num_heads, value_size_per_head].
    Raises:
        ValueError: if `local_radius` is below 1; if shapes do not match; if only one of side keys
            and side values is given, or their mask or labels without them; if only one kind of keys
            has labels; or if `att_implementation` is unknown.

    >>> from etcmodel import layers
    >>> attention = layers.QkvRelativeLocalAttention(local_radius=2)
    >>> inputs, side = tf.zeros([1, 6, 2, 4]), tf.zeros([1, 3, 2, 4])
    >>> attention(inputs, inputs, inputs, side_keys=side, side_values=side).shape
    TensorShape([1, 6, 2, 4])
    """

    def __init__(
        self,
        local_radius,
        relative_vocab_size=None,
        att_dropout_prob=0.0,
        initializer=RELATIVE_INITIALIZER,
        use_one_hot_lookup=False,
        name="qkv_relative_local_att",
        **kwargs,
    ):
        super().__init__(name=name, **kwargs)
        base.check_at_least_1(local_radius=local_radius)
        self.local_radius = local_radius
        self.qkv_relative_attention = QkvRelativeAttention(
            relative_vocab_size=relative_vocab_size,
            att_dropout_prob=att_dropout_prob,
            initializer=initializer,
            use_one_hot_lookup=use_one_hot_lookup,
            dtype=self.dtype_policy,
        )

    def build(self, queries_shape):
        sublayers.build_sublayer(self.qkv_relative_attention, tf.TensorShape(queries_shape))
        super().build(queries_shape)

    def call(
        self,
        queries,
        keys,
        values,
        att_mask=None,
        relative_att_ids=None,
        side_keys=None,
        side_values=None,
        side_att_mask=None,
        side_relative_att_ids=None,
        att_implementation="auto",
        training=None,
    ):
        inputs = {
            "queries": queries,
            "keys": keys,
            "values": values,
            "att_mask": att_mask,
            "relative_att_ids": relative_att_ids,
            "side_keys": side_keys,
            "side_values": side_values,
            "side_att_mask": side_att_mask,
            "side_relative_att_ids": side_relative_att_ids,
        }
        argument_checks.check_shapes(inputs, _AXES, {WINDOW: 2 * self.local_radius + 1})
        side = None
        self._check_side(
            relative_att_ids, side_keys, side_values, side_att_mask, side_relative_att_ids
        )
        if side_keys is not None:
            side = attention_ops.SideKeys(
                *sublayers.cast_all(self, side_keys, side_values),
                side_att_mask,
                side_relative_att_ids,
            )
        return attention_ops.local_attend(
            *sublayers.cast_all(self, queries, keys, values),
            local_radius=self.local_radius,
            att_mask=att_mask,
            att_ids=relative_att_ids,
            side=side,
            labels=self.qkv_relative_attention.labels(relative_att_ids is not None),
            dropout_rate=self.qkv_relative_attention.dropout_rate(training),
            implementation=att_implementation,
        )

    @staticmethod
    def _check_side(relative_att_ids, side_keys, side_values, side_att_mask, side_relative_att_ids):
        if (side_keys is None) != (side_values is None):
            argument_checks.fail("Give both `side_keys` and `side_values`, or neither.")
        if side_keys is None:
            sides = {"side_att_mask": side_att_mask, "side_relative_att_ids": side_relative_att_ids}
            for name, given in sides.items():
                if given is not None:
                    argument_checks.fail(f"`{name}` needs `side_keys` and `side_values`.")
        elif (relative_att_ids is None) != (side_relative_att_ids is None):
            argument_checks.fail(
                "With side keys, give both `relative_att_ids` and `side_relative_att_ids`, or "
                "neither: both kinds of keys share one softmax."
            )

    def attend_by_structure(
        self, queries, own, other, structure, att_implementation="auto", training=None
    ):
        """Attends from long queries to long keys within the radius and to global keys.

        Args:
            queries: float [batch, long_len, num_heads, size_per_head].
            own: keys and values of long tokens, [batch, long_len, num_heads, size_per_head].
            other: keys and values of global tokens, [batch, global_len, num_heads, size_per_head].
            structure: `ops.structure.GlobalLocalStructure`.
            att_implementation: 'auto', 'sparse' or 'full'; see `ops.attention.long_attend`.
            training: bool.
        Returns:
            float [batch, long_len, num_heads, size_per_head].
        """
        return attention_ops.long_attend(
            queries,
            own,
            other,
            structure,
            local_radius=self.local_radius,
            labels=self.qkv_relative_attention.labels(structure.has_labels),
            dropout_rate=self.qkv_relative_attention.dropout_rate(training),
            implementation=att_implementation,
        )

    def get_config(self):
        inner = self.qkv_relative_attention.get_config()
        kept = ("relative_vocab_size", "att_dropout_prob", "initializer", "use_one_hot_lookup")
        return {
            **super().get_config(),
            "local_radius": self.local_radius,
            **{name: inner[name] for name in kept},
        }
