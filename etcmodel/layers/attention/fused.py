"""Global-local attention (paper, section 3.2)."""

import tensorflow as tf
import tf_keras

from etcmodel import tensor_utils
from etcmodel.layers import base, helpers
from etcmodel.layers.attention.qkv import QkvRelativeAttention, QkvRelativeLocalAttention
from etcmodel.layers.attention.relative import ProjectAttentionHeads, check_multiple
from etcmodel.ops import argument_checks
from etcmodel.ops.structure import GlobalLocalStructure

__all__ = ["SIDE_INPUT_AXES", "WINDOW", "FusedGlobalLocalAttention"]

WINDOW = "2*local_radius+1"
SIDE_INPUT_AXES = {
    "l2l_att_mask": f"batch long_len {WINDOW}",
    "g2g_att_mask": "batch global_len global_len",
    "l2g_att_mask": "batch long_len global_len",
    "g2l_att_mask": "batch global_len long_len",
    "l2l_relative_att_ids": f"batch long_len {WINDOW}",
    "g2g_relative_att_ids": "batch global_len global_len",
    "l2g_relative_att_ids": "batch long_len global_len",
    "g2l_relative_att_ids": "batch global_len long_len",
}
_AXES = {
    "long_input": "batch long_len long_hidden_size",
    "global_input": "batch global_len global_hidden_size",
    **SIDE_INPUT_AXES,
}


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class FusedGlobalLocalAttention(base.Layer):
    """The four attention pieces l2l, l2g, g2g, g2l, in one softmax per query.

    Long tokens attend to the long tokens within `local_radius` and to all global tokens; global
    tokens attend to all tokens.

    Args:
        long_hidden_size: int. Size of the long input and output.
        global_hidden_size: int. Size of the global input and output.
        num_heads: int.
        local_radius: int, at least 1. Long tokens visible on each side.
        long_total_att_size: int. Size of long queries, keys and values over all heads; by default
            `long_hidden_size`.
        global_total_att_size: int. The same for global queries; by default `global_hidden_size`.
        relative_vocab_size: int or None. Number of relative labels; None for no labels.
        att_dropout_prob: float. Dropout of attention probabilities.
        initializer: initializer of the projections; by default truncated normal, 0.02.
        share_kv_projections: bool. The pieces of one query side (l2l and l2g; g2g and g2l) share
            their key and their value projections.
        share_qkv_projections: bool. All pieces share one query, key and value projection.
        share_att_output_projection: bool. Long and global output projection are one.
        use_one_hot_lookup: bool. Looks labels up by matrix products.
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
        structure: `ops.structure.GlobalLocalStructure` in place of the masks and labels: faster,
            and in memory that does not grow with the number of pairs. Or None.
    Returns:
        [long_output, global_output], shaped as the inputs.
    Raises:
        ValueError: if a number is out of range or shapes do not fit; if sizes do not allow what is
            to be shared, or are no multiple of the heads; if a structure is given together with
            masks or labels, or labels of only one of the two pieces that share a softmax.
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
        super().__init__(name=name, **kwargs)
        helpers.check_at_least_1(
            long_hidden_size=long_hidden_size, global_hidden_size=global_hidden_size
        )
        self.long_hidden_size = long_hidden_size
        self.global_hidden_size = global_hidden_size
        self.num_heads = num_heads
        self.local_radius = local_radius
        self.long_total_att_size = long_total_att_size or long_hidden_size
        self.global_total_att_size = global_total_att_size or global_hidden_size
        self.relative_vocab_size = relative_vocab_size
        self.att_dropout_prob = att_dropout_prob
        self.initializer = helpers.as_initializer(initializer)
        self.share_kv_projections = share_kv_projections
        self.share_qkv_projections = share_qkv_projections
        self.share_att_output_projection = share_att_output_projection
        self.use_one_hot_lookup = use_one_hot_lookup
        self._check_sizes()
        self._make_projections()
        self.long_qkv_attention = QkvRelativeLocalAttention(
            local_radius, name="long_qkv_attention", **self._attention_options()
        )
        self.global_qkv_attention = QkvRelativeAttention(
            name="global_qkv_attention", **self._attention_options()
        )

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
        """Creates the projections in the order in which the release names them; shares them."""
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
        return helpers.fresh(self.initializer) or helpers.default_initializer()

    def _project(self, what, total_size):
        return ProjectAttentionHeads(
            self.num_heads,
            total_size // self.num_heads,
            initializer=self._kernel_initializer(),
            name=f"{what}_projection",
            dtype=self.dtype_policy,
        )

    def _output(self, side, hidden_size):
        return helpers.Dense(
            hidden_size,
            kernel_initializer=self._kernel_initializer(),
            name=f"{side}_output_projection",
            dtype=self.dtype_policy,
        )

    def _attention_options(self):
        return {
            "relative_vocab_size": self.relative_vocab_size,
            "att_dropout_prob": self.att_dropout_prob,
            "use_one_hot_lookup": self.use_one_hot_lookup,
            "dtype": self.dtype_policy,
        }

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
            (self.long_output_projection, self._att_shape(self.long_total_att_size)),
            (self.global_query_projection, global_input),
            (self.g2g_key_projection, global_input),
            (self.g2g_value_projection, global_input),
            (self.g2l_key_projection, long_input),
            (self.g2l_value_projection, long_input),
            (self.global_qkv_attention, self._heads_shape(self.global_total_att_size)),
            (self.global_output_projection, self._att_shape(self.global_total_att_size)),
        ):
            helpers.build_sublayer(layer, shape)
        super().build(input_shape)

    def _heads_shape(self, total_size):
        return tf.TensorShape([None, None, self.num_heads, total_size // self.num_heads])

    def _att_shape(self, total_size):
        return tf.TensorShape([None, None, total_size])

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
        structure = GlobalLocalStructure.of(structure)
        inputs = {
            "long_input": long_input,
            "global_input": global_input,
            "l2l_att_mask": l2l_att_mask,
            "g2g_att_mask": g2g_att_mask,
            "l2g_att_mask": l2g_att_mask,
            "g2l_att_mask": g2l_att_mask,
            "l2l_relative_att_ids": l2l_relative_att_ids,
            "g2g_relative_att_ids": g2g_relative_att_ids,
            "l2g_relative_att_ids": l2g_relative_att_ids,
            "g2l_relative_att_ids": g2l_relative_att_ids,
        }
        self._check_inputs(inputs, structure)
        long_input, global_input = helpers.cast_all(self, long_input, global_input)
        long_queries = self.long_query_projection(long_input)
        l2l = (self.l2l_key_projection(long_input), self.l2l_value_projection(long_input))
        l2g = (self.l2g_key_projection(global_input), self.l2g_value_projection(global_input))
        global_queries = self.global_query_projection(global_input)
        g2g = (self.g2g_key_projection(global_input), self.g2g_value_projection(global_input))
        g2l = (self.g2l_key_projection(long_input), self.g2l_value_projection(long_input))
        if structure is not None:
            long_att = self.long_qkv_attention.attend_by_structure(
                long_queries, l2l, l2g, structure, att_implementation, training
            )
            global_att = self.global_qkv_attention.attend_by_structure(
                global_queries, g2g, g2l, structure, training
            )
        else:
            long_att = self.long_qkv_attention(
                long_queries,
                *l2l,
                att_mask=l2l_att_mask,
                relative_att_ids=l2l_relative_att_ids,
                side_keys=l2g[0],
                side_values=l2g[1],
                side_att_mask=l2g_att_mask,
                side_relative_att_ids=l2g_relative_att_ids,
                att_implementation=att_implementation,
                training=training,
            )
            global_att = self.global_qkv_attention(
                global_queries,
                *(tf.concat(pieces, axis=1) for pieces in zip(g2g, g2l, strict=True)),
                att_mask=_join_pieces(g2g_att_mask, g2l_att_mask, global_input, long_input, fill=1),
                relative_att_ids=_join_pieces(
                    g2g_relative_att_ids, g2l_relative_att_ids, global_input, long_input, fill=None
                ),
                training=training,
            )
        return [
            self.long_output_projection(tensor_utils.flatten_dims(long_att, first_dim=-2)),
            self.global_output_projection(tensor_utils.flatten_dims(global_att, first_dim=-2)),
        ]

    def _check_inputs(self, inputs, structure):
        sizes = {
            "long_hidden_size": self.long_hidden_size,
            "global_hidden_size": self.global_hidden_size,
            WINDOW: 2 * self.local_radius + 1,
        }
        sizes = argument_checks.check_shapes(inputs, _AXES, sizes)
        if structure is None:
            if (inputs["l2l_relative_att_ids"] is None) != (inputs["l2g_relative_att_ids"] is None):
                argument_checks.fail(
                    "Give both `l2l_relative_att_ids` and `l2g_relative_att_ids`, or neither."
                )
            return
        if any(inputs[name] is not None for name in SIDE_INPUT_AXES):
            argument_checks.fail("Give `structure`, or masks and relative labels, not both.")
        argument_checks.check_shapes(*structure.tensors_and_axes(), sizes)
        num_labels = 2 * structure.max_distance + 4 if structure.max_distance else 0
        if self.relative_vocab_size is not None and self.relative_vocab_size < num_labels:
            argument_checks.fail(
                f"`structure.max_distance` {structure.max_distance} needs a `relative_vocab_size` "
                f"of at least {num_labels}. Received: {self.relative_vocab_size}"
            )

    def get_config(self):
        return {
            **super().get_config(),
            "long_hidden_size": self.long_hidden_size,
            "global_hidden_size": self.global_hidden_size,
            "num_heads": self.num_heads,
            "local_radius": self.local_radius,
            "long_total_att_size": self.long_total_att_size,
            "global_total_att_size": self.global_total_att_size,
            "relative_vocab_size": self.relative_vocab_size,
            "att_dropout_prob": self.att_dropout_prob,
            "initializer": helpers.serialize_initializer(self.initializer),
            "share_kv_projections": self.share_kv_projections,
            "share_qkv_projections": self.share_qkv_projections,
            "share_att_output_projection": self.share_att_output_projection,
            "use_one_hot_lookup": self.use_one_hot_lookup,
        }


def _join_pieces(g2g, g2l, global_input, long_input, fill):
    """g2g and g2l side by side: int [batch, global_len, global_len + long_len], or None.

    A piece that is not given is filled with `fill`; without a `fill` both must be given.
    """
    if g2g is None and g2l is None:
        return None
    if fill is None and (g2g is None or g2l is None):
        argument_checks.fail(
            "Give both `g2g_relative_att_ids` and `g2l_relative_att_ids`, or neither."
        )
    batch, global_len, _ = tensor_utils.get_shape_list(global_input)
    long_len = tensor_utils.get_shape_list(long_input)[1]
    if g2g is None:
        g2g = tf.fill([batch, global_len, global_len], fill)
    if g2l is None:
        g2l = tf.fill([batch, global_len, long_len], fill)
    return tf.concat([tf.cast(g2g, tf.int32), tf.cast(g2l, tf.int32)], axis=2)
