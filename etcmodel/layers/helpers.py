"""Small layers, under the module name of the authors' release."""

import inspect

from etcmodel.layers import base
from etcmodel.layers.dense import DenseLayers

__all__ = ["DenseLayers", "TrackedLambda"]


class TrackedLambda(base.Layer):
    """Wraps a function as a layer that tracks the layers and variables it uses.

    Args:
        function: function of the call's arguments. It receives `training`, as set by Keras, if it
            has such a parameter.
        dependencies: sequence of layers, `tf.Module`s or variables. Their variables become the
            layer's.
        name: name of the layer.
    Returns:
        What the function returns.
    Raises:
        ValueError: if a dependency is a Keras 3 layer.

    >>> from etcmodel import layers
    >>> scale = tf.Variable(2.0)
    >>> layer = layers.TrackedLambda(lambda x: x * scale, dependencies=[scale])
    >>> layer(tf.constant([1.0, 3.0])).numpy(), len(layer.trainable_weights)
    (array([2., 6.], dtype=float32), 1)
    """

    def __init__(self, function, dependencies=(), name="tracked_lambda", **kwargs):
        super().__init__(name=name, **kwargs)
        for i, dependency in enumerate(dependencies):
            base.refuse_keras_3(f"dependencies[{i}]", dependency)
        self.function = function
        self.dependencies = list(dependencies)
        parameters = inspect.signature(function).parameters
        takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
        self._takes_training = takes_any or "training" in parameters

    def call(self, *args, **kwargs):
        if not self._takes_training:
            kwargs.pop("training", None)
        return self.function(*args, **kwargs)

    def get_config(self):
        raise NotImplementedError(
            f"Layer {self.name!r} holds a Python function, which a config cannot. Save its weights "
            "(`save_weights`), or make the function a layer of your own."
        )
