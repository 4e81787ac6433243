"""Global-local attention (paper, section 3.2)."""

from typing import NamedTuple

import tensorflow as tf
import tf_keras

from etcmodel import tensor_utils
from etcmodel.layers import base, dense, initializers, sublayers
from etcmodel.layers.attention.qkv import QkvRelativeAttention, QkvRelativeLocalAttention
from etcmodel.layers.attention.relative import ProjectAttentionHeads, check_multiple
from etcmodel.layers.attention.side_inputs import WINDOW, pairs_of
from etcmodel.ops import argument_checks


class Pieces(NamedTuple):
    """Queries and, for each piece, (keys, values): float [batch, len, num_heads, size_per_head]."""

    long_queries: tf.Tensor
    l2l: tuple
    l2g: tuple
    global_queries: tf.Tensor
    g2g: tuple
    g2l: tuple


class GlobalLocalProjections(base.Layer):
    """The base of global-local attention layers: their projections.

    A subclass creates the attention itself, as `long_qkv_attention` and `global_qkv_attention`.

    Args: see `FusedGlobalLocalAttention`.
    Raises:
        ValueError: if a size is below 1 or not a multiple of the number of heads, or projections
            of different sizes are to be shared.
    """

    def __init__(
        self,
        long_hidden_size,
        global_hidden_size,
        num_heads,
        *,
        long_total_att_size=None,
        global_total_att_size=None,
        initializer=None,
        share_kv_projections=False,
        share_qkv_projections=False,
        share_att_output_projection=False,
        **kwargs,
    ):
        super().__init__(**kwargs)
        base.check_at_least_1(
            long_hidden_size=long_hidden_size, global_hidden_size=global_hidden_size
        )
        self.long_hidden_size = long_hidden_size
        self.global_hidden_size = global_hidden_size
        self.num_heads = num_heads
        self.long_total_att_size = long_total_att_size or long_hidden_size
        self.global_total_att_size = global_total_att_size or global_hidden_size
        self.initializer = initializers.as_initializer(initializer)
        self.share_kv_projections = share_kv_projections
        self.share_qkv_projections = share_qkv_projections
        self.share_att_output_projection = share_att_output_projection
        self._check_sizes()
        self._make_projections()

    def _check_sizes(self):
        check_multiple(self.num_heads, long_total_att_size=self.long_total_att_size)
        check_multiple(self.num_heads, global_total_att_size=self.global_total_att_size)
        same_hidden = self.long_hidden_size == self.global_hidden_size
        same_att = self.long_total_att_size == self.global_total_att_size
        sizes = (
            f"{self.long_hidden_size=}, {self.global_hidden_size=}, "
            f"{self.long_total_att_size=}, {self.global_total_att_size=}"
        ).replace("self.", "")
        shared = {
            "share_kv_projections": self.share_kv_projections,
            "share_qkv_projections": self.share_qkv_projections,
            "share_att_output_projection": self.share_att_output_projection,
        }
        for option, is_on in shared.items():
            if is_on and not (same_hidden and same_att):
                raise ValueError(f"`{option}` needs equal long and global sizes. Received: {sizes}")

    def _make_projections(self):
        """Creates the projections, some of them shared, in the order of the release's names."""
        long_size, global_size = self.long_total_att_size, self.global_total_att_size
        project = self._project
        self.long_query_projection = project("long_query", long_size)
        self.l2l_key_projection = project("l2l_key", long_size)
        self.l2l_value_projection = project("l2l_value", long_size)
        if self.share_qkv_projections:
            self.global_query_projection = self.long_query_projection
            self.g2g_key_projection = self.l2l_key_projection
            self.g2g_value_projection = self.l2l_value_projection
        else:
            self.global_query_projection = project("global_query", global_size)
            self.g2g_key_projection = project("g2g_key", global_size)
            self.g2g_value_projection = project("g2g_value", global_size)
        if self.share_qkv_projections or self.share_kv_projections:
            self.l2g_key_projection = self.l2l_key_projection
            self.l2g_value_projection = self.l2l_value_projection
            self.g2l_key_projection = self.g2g_key_projection
            self.g2l_value_projection = self.g2g_value_projection
        else:
            self.l2g_key_projection = project("l2g_key", long_size)
            self.l2g_value_projection = project("l2g_value", long_size)
            self.g2l_key_projection = project("g2l_key", global_size)
            self.g2l_value_projection = project("g2l_value", global_size)
        self.long_output_projection = self._output("long", self.long_hidden_size)
        self.global_output_projection = (
            self.long_output_projection
            if self.share_att_output_projection
            else self._output("global", self.global_hidden_size)
        )

    def _kernel_initializer(self):
        return initializers.fresh_or_default(self.initializer)

    def _project(self, what, total_size):
        return ProjectAttentionHeads(
            self.num_heads,
            total_size // self.num_heads,
            initializer=self._kernel_initializer(),
            name=f"{what}_projection",
            dtype=self.dtype_policy,
        )

    def _output(self, side, hidden_size):
        return dense.Dense(
            hidden_size,
            kernel_initializer=self._kernel_initializer(),
            name=f"{side}_output_projection",
            dtype=self.dtype_policy,
        )

    def build(self, input_shape):
        long_input = tf.TensorShape([None, None, self.long_hidden_size])
        global_input = tf.TensorShape([None, None, self.global_hidden_size])
        for layer, shape in (
            (self.long_query_projection, long_input),
            (self.l2l_key_projection, long_input),
            (self.l2g_key_projection, global_input),
            (self.l2l_value_projection, long_input),
            (self.l2g_value_projection, global_input),
            (self.long_qkv_attention, self._heads_shape(self.long_total_att_size)),
            (self.long_output_projection, [None, None, self.long_total_att_size]),
            (self.global_query_projection, global_input),
            (self.g2g_key_projection, global_input),
            (self.g2g_value_projection, global_input),
            (self.g2l_key_projection, long_input),
            (self.g2l_value_projection, long_input),
            (self.global_qkv_attention, self._heads_shape(self.global_total_att_size)),
            (self.global_output_projection, [None, None, self.global_total_att_size]),
        ):
            sublayers.build_sublayer(layer, tf.TensorShape(shape))
        super().build(input_shape)

    def _heads_shape(self, total_size):
        return [None, None, self.num_heads, total_size // self.num_heads]

    def project_pieces(self, long_input, global_input):
        """Projects the inputs, float [batch, len, hidden_size] each, to `Pieces`."""
        long, global_ = self._projecting(long_input), self._projecting(global_input)
        return Pieces(
            long_queries=long(self.long_query_projection),
            l2l=(long(self.l2l_key_projection), long(self.l2l_value_projection)),
            l2g=(global_(self.l2g_key_projection), global_(self.l2g_value_projection)),
            global_queries=global_(self.global_query_projection),
            g2g=(global_(self.g2g_key_projection), global_(self.g2g_value_projection)),
            g2l=(long(self.g2l_key_projection), long(self.g2l_value_projection)),
        )

    @staticmethod
    def _projecting(inputs):
        """Returns a function of a projection to [batch, len, num_heads, size_per_head].

        All projections use the same flattened input: a loop over layers would keep each of several.
        """
        batch, length, size = tensor_utils.get_shape_list(inputs)
        rows = tf.reshape(inputs, [-1, size])

        def project(projection):
            return tf.reshape(projection(rows), [batch, length, *projection.heads_shape])

        return project

    def project_outputs(self, long_att, global_att):
        """Projects attention outputs, [batch, len, num_heads, size_per_head], to [long, global]."""
        return [
            self.long_output_projection(tensor_utils.flatten_dims(long_att, first_dim=-2)),
            self.global_output_projection(tensor_utils.flatten_dims(global_att, first_dim=-2)),
        ]

    def get_config(self):
        return {**super().get_config(), **base.config_entries(self, __class__)}


_AXES = {
    "long_input": "batch long_len long_hidden_size",
    "global_input": "batch global_len global_hidden_size",
}


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class FusedGlobalLocalAttention(GlobalLocalProjections):
    """Global-local attention: the four pieces l2l, l2g, g2g and g2l, with one softmax per query.

    Long tokens attend to the long tokens within `local_radius` and to all global tokens; global
    tokens attend to all tokens.

    Args:
        long_hidden_size: int. Size of the long input and output.
        global_hidden_size: int. Size of the global input and output.
        num_heads: int.
        local_radius: int, at least 1. Long tokens attended to on each side.
        long_total_att_size: int. Size of long queries, keys and values over all heads; by default
            `long_hidden_size`.
        global_total_att_size: int. The same for global queries; by default `global_hidden_size`.
        relative_vocab_size: int or None. Number of relative labels; None for no labels.
        att_dropout_prob: float. Dropout rate of attention probabilities.
        initializer: initializer of the projections; by default truncated normal, 0.02.
        share_kv_projections: bool. Whether the pieces of one query side (l2l and l2g; g2g and g2l)
            share their key and their value projections.
        share_qkv_projections: bool. Whether all pieces share one query, key and value projection.
        share_att_output_projection: bool. Whether the long and the global input share one output
            projection.
        use_one_hot_lookup: bool. Whether to look up labels by matrix products.
        name: name of the layer.
    Call args:
        long_input: float [batch, long_len, long_hidden_size].
        global_input: float [batch, global_len, global_hidden_size].
        l2l_att_mask: 0/1 int or bool [batch, long_len, 2 * local_radius + 1], or None.
        g2g_att_mask: 0/1 int or bool [batch, global_len, global_len], or None.
        l2g_att_mask: 0/1 int or bool [batch, long_len, global_len], or None.
        g2l_att_mask: 0/1 int or bool [batch, global_len, long_len], or None.
        l2l_relative_att_ids: int, shaped as the mask of the same piece, or None.
        g2g_relative_att_ids: likewise.
        l2g_relative_att_ids: likewise.
        g2l_relative_att_ids: likewise.
        att_implementation: 'auto', 'sparse' or 'full'; see `ops.attention.local_attend`.
        training: bool.
        structure: `ops.structure.GlobalLocalStructure` in place of the masks and labels, which is
            faster and whose memory does not grow with the number of pairs; or the masks and labels
            as a `DenseSideInputs`; or None.
    Returns:
        [long_output, global_output], shaped as the inputs.
    Raises:
        ValueError: if a number is out of range or shapes do not match; if projections of different
            sizes are to be shared; if a size is not a multiple of the number of heads; if a
            structure is given together with masks or labels; or if labels are given for only one of
            the two pieces that share a softmax.

    >>> from etcmodel import layers
    >>> attention = layers.FusedGlobalLocalAttention(8, 8, num_heads=2, local_radius=1)
    >>> long_output, global_output = attention(tf.zeros([1, 6, 8]), tf.zeros([1, 2, 8]))
    >>> long_output.shape, global_output.shape
    (TensorShape([1, 6, 8]), TensorShape([1, 2, 8]))
    """

    def __init__(
        self,
        long_hidden_size,
        global_hidden_size,
        num_heads,
        local_radius,
        long_total_att_size=None,
        global_total_att_size=None,
        relative_vocab_size=None,
        att_dropout_prob=0.0,
        initializer=None,
        share_kv_projections=False,
        share_qkv_projections=False,
        share_att_output_projection=False,
        use_one_hot_lookup=False,
        name="fused_global_local_att",
        **kwargs,
    ):
        super().__init__(
            long_hidden_size,
            global_hidden_size,
            num_heads,
            long_total_att_size=long_total_att_size,
            global_total_att_size=global_total_att_size,
            initializer=initializer,
            share_kv_projections=share_kv_projections,
            share_qkv_projections=share_qkv_projections,
            share_att_output_projection=share_att_output_projection,
            name=name,
            **kwargs,
        )
        self.local_radius = local_radius
        self.relative_vocab_size = relative_vocab_size
        self.att_dropout_prob = att_dropout_prob
        self.use_one_hot_lookup = use_one_hot_lookup
        self.long_qkv_attention = QkvRelativeLocalAttention(
            local_radius, name="long_qkv_attention", **self._attention_options()
        )
        self.global_qkv_attention = QkvRelativeAttention(
            name="global_qkv_attention", **self._attention_options()
        )

    def _attention_options(self):
        return {
            "relative_vocab_size": self.relative_vocab_size,
            "att_dropout_prob": self.att_dropout_prob,
            "use_one_hot_lookup": self.use_one_hot_lookup,
            "dtype": self.dtype_policy,
        }

    def call(
        self,
        long_input,
        global_input,
        l2l_att_mask=None,
        g2g_att_mask=None,
        l2g_att_mask=None,
        g2l_att_mask=None,
        l2l_relative_att_ids=None,
        g2g_relative_att_ids=None,
        l2g_relative_att_ids=None,
        g2l_relative_att_ids=None,
        att_implementation="auto",
        training=None,
        structure=None,
    ):
        pairs = pairs_of(
            structure,
            l2l_att_mask,
            g2g_att_mask,
            l2g_att_mask,
            g2l_att_mask,
            l2l_relative_att_ids,
            g2g_relative_att_ids,
            l2g_relative_att_ids,
            g2l_relative_att_ids,
            relative_vocab_size=self.relative_vocab_size,
        )
        self._check_inputs(long_input, global_input, pairs)
        pieces = self.project_pieces(*sublayers.cast_all(self, long_input, global_input))
        long_att = self.long_qkv_attention.attend_by_structure(
            pieces.long_queries, pieces.l2l, pieces.l2g, pairs, att_implementation, training
        )
        global_att = self.global_qkv_attention.attend_by_structure(
            pieces.global_queries, pieces.g2g, pieces.g2l, pairs, training
        )
        return self.project_outputs(long_att, global_att)

    def _check_inputs(self, long_input, global_input, pairs):
        inputs = {"long_input": long_input, "global_input": global_input}
        sizes = {
            "long_hidden_size": self.long_hidden_size,
            "global_hidden_size": self.global_hidden_size,
            WINDOW: 2 * self.local_radius + 1,
        }
        sizes = argument_checks.check_shapes(inputs, _AXES, sizes)
        argument_checks.check_shapes(*pairs.tensors_and_axes(), sizes)
        pairs.check_labels(self.relative_vocab_size)

    def get_config(self):
        return {**super().get_config(), **base.config_entries(self, __class__)}
