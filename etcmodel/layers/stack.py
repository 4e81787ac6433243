"""The base class of stacks of transformer layers, for any kind of attention.

It is a base class, not a sublayer: another level of layers would rename all variables.
"""

import abc
import contextlib
import threading
from typing import NamedTuple

import tensorflow as tf
import tf_keras

from etcmodel import tensor_utils
from etcmodel.layers import base, dense, initializers, normalization, recompute_grad, sublayers
from etcmodel.layers.wrappers import ResidualBlock
from etcmodel.ops import dropout as dropout_ops
from etcmodel.ops import interception
from etcmodel.ops.gradients import custom_gradient

# Runs the residual blocks of a stack's layers one after the other.


class Weights(NamedTuple):
    """The variables that modules hold as attributes.

    Attributes:
        variables: list of `tf.Variable`, each once.
        places: list of (module, name of the attribute, number of the variable).
    """

    variables: list
    places: list


def weights_of(modules):
    """Returns the `Weights` of modules (layers) and their submodules, each in the same order."""
    modules = _unique(part for module in modules for part in (module, *module.submodules))
    held = [
        (module, name, value)
        for module in modules
        for name, value in vars(module).items()
        if isinstance(value, tf.Variable)
    ]
    variables = _unique(value for *_, value in held)
    numbers = {id(variable): number for number, variable in enumerate(variables)}
    return Weights(variables, [(module, name, numbers[id(x)]) for module, name, x in held])


@contextlib.contextmanager
def substituted(weights, tensors):
    """Context manager in which modules have tensors in place of their variables.

    The modules themselves change, for every thread: no other code may call them meanwhile.

    Args:
        weights: `Weights`.
        tensors: sequence of tensors, one per variable.
    """
    # Bypasses `__setattr__`, by which Keras tracks what a layer consists of.
    try:
        for module, name, number in weights.places:
            vars(module)[name] = tensors[number]
        yield
    finally:
        for module, name, number in weights.places:
            vars(module)[name] = weights.variables[number]


def _unique(values):
    """The values in order, each object once."""
    return list({id(value): value for value in values}.values())


class Step(NamedTuple):
    """One residual block of a layer.

    Attributes:
        block: `ResidualBlock`.
        streams: tuple of int. Indices of the streams that are its inputs and outputs.
        options: str or None. The key in `run`'s `options` of its inner layer's arguments.

    >>> from etcmodel import layers
    >>> from etcmodel.layers import stack
    >>> stack.Step(layers.ResidualBlock(), streams=(0, 1)).streams
    (0, 1)
    """

    block: ResidualBlock
    streams: tuple = (0,)
    options: str | None = None


def weights_of_layers(layers):
    """`Weights` of layers, which are tuples of `Step`."""
    return weights_of([step.block for steps in layers for step in steps])


def run_layers(layers, hidden, options, training, weights=None):
    """Runs the steps of layers in order.

    Args:
        layers: list of tuples of `Step`.
        hidden: sequence of float [batch, len, hidden_size], one per stream.
        options: dict of a name to the arguments of the inner layers of the steps with this name.
        training: bool.
        weights: list of tensors in place of the variables of `weights_of_layers`, or None.
    Returns:
        list of tensors, shaped as `hidden`.
    """
    if weights is not None:
        with substituted(weights_of_layers(layers), weights):
            return run_layers(layers, hidden, options, training)
    hidden = list(hidden)
    for steps in layers:
        for block, streams, name in steps:
            arguments = options[name] if name else {}
            if len(streams) == 1:
                (stream,) = streams
                hidden[stream] = block(hidden[stream], training=training, **arguments)
                continue
            outputs = block([hidden[stream] for stream in streams], training=training, **arguments)
            for stream, output in zip(streams, outputs, strict=True):
                hidden[stream] = output
    return hidden


def run_recomputed(layers, hidden, options, training, weights=None):
    """Like `run_layers`, but the backward pass recomputes the activations in between.

    Gradients flow only to the arguments of a recomputed function, so float tensors among the
    options and the weights are passed as arguments.
    """
    flat, num_streams = tf.nest.flatten((options, weights)), len(hidden)
    places = [place for place, value in enumerate(flat) if _is_float_tensor(value)]

    @tf.autograph.experimental.do_not_convert
    def run(*tensors):
        filled = list(flat)
        for place, tensor in zip(places, tensors[num_streams:], strict=True):
            filled[place] = tensor
        given, weights_given = tf.nest.pack_sequence_as((options, weights), filled)
        return run_layers(layers, tensors[:num_streams], given, training, weights_given)

    return recompute_grad.recompute_grad(run)(*hidden, *(flat[place] for place in places))


