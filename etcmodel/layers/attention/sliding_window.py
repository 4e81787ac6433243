"""Longformer's attention: sliding windows, and global tokens with projections of their own."""

import functools

import tensorflow as tf
import tf_keras

from etcmodel import tensor_utils
from etcmodel.layers import base, dense, initializers, sublayers
from etcmodel.layers.attention.relative import ProjectAttentionHeads, check_multiple
from etcmodel.ops import argument_checks, blockwise, interception, sliding_window
from etcmodel.ops.key_sets import KeySet
from etcmodel.ops.masks import KeyMask
from etcmodel.ops.reach import Window
from etcmodel.ops.sinusoids import SinusoidPositions


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class SlidingWindowAttention(base.Layer):
    """Longformer's attention: sliding windows, and global tokens that attend to everything.

    Local tokens attend to their window and to the global tokens. Source: Beltagy et al. 2020
    (arXiv:2004.05150), section 3, as in Hugging Face's Longformer and LED: a local token attends to
    global ones with its own query and their local keys; a global token attends to all tokens with
    query, key and value projections of its own; a masked token gets 0 before the output projection.

    Args:
        hidden_size: int. Size of input and output.
        num_heads: int.
        radius: int. Tokens attended to on each side: half of Hugging Face's `attention_window`.
        dilation: int, at least 1, or sequence of int, one per head. Distance between the tokens
            attended to.
        is_causal: bool. Whether a token attends only to itself and those before it. Then there are
            no global tokens.
        att_dropout_prob: float. Dropout rate of attention probabilities.
        initializer: initializer of the projections; by default truncated normal, 0.02.
        name: name of the layer.
    Call args:
        inputs: float [batch, length, hidden_size].
        token_mask: bool [batch, length] or None. True for tokens, False for padding.
        global_tokens: `ops.sliding_window.GlobalTokens`, none of them masked, or None.
        training: bool.
    Returns:
        float [batch, length, hidden_size].
    Raises:
        ValueError: if a number is out of range, `hidden_size` is not a multiple of the number of
            heads, or a causal layer gets global tokens.

    >>> from etcmodel.layers.attention import SlidingWindowAttention
    >>> SlidingWindowAttention(hidden_size=8, num_heads=2, radius=2)(tf.zeros([1, 6, 8])).shape
    TensorShape([1, 6, 8])
    """

    def __init__(
        self,
        hidden_size,
        num_heads,
        radius,
        *,
        dilation=1,
        is_causal=False,
        att_dropout_prob=0.0,
        initializer=None,
        name="self_attention",
        **kwargs,
    ):
        super().__init__(name=name, **kwargs)
        base.check_at_least_1(hidden_size=hidden_size, num_heads=num_heads, radius=radius)
        base.check_rates(att_dropout_prob=att_dropout_prob)
        check_multiple(num_heads, hidden_size=hidden_size)
        self.hidden_size = hidden_size
        self.num_heads = num_heads
        self.radius = radius
        self.dilation = dilation if isinstance(dilation, int) else list(dilation)
        self.is_causal = is_causal
        self.att_dropout_prob = att_dropout_prob
        self.initializer = initializers.as_initializer(initializer)
        by_head = [dilation] * num_heads if isinstance(dilation, int) else list(dilation)
        if len(by_head) != num_heads:
            raise ValueError(
                f"`dilation` must be one number, or one for each of {num_heads} heads. Received: "
                f"{dilation}"
            )
        right = 0 if is_causal else radius
        self.windows = tuple(Window(radius, right, number) for number in by_head)
        self.query, self.key, self.value = map(self._project, ("query", "key", "value"))
        self.query_global = self.key_global = self.value_global = None
        if not is_causal:
            self.query_global = self._project("query_global")
            self.key_global = self._project("key_global")
            self.value_global = self._project("value_global")
        self.output_projection = dense.Dense(
            hidden_size,
            kernel_initializer=initializers.fresh_or_default(self.initializer),
            name="output",
            dtype=self.dtype_policy,
        )

    def _project(self, name):
        return ProjectAttentionHeads(
            self.num_heads,
            self.hidden_size // self.num_heads,
            initializer=self.initializer,
            name=name,
            dtype=self.dtype_policy,
        )

    def build(self, input_shape):
        layers = (self.query, self.key, self.value)
        layers += (self.query_global, self.key_global, self.value_global, self.output_projection)
        sublayers.build_all(self.hidden_size, *layers)
        super().build(input_shape)

    def call(self, inputs, token_mask=None, global_tokens=None, training=None):
        (inputs,) = sublayers.cast_all(self, inputs)
        self._check(global_tokens)
        attended = sliding_window.attend(
            *(project(inputs) for project in (self.query, self.key, self.value)),
            self.windows,
            token_mask=token_mask,
            global_tokens=global_tokens,
            positions=self.positions(),
            dropout_rate=self.att_dropout_prob if training else 0.0,
        )
        if global_tokens is not None:
            attended = self._with_global_rows(attended, inputs, token_mask, global_tokens, training)
        return self.output_projection(tensor_utils.flatten_dims(attended, first_dim=-2))

    def positions(self):
        """The positions that logits in windows also depend on: see `sliding_window.attend`."""
        return  # AutoGraph warns of a body without a statement.

    def _check(self, global_tokens):
        if self.is_causal and global_tokens is not None:
            argument_checks.fail(
                f"Layer {self.name!r} is causal and can have no global tokens: all would see them."
            )

    def _with_global_rows(self, attended, inputs, token_mask, global_tokens, training):
        def with_rows(attend):
            return lambda: global_tokens.put(attended, attend(inputs, token_mask, global_tokens))

        number = global_tokens.number
        projected = with_rows(functools.partial(self._attend_projected, training=training))
        # Dropout needs the probabilities in training, and observers need the keys.
        if training or interception.is_intercepting():
            run = projected
        else:
            length = tensor_utils.get_shape_list(inputs)[1]
            most = sliding_window.most_queries(length, self.num_heads, self.hidden_size)
            run = functools.partial(
                _choose, number <= most, with_rows(self._attend_folded), projected
            )
        # Without global tokens, their projections would be the most expensive part.
        return run() if isinstance(number, int) else tf.cond(number > 0, run, lambda: attended)

    def _attend_projected(self, inputs, token_mask, global_tokens, training):
        queries, key_set = self._global_parts(inputs, token_mask, global_tokens)
        rate = self.att_dropout_prob if training else 0.0
        return blockwise.attend(queries, [key_set], dropout_rate=rate)

    def _attend_folded(self, inputs, token_mask, global_tokens):
        key, value = self.key_global.linear, self.value_global.linear
        weights = (key.kernel, value.kernel, value.bias, key.bias)
        *kernels, value_bias, key_bias = sublayers.cast_all(self, *weights)
        return sliding_window.attend_folded(
            self.query_global(global_tokens.gather(inputs)),
            inputs,
            *kernels,
            value_bias + 0 * key_bias,  # No effect: its gradient is 0, and not None.
            masks=_key_masks(token_mask),
        )

    def _global_parts(self, inputs, token_mask, global_tokens):
        """Queries [batch, slots, num_heads, size_per_head], and the `KeySet` they attend to."""
        keys, values = self.key_global(inputs), self.value_global(inputs)
        key_set = KeySet(keys, values, masks=_key_masks(token_mask))
        return self.query_global(global_tokens.gather(inputs)), key_set

    def attention_probs(self, inputs, token_mask=None, global_tokens=None):
        """Computes the attention probabilities of a call without dropout.

        Args: see the call.
        Returns:
            (local, global): float32 [batch, num_heads, length, slots + window], of the queries of
            local tokens by global token and place in the window (see
            `sliding_window.attention_probs`), 0 for those of masked and of global tokens; and
            [batch, num_heads, length, slots], of global tokens for each key, 0 in unused slots, or
            None without global tokens.
        """
        (inputs,) = sublayers.cast_all(self, inputs)
        self._check(global_tokens)
        local = sliding_window.attention_probs(
            self.query(inputs),
            self.key(inputs),
            self.windows,
            token_mask=token_mask,
            global_tokens=global_tokens,
            positions=self.positions(),
        )
        if global_tokens is None:
            return local, None
        queries, key_set = self._global_parts(inputs, token_mask, global_tokens)
        local = tf.where(global_tokens.mask[:, tf.newaxis, :, tf.newaxis], 0.0, local)
        (probs,) = blockwise.attention_probs(queries, [key_set])
        is_used = global_tokens.is_used[:, tf.newaxis, :, tf.newaxis]
        return local, tf.transpose(tf.where(is_used, probs, 0.0), [0, 1, 3, 2])

    def get_config(self):
        return {**super().get_config(), **base.config_entries(self, __class__)}


