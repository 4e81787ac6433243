"""The base class of stacks of transformer layers, for any kind of attention.

It is a base class, not a sublayer: another level of layers would rename all variables.
"""

import abc
from typing import NamedTuple

import tensorflow as tf
import tf_keras

from etcmodel import tensor_utils
from etcmodel.layers import base, checks, initializers, layer_loop, normalization, sublayers
from etcmodel.layers import steps as steps_lib
from etcmodel.layers.steps import Step
from etcmodel.layers.wrappers import ResidualBlock

__all__ = ["Step", "Stream", "TransformerStack"]


class Stream(NamedTuple):
    """One of the token sequences that a stack processes.

    Attributes:
        name: str. The stream's name in errors.
        hidden_size: int. Size of its input and output.
        intermediate_size: int. Number of feed-forward units.

    >>> from etcmodel.layers import stack
    >>> stack.Stream("long", hidden_size=768, intermediate_size=3072)
    Stream(name='long', hidden_size=768, intermediate_size=3072)
    """

    name: str
    hidden_size: int
    intermediate_size: int


class TransformerStack(base.Layer, abc.ABC):
    """Transformer layers over one or several streams of tokens.

    A subclass is the stack of one kind of model. It

    - overrides `make_attention` and, where the defaults do not fit, `make_cross_attention`,
      `make_feed_forward` and `make_normalization`;
    - creates lists of residual blocks in its constructor (the names and the order of these
      attributes decide the names in checkpoints);
    - returns in `steps` the blocks of a layer, in their order;
    - calls `run` in its `call`.

    ```python
    class BertLayers(TransformerStack):
        def __init__(self, hidden_size, num_hidden_layers, num_attention_heads, **kwargs):
            super().__init__(num_hidden_layers, num_attention_heads, **kwargs)
            self.hidden_size = hidden_size
            self.attention_layers = self.attention_blocks()
            self.feed_forward_layers = self.feed_forward_blocks()

        @property
        def streams(self):
            return (Stream("tokens", self.hidden_size, 4 * self.hidden_size),)

        def make_attention(self, index):
            return RelativeAttention(self.hidden_size, self.num_attention_heads)

        def steps(self, index):
            return (
                Step(self.attention_layers[index], options="attention"),
                Step(self.feed_forward_layers[index]),
            )

        def call(self, inputs, att_mask=None, training=None):
            (output,) = self.run([inputs], training, attention={"att_mask": att_mask})
            return output
    ```

    Args:
        num_hidden_layers: int, at least 1.
        num_attention_heads: int, at least 1.
        hidden_act: function or name. Feed-forward activation.
        hidden_dropout_prob: float. Dropout rate of the output of attention and feed-forward layers.
        attention_probs_dropout_prob: float. Dropout rate of attention probabilities.
        initializer_range: float. Standard deviation of the initial weights.
        use_pre_activation_order: bool. See `ResidualBlock`.
        grad_checkpointing_period: int. 0 keeps all activations for the backward pass; n keeps
            those between every n layers and recomputes the others.
        layer_norm_epsilon: float. What layer normalization adds to the variance.
        **kwargs: of the Keras layer.
    Raises:
        ValueError: if a number is out of range.

    >>> from etcmodel import layers
    >>> from etcmodel.layers import stack
    >>> isinstance(layers.RelativeTransformerLayers(8, 1, 2), stack.TransformerStack)
    True
    """

    def __init__(
        self,
        num_hidden_layers,
        num_attention_heads,
        *,
        hidden_act=tensor_utils.gelu,
        hidden_dropout_prob=0.1,
        attention_probs_dropout_prob=0.1,
        initializer_range=0.02,
        use_pre_activation_order=False,
        grad_checkpointing_period=0,
        layer_norm_epsilon=1e-12,
        **kwargs,
    ):
        super().__init__(**kwargs)
        checks.check_at_least_1(
            num_hidden_layers=num_hidden_layers, num_attention_heads=num_attention_heads
        )
        checks.check_rates(
            hidden_dropout_prob=hidden_dropout_prob,
            attention_probs_dropout_prob=attention_probs_dropout_prob,
        )
        if grad_checkpointing_period < 0:
            raise ValueError(
                "`grad_checkpointing_period` must not be negative. Received: "
                f"{grad_checkpointing_period}"
            )
        self.num_hidden_layers = num_hidden_layers
        self.num_attention_heads = num_attention_heads
        self.hidden_act = tf_keras.activations.get(hidden_act)
        self.hidden_dropout_prob = hidden_dropout_prob
        self.attention_probs_dropout_prob = attention_probs_dropout_prob
        self.initializer_range = initializer_range
        self.initializer = initializers.default_initializer(initializer_range)
        self.use_pre_activation_order = use_pre_activation_order
        self.grad_checkpointing_period = grad_checkpointing_period
        self.layer_norm_epsilon = layer_norm_epsilon

    @property
    @abc.abstractmethod
    def streams(self):
        """tuple of `Stream`: the token sequences that the stack processes."""

    @abc.abstractmethod
    def make_attention(self, index):
        """Creates the attention layer of the stack's layer `index`.

        It is called with one tensor for each stream of its step, and returns as many.
        """

    def make_cross_attention(self, index):
        """Creates the cross-attention layer of a decoder's layer `index`."""
        raise NotImplementedError(f"{type(self).__name__} has no cross-attention.")

    def make_feed_forward(self, index, stream):
        """Creates layer `index`'s feed-forward layer for a `Stream`; None for two dense layers."""
        del index, stream

    def make_normalization(self, name):
        """Creates a normalization layer."""
        return normalization.LayerNormalization(
            axis=-1, epsilon=self.layer_norm_epsilon, name=name, dtype=self.dtype_policy
        )

    @abc.abstractmethod
    def steps(self, index):
        """Returns the `Step`s of layer `index` in order: tuple."""

    def attention_blocks(self, prefix="attention_layer", num_streams=1):
        """Creates each layer's `ResidualBlock` with attention, named by prefix and index: list."""
        return self._blocks(prefix, self.make_attention, num_streams)

    def cross_attention_blocks(self, prefix="cross_attention_layer", num_streams=1):
        """Creates each layer's `ResidualBlock` with cross-attention: list."""
        return self._blocks(prefix, self.make_cross_attention, num_streams)

    def _blocks(self, prefix, make_inner_layer, num_streams):
        return [
            self._block(f"{prefix}_{index}", num_streams, inner_layer=make_inner_layer(index))
            for index in range(self.num_hidden_layers)
        ]

    def feed_forward_blocks(self, prefix="feed_forward_layer", stream=0):
        """Creates each layer's `ResidualBlock` with a feed-forward layer: list.

        Streams whose steps have the same blocks share feed-forward layers; see
        `check_shared_feed_forward`.

        Args:
            prefix: str. Prefix of the blocks' names.
            stream: int. Index of the stream.
        """
        return [
            self._feed_forward_block(f"{prefix}_{index}", index, self.streams[stream])
            for index in range(self.num_hidden_layers)
        ]

    def _feed_forward_block(self, name, index, stream):
        inner_layer = self.make_feed_forward(index, stream)
        if inner_layer is not None:
            return self._block(name, inner_layer=inner_layer)
        return self._block(
            name,
            inner_intermediate_size=stream.intermediate_size,
            inner_activation=self.hidden_act,
            inner_kernel_initializer=initializers.fresh(self.initializer),
        )

    def _block(self, name, num_streams=1, **options):
        names = ["layer_norm"]
        if num_streams > 1:
            names = [f"layer_norm_{number}" for number in range(num_streams)]
        return ResidualBlock(
            normalization_layer=[self.make_normalization(name) for name in names],
            dropout_probability=self.hidden_dropout_prob,
            use_pre_activation_order=self.use_pre_activation_order,
            name=name,
            dtype=self.dtype_policy,
            **options,
        )

    def check_shared_feed_forward(self):
        """Raises ValueError if streams differ in size and so cannot share feed-forward layers."""
        if len({(s.hidden_size, s.intermediate_size) for s in self.streams}) > 1:
            first, *others = (
                f"{s.name} {(s.hidden_size, s.intermediate_size)}" for s in self.streams
            )
            names = " and ".join(s.name for s in self.streams)
            raise ValueError(
                f"`share_feed_forward_params` needs equal {names} sizes. Received: (hidden, "
                f"intermediate) {', '.join([first, *others])}"
            )

    def build(self, input_shape):
        """Builds all variables; their sizes depend on the constructor's arguments alone."""
        hidden = [tf.TensorShape([None, None, stream.hidden_size]) for stream in self.streams]
        for index in range(self.num_hidden_layers):
            for step in self.steps(index):
                shapes = [hidden[number] for number in step.streams]
                sublayers.build_sublayer(step.block, shapes if len(shapes) > 1 else shapes[0])
        super().build(input_shape)

    @tf.autograph.experimental.do_not_convert  # Layers do not need it, and tracing is faster.
    def run(self, hidden, training=None, **options):
        """Runs all streams through all layers.

        Args:
            hidden: sequence of float [batch, len, hidden_size], one per stream.
            training: bool.
            **options: for each name in the `options` of steps, a dict with the arguments of their
                inner layers. Gradients flow to float tensors among them.
        Returns:
            list of tensors, shaped as `hidden`.
        """
        hidden = sublayers.cast_all(self, *hidden)
        groups = self._groups(self.grad_checkpointing_period or 1)
        run_group = self._group_runner(training, options)
        if layer_loop.should_loop(groups, hidden, self.compute_dtype):
            return layer_loop.run_loop(groups, hidden, run_group)
        for group in groups:
            hidden = run_group(group, hidden)
        return hidden

    def run_layer(self, index, hidden, options, training=None, *, may_recompute=True):
        """Runs all streams through layer `index` alone; `options` is the dict that `run` takes.

        Args:
            may_recompute: bool. Whether activations that `run` recomputes for gradients are
                recomputed.
        """
        run_group = self._group_runner(training, options, may_recompute)
        return run_group([self.steps(index)], hidden)

    def _groups(self, size):
        """The steps of all layers, in lists of `size` layers each."""
        layers = [self.steps(index) for index in range(self.num_hidden_layers)]
        return [layers[start : start + size] for start in range(0, len(layers), size)]

    def _group_runner(self, training, options, may_recompute=True):
        recomputes = may_recompute and self.grad_checkpointing_period
        run = steps_lib.run_recomputed if recomputes else steps_lib.run_layers

        def run_group(group, hidden, weights=None):
            return run(group, hidden, options, training, weights)

        return run_group

    def get_config(self):
        return {
            **super().get_config(),
            "num_hidden_layers": self.num_hidden_layers,
            "num_attention_heads": self.num_attention_heads,
            "hidden_act": tf_keras.activations.serialize(self.hidden_act),
            "hidden_dropout_prob": self.hidden_dropout_prob,
            "attention_probs_dropout_prob": self.attention_probs_dropout_prob,
            "initializer_range": self.initializer_range,
            "use_pre_activation_order": self.use_pre_activation_order,
            "grad_checkpointing_period": self.grad_checkpointing_period,
            "layer_norm_epsilon": self.layer_norm_epsilon,
        }