def _is_float_tensor(value):
    is_tensor = tf.is_tensor(value) and not isinstance(value, tf.Variable)
    return is_tensor and value.dtype.is_floating


# Runs layers that differ only in their weights as one loop.
#
# XLA compiles equal layers of a graph one by one, so that compile time grows with their number; a
# loop's body is compiled only once. For that, the weights of all layers are stacked, as in JAX's
# `scan` over layers (`flax.linen.scan`).


_MODES = ("auto", "always", "never")
_state = threading.local()


@contextlib.contextmanager
def loop_scope(mode):
    """Context manager that chooses where stacks of layers become loops.

    Args:
        mode: 'auto' (where XLA compiles a whole function; the default outside of any scope),
            'always' (in all graphs) or 'never'.
    Raises:
        ValueError: if the mode is unknown.
    """
    if mode not in _MODES:
        raise ValueError(f"`mode` must be one of {_MODES}. Received: {mode!r}")
    previous = _mode()
    _state.mode = mode
    try:
        yield
    finally:
        _state.mode = previous


def _mode():
    return getattr(_state, "mode", "auto")


def should_loop(groups, hidden, compute_dtype):
    """Returns whether groups of layers should be run as one loop, and can be.

    They can be if their configs differ only in names, weights and initializers, and if they do
    nothing that a loop would hide: keeping values from call to call (batch normalization), activity
    regularizers, being observed (`ops.interception`), or computing in another dtype or in 8 bits.

    In mode 'auto' the shapes must be known, too: XLA needs constant sizes, and those that a loop's
    gradient takes from its tensors are not constant.

    Args:
        groups: list of lists of tuples of `Step`.
        hidden: see `run_loop`.
        compute_dtype: str. The stack's compute dtype.
    """
    is_compiled = tf.__internal__.get_enclosing_xla_context() is not None
    is_known = all(x.shape.is_fully_defined() for x in hidden)
    is_wanted = is_compiled and is_known if _mode() == "auto" else _mode() == "always"
    if not is_wanted or tf.executing_eagerly() or interception.is_intercepting():
        return False
    if dense.int8_kernels() is not None:
        return False
    if len(groups) < 2:
        return False
    form = _form(groups[0], compute_dtype)
    return form is not None and all(_form(x, compute_dtype) == form for x in groups[1:])


def run_loop(groups, hidden, run_group):
    """Runs groups of layers one after the other, as a loop.

    Dropout masks are the same as without the loop. So are gradients, with two exceptions: all of a
    layer's weights get one as soon as one layer's output matters, zeros instead of None where
    nothing depends on them; and in mixed precision, gradients of a weight that a layer uses twice
    are added up in the compute dtype.

    Args:
        groups: see `should_loop`.
        hidden: sequence of float [batch, len, hidden_size], one per stream.
        run_group: function of a group, hidden tensors and tensors to use as the group's weights
            (see `weights_of_layers`) that returns hidden tensors of the same shapes.
    Returns:
        list of tensors, shaped as `hidden`.
    """
    variables = [weights_of_layers(group).variables for group in groups]
    stacked = [tf.stack(of_all) for of_all in zip(*variables, strict=True)]
    num_seeds = dropout_ops.num_seeds()

    def body(number, num_seeds, hidden, stacked):
        taken = [_take(x, number) for x in stacked]
        dropout_ops.set_num_seeds(num_seeds)
        outputs = run_group(groups[0], hidden, [weight for weight, _ in taken])
        outputs = [tf.ensure_shape(x, like.shape) for x, like in zip(outputs, hidden, strict=True)]
        return number + 1, dropout_ops.num_seeds(), outputs, [rest for _, rest in taken]

    try:
        _, num_seeds, hidden, _ = tf.while_loop(
            lambda number, *_: number < len(groups),
            body,
            [tf.constant(0), tf.convert_to_tensor(num_seeds), list(hidden), stacked],
            maximum_iterations=len(groups),  # XLA must know how much to keep for gradients.
            parallel_iterations=1,
        )
    finally:
        dropout_ops.set_num_seeds(num_seeds)
    return hidden