def _key_masks(token_mask):
    return () if token_mask is None else (KeyMask(token_mask),)


def _choose(condition, if_true, if_false):
    """Like `tf.cond`, but builds only one branch if the condition is known."""
    if isinstance(condition, bool):
        return if_true() if condition else if_false()
    return tf.cond(condition, if_true, if_false)


# Sliding windows with Transformer-XL's relative positions, for Longformer's language models.


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class RelativeWindowAttention(SlidingWindowAttention):
    """Sliding-window attention whose logits also depend on the distance of query and key.

    Source: Beltagy et al. 2020 (arXiv:2004.05150), appendix B, with the positions of Dai et al.
    2019 (arXiv:1901.02860), section 3.3: see `ops.sinusoids`. Global tokens, which causal
    layers cannot have, are attended to without a distance.

    Args: see `SlidingWindowAttention`, also for the call.
    Raises:
        ValueError: see there; also if `hidden_size`, the size of the sinusoids, is odd.
    """

    def __init__(self, hidden_size, num_heads, radius, **kwargs):
        super().__init__(hidden_size, num_heads, radius, **kwargs)
        if hidden_size % 2:
            raise ValueError(
                f"`hidden_size` must be even: half of it are sines. Received: {hidden_size}"
            )
        self.position_projection = self.content_bias = self.position_bias = None

    def build(self, input_shape):
        by_head = (self.num_heads, self.hidden_size // self.num_heads)
        shapes = {
            "position_projection": (self.hidden_size, *by_head),
            "content_bias": by_head,
            "position_bias": by_head,
        }
        for name, shape in shapes.items():
            weight = self.add_weight(
                name=name,
                shape=shape,
                initializer=initializers.fresh_or_default(self.initializer),
                # Rounded weights would blur far distances, which differ little.
                experimental_autocast=False,
            )
            setattr(self, name, weight)
        super().build(input_shape)

    def positions(self):
        return SinusoidPositions(self.position_projection, self.content_bias, self.position_bias)
