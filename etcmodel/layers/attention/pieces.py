"""The projections of global-local attention: queries, keys, values and outputs."""

from typing import NamedTuple

import tensorflow as tf

from etcmodel import tensor_utils
from etcmodel.layers import base, checks, dense, initializers, sublayers
from etcmodel.layers.attention.relative import ProjectAttentionHeads, check_multiple

__all__ = ["GlobalLocalProjections", "Pieces"]


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
        checks.check_at_least_1(
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
        return {
            **super().get_config(),
            "long_hidden_size": self.long_hidden_size,
            "global_hidden_size": self.global_hidden_size,
            "num_heads": self.num_heads,
            "long_total_att_size": self.long_total_att_size,
            "global_total_att_size": self.global_total_att_size,
            "initializer": initializers.serialize_initializer(self.initializer),
            "share_kv_projections": self.share_kv_projections,
            "share_qkv_projections": self.share_qkv_projections,
            "share_att_output_projection": self.share_att_output_projection,
        }
