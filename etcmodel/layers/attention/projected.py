"""The base of attention layers with query, key, value and output projections."""

import tensorflow as tf

from etcmodel import tensor_utils
from etcmodel.layers import base, dense, initializers, sublayers
from etcmodel.ops import blockwise


class ProjectedAttention(base.Layer):
    """Query, key, value and output projections; a subclass defines its key sets in `call`.

    Args:
        hidden_size: int. Size of input and output.
        num_heads: int.
        size_per_head: int or None. None for `hidden_size / num_heads`.
        scale: float or None. The factor by which logits are scaled; None for 1 /
            sqrt(`size_per_head`).
        use_bias: bool. Whether the projections have biases.
        use_output_bias: bool or None. Whether the output projection has; None: as the others.
        att_dropout_prob: float. Dropout rate of attention probabilities.
        initializer_range: float or None. Standard deviation of the initial weights; None for T5's,
            which compensate for unscaled logits (Raffel et al. 2020).
        name: name of the layer.
    Raises:
        ValueError: if a size is below 1, or `hidden_size` is not a multiple of the number of heads.
    """

    def __init__(
        self,
        hidden_size,
        num_heads,
        size_per_head=None,
        *,
        scale=None,
        use_bias=False,
        use_output_bias=None,
        att_dropout_prob=0.0,
        initializer_range=None,
        name="attention",
        **kwargs,
    ):
        super().__init__(name=name, **kwargs)
        base.check_at_least_1(hidden_size=hidden_size, num_heads=num_heads)
        base.check_rates(att_dropout_prob=att_dropout_prob)
        if size_per_head is None and hidden_size % num_heads:
            raise ValueError(
                "`hidden_size` must be a multiple of `num_heads`, or `size_per_head` given. "
                f"Received: {hidden_size=}, {num_heads=}"
            )
        self.hidden_size = hidden_size
        self.num_heads = num_heads
        self.size_per_head = size_per_head or hidden_size // num_heads
        self.scale = scale
        self.use_bias = use_bias
        self.use_output_bias = use_bias if use_output_bias is None else use_output_bias
        self.att_dropout_prob = att_dropout_prob
        self.initializer_range = initializer_range
        self.query, self.key, self.value, self.output_projection = map(
            self.make_projection, ("query", "key", "value", "output_projection")
        )

    def make_projection(self, part, name=None):
        """Creates a projection.

        Args:
            part: "query", "key", "value" or "output_projection": which one.
            name: str or None. Name of the layer; None for `part`.
        """
        inner, spread = self.num_heads * self.size_per_head, self.hidden_size**-0.5
        spreads = {"query": spread * self.size_per_head**-0.5, "output_projection": inner**-0.5}
        is_output = part == "output_projection"
        return dense.Dense(
            self.hidden_size if is_output else inner,
            use_bias=self.use_output_bias if is_output else self.use_bias,
            kernel_initializer=initializers.default_initializer(
                self.initializer_range or spreads.get(part, spread)
            ),
            name=name or part,
            dtype=self.dtype_policy,
        )

    def share_projections(self, other):
        """Replaces its projections by those of another layer of the same sizes."""
        self.query, self.key, self.value = other.query, other.key, other.value
        self.output_projection = other.output_projection

    def build(self, input_shape):
        sublayers.build_all(self.hidden_size, self.query, self.key, self.value)
        sublayers.build_all(self.num_heads * self.size_per_head, self.output_projection)
        super().build(input_shape)

    def split(self, x):
        """Splits heads: [batch, len, heads * size] to [batch, len, heads, size]."""
        *outer, _ = tensor_utils.get_shape_list(x)
        return tf.reshape(x, [*outer, self.num_heads, self.size_per_head])

    def merge(self, x):
        """The inverse of `split`."""
        *outer, _, _ = tensor_utils.get_shape_list(x)
        return tf.reshape(x, [*outer, self.num_heads * self.size_per_head])

    def keys_values(self, inputs):
        """(keys, values): float [batch, len, heads, size] each, of [batch, len, hidden_size]."""
        return self.split(self.key(inputs)), self.split(self.value(inputs))

    def attend(self, queries, key_sets, training, output=None, **options):
        """Applies `ops.blockwise.attend` and the output projection: [batch, len, hidden_size].

        `output` may be another projection than the layer's.
        """
        attended = blockwise.attend(
            queries,
            key_sets,
            scale=self.scale,
            dropout_rate=self.att_dropout_prob if training else 0.0,
            **options,
        )
        return (output or self.output_projection)(self.merge(attended))

    def get_config(self):
        return {**super().get_config(), **base.config_entries(self, __class__)}