@custom_gradient
def _take(stacked, number):
    """Returns `stacked[number]`, and `stacked` for the next layers to take from.

    As each entry is taken once, gradients are written to their places in one shared buffer; that of
    a tensor from outside the loop would be a sum of mostly zeros each time.
    """

    def grad(gradient, gradient_of_others):
        updates = tf.convert_to_tensor(gradient)[tf.newaxis]
        return tf.tensor_scatter_nd_update(gradient_of_others, [[number]], updates), None

    return (stacked[number], tf.identity(stacked)), grad


def _form(group, compute_dtype):
    """All that determines what a group computes, except its weights; None if that is unknown."""
    blocks = [step.block for steps in group for step in steps]
    weights = weights_of_layers(group)
    layers = [layer for block in blocks for layer in (block, *block.submodules)]
    is_plain = all(_is_plain(layer, compute_dtype) for layer in layers)
    found = {id(variable) for variable in weights.variables if variable.trainable}
    if not is_plain or any(id(x) not in found for block in blocks for x in block.variables):
        return None
    try:
        configs = [repr(_computing(x.get_config())) for x in layers if hasattr(x, "get_config")]
    except NotImplementedError:
        return None
    steps = [(step.streams, step.options) for steps in group for step in steps]
    ids = [id(block) for block in blocks]
    sharing = [ids.index(x) for x in ids]
    places = [(type(module), name, number) for module, name, number in weights.places]
    variables = [(x.shape.as_list(), x.dtype) for x in weights.variables]
    return steps, sharing, configs, places, variables


def _is_plain(layer, compute_dtype):
    is_regular = getattr(layer, "activity_regularizer", None) is None
    return is_regular and getattr(layer, "compute_dtype", compute_dtype) == compute_dtype


def _computing(config):
    """The part of a config that determines what is computed, once there are weights."""
    if isinstance(config, dict):
        kept = {key for key in config if key != "name" and not key.endswith("initializer")}
        return {key: _computing(x) for key, x in config.items() if key in kept}
    if isinstance(config, (list, tuple)):
        return [_computing(x) for x in config]
    return config


# The stack.


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
    - creates lists of residual blocks in its constructor, by `make_blocks` or others (the names
      and the order of these attributes decide the names in checkpoints);
    - for other blocks or several streams, returns in `steps` the blocks of a layer, in their order,
      and calls `run` in its `call`.

    ```python
    class BertLayers(TransformerStack):
        def __init__(self, hidden_size, num_hidden_layers, num_attention_heads, **kwargs):
            super().__init__(num_hidden_layers, num_attention_heads, **kwargs)
            self.hidden_size = hidden_size
            self.make_blocks()

        @property
        def streams(self):
            return (Stream("tokens", self.hidden_size, 4 * self.hidden_size),)

        def make_attention(self, index):
            return RelativeAttention(self.hidden_size, self.num_attention_heads)
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
        base.check_at_least_1(
            num_hidden_layers=num_hidden_layers, num_attention_heads=num_attention_heads
        )
        base.check_rates(
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

    def make_normalization(self, name):
        """Creates a normalization layer."""
        return normalization.LayerNormalization(
            axis=-1, epsilon=self.layer_norm_epsilon, name=name, dtype=self.dtype_policy
        )

    def make_blocks(self):
        """Creates the residual blocks of all layers, with attention and feed-forward layers."""
        self.attention_layers = self.attention_blocks(num_streams=len(self.streams))
        self.feed_forward_layers = self.feed_forward_blocks()

    def steps(self, index):
        """Returns the `Step`s of layer `index` in order: tuple; by default of `make_blocks`."""
        return (
            Step(self.attention_layers[index], options="attention"),
            Step(self.feed_forward_layers[index]),
        )

    def call(self, inputs, training=None, **attention):
        """Runs the layers over one stream, with the arguments of its attention layers."""
        (output,) = self.run([inputs], training, attention=attention)
        return output

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
        if should_loop(groups, hidden, self.compute_dtype):
            return run_loop(groups, hidden, run_group)
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
        run = run_recomputed if recomputes else run_layers

        def run_group(group, hidden, weights=None):
            return run(group, hidden, options, training, weights)

        return run_group

    def get_config(self):
        return {**super().get_config(), **base.config_entries(self, __class__)}
