"""Runs layers that differ only in their weights as one loop.

XLA compiles equal layers of a graph one by one, so that compile time grows with their number; a
loop's body is compiled only once. For that, the weights of all layers are stacked, as in JAX's
`scan` over layers (`flax.linen.scan`).
"""

import contextlib
import threading

import tensorflow as tf

from etcmodel.layers.steps import weights_of_layers
from etcmodel.ops import dropout as dropout_ops
from etcmodel.ops import interception
from etcmodel.ops.gradients import custom_gradient

__all__ = ["loop_scope", "run_loop", "should_loop"]

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
    regularizers, being observed (`ops.interception`), or computing in another dtype.

    In mode 'auto' the shapes must be known, too: XLA needs constant sizes, and those that a loop's
    gradient takes from its tensors are not constant.

    Args:
        groups: list of lists of tuples of `steps.Step`.
        hidden: see `run_loop`.
        compute_dtype: str. The stack's compute dtype.
    """
    is_compiled = tf.__internal__.get_enclosing_xla_context() is not None
    is_known = all(x.shape.is_fully_defined() for x in hidden)
    is_wanted = is_compiled and is_known if _mode() == "auto" else _mode() == "always"
    if not is_wanted or tf.executing_eagerly() or interception.is_intercepting():
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
            (see `steps.weights_of_layers`) that returns hidden tensors of the same shapes.
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
