"""The base class of the public layers: Keras 2 layers (`tf_keras`) that refuse Keras 3.

`tf.keras` is Keras 3 in current TensorFlow. It neither tracks the weights of Keras 2 layers nor
accepts their tensors, so mixing both trains nothing or fails far from the cause.
"""

import contextlib
import functools
import inspect
import sys
import threading

import numpy as np
import tensorflow as tf
import tf_keras

from etcmodel.autograph import without_autograph
from etcmodel.ops import argument_checks, interception


def check_at_least_1(**sizes):
    """Raises ValueError, naming the size, if one is not an int or is below 1."""
    for name, size in sizes.items():
        if isinstance(size, bool) or not isinstance(size, (int, np.integer)):
            raise ValueError(f"`{name}` must be an int. Received: {size!r}")
        if size < 1:
            raise ValueError(f"`{name}` must be at least 1. Received: {size}")


def check_rates(**rates):
    """Raises ValueError, naming the rate, if a dropout rate is not in [0, 1)."""
    for name, rate in rates.items():
        if not 0 <= rate < 1:
            raise ValueError(f"`{name}` must be at least 0 and below 1. Received: {rate!r}")


# The base class, and what it refuses.


_ADVICE = (
    "etcmodel's layers are Keras 2 layers: use `tf_keras` instead of `tf.keras` around and inside "
    "of them, or `etcmodel.keras3.layer(model)` in a Keras 3 project, or set TF_USE_LEGACY_KERAS=1 "
    "before TensorFlow is imported."
)
# Where Keras has the objects that `compile` and `fit` take, and the class of each kind.
_KINDS = {
    "callbacks": "Callback",
    "losses": "Loss",
    "metrics": "Metric",
    "optimizers": "Optimizer",
}
_state = threading.local()


class Layer(tf_keras.layers.Layer):
    """A layer that refuses to be called on tensors of Keras 3, or inside its layers.

    >>> from etcmodel.layers import base
    >>> class Twice(base.Layer):
    ...     def call(self, inputs):
    ...         return 2 * inputs
    >>> Twice()(tf.constant([1.0, 2.0])).numpy()
    array([2., 4.], dtype=float32)
    """

    # AutoGraph then leaves `__call__` unchanged, as it does with Keras's own, and converts `call`.
    autograph_info__ = None

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if cls.__module__.partition(".")[0] == __package__.partition(".")[0]:
            for name in {"call", "__call__"} & vars(cls).keys():  # Needs no conversion here.
                without_autograph(vars(cls)[name])

    def __call__(self, *args, **kwargs):
        check_caller(self, args, kwargs)
        call = functools.partial(tf_keras.layers.Layer.__call__, self)
        return interception.called(self, call, args, kwargs)

    def build_from_config(self, config):
        with tf.name_scope(self.name):  # Variables keep their full names in a loaded model.
            super().build_from_config(config)


class Configured:
    """A mixin of layers that are made from a `config`, which Keras's config of them contains."""

    def get_config(self):
        return {**tf_keras.layers.Layer.get_config(self), "config": self.config.to_dict()}


class OptionalInput:
    """A mixin: a layer's first argument, which Keras requires, may be omitted, or a dict of all."""

    def __call__(self, first=None, *args, **kwargs):
        if hasattr(first, "items"):
            return self(**{**first, **kwargs})
        name = self._call_spec.arg_names[0]
        return super().__call__(kwargs.pop(name, first), *args, **kwargs)


class TokenLayer(OptionalInput, Configured, Layer):
    """The base of models whose first argument, which may be omitted, is token ids.

    Args:
        config: a `config_class`, an attribute of the class, or its dict.
        name: name of the layer.
        **kwargs: of the Keras layer.

    >>> from etcmodel.layers import base
    >>> issubclass(etcmodel.LedModel, base.TokenLayer)
    True
    """

    config_class = None

    def __init__(self, config, name=None, **kwargs):
        super().__init__(name=name, **kwargs)
        self._autocast = False  # A cast to half precision would change large ids.
        self.config = self.config_class.of(config)


def config_entries(layer, layer_class, but=()):
    """The arguments of a class's constructor, as Keras's config of a layer has them: dict.

    Args:
        layer: `Layer`, which has the arguments as attributes of the same names.
        layer_class: the class whose constructor names them; besides `name` and `**kwargs`.
        but: collection of str. Arguments that the config has in another form.
    """
    _, *given = inspect.signature(layer_class.__init__).parameters.values()
    names = [x.name for x in given if x.kind is not x.VAR_KEYWORD]
    return {x: _entry(x, getattr(layer, x)) for x in names if x not in ("name", *but)}


def _entry(name, value):
    if name.endswith("initializer") and value is not None:
        return tf_keras.initializers.serialize(value)
    return tf_keras.activations.serialize(value) if callable(value) else value


def check_part(name, part):
    """Raises ValueError if `part`, the argument `name` of a layer, is not a Keras 2 layer."""
    refuse_keras_3(name, part)
    if not isinstance(part, tf_keras.layers.Layer):
        raise ValueError(f"`{name}` must be a tf_keras layer. Received: {part!r}")


def refuse_keras_3(name, part):
    """Raises ValueError if the argument `name` contains an object of Keras 3.

    Args:
        name: str.
        part: a layer, optimizer, loss, metric or callback, or a nest of these; anything else
            passes.
    """
    if (keras := keras_3()) is None:
        return
    for x in tf.nest.flatten(part):
        # Only in Keras 2 is a metric a layer.
        if isinstance(x, keras.layers.Layer):
            argument_checks.fail(f"`{name}` is the Keras 3 layer {_describe(x)}. {_ADVICE}")
        for kind, base in _KINDS.items():
            if isinstance(x, getattr(getattr(keras, kind), base)):
                own = type(x).__name__
                known = own if hasattr(getattr(tf_keras, kind), own) else base
                argument_checks.fail(
                    f"`{name}`: this is Keras 3's {own}. Use `tf_keras.{kind}.{known}`, or "
                    "`etcmodel.keras3.layer(model)` in a Keras 3 project."
                )


@contextlib.contextmanager
def in_keras_3_layer():
    """Context manager: allows layers inside a Keras 3 layer, which has adopted their weights."""
    before, _state.is_adopted = getattr(_state, "is_adopted", False), True
    try:
        yield
    finally:
        _state.is_adopted = before


@tf.autograph.experimental.do_not_convert
def check_caller(layer, args, kwargs):
    """Raises ValueError if a layer is called on tensors of Keras 3, or inside its layers.

    Args:
        layer: Keras 2 layer.
        args, kwargs: the arguments of the call.
    """
    keras = keras_3()
    if keras is None or getattr(_state, "is_adopted", False):
        return
    if any(isinstance(x, keras.KerasTensor) for x in tf.nest.flatten((args, kwargs))):
        argument_checks.fail(f"Layer {_describe(layer)} got an input of Keras 3. {_ADVICE}")
    # Keras 3 itself uses this to find out whether it is inside a call.
    global_state = sys.modules.get("keras.src.backend.common.global_state")
    context = global_state and global_state.get_global_attribute("current_call_ctx")
    if context:
        outer = _describe(context.entry_layer)
        argument_checks.fail(
            f"Layer {_describe(layer)} is inside the Keras 3 layer {outer}. {_ADVICE}"
        )


def keras_3():
    """Returns the package `keras` if it is Keras 3 and has been imported, else None."""
    keras = sys.modules.get("keras")
    if keras is None or int(getattr(keras, "__version__", "0").split(".")[0]) < 3:
        return None
    return keras


def _describe(layer):
    return f"{layer.name!r} ({type(layer).__name__})"
