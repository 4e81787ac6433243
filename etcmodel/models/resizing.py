"""Gives a built model a token table of another size.

What depends on the size of the vocabulary, tables, output tables that are not tied to them, biases
of logits, is found by comparing the model with a twin of another `vocab_size`, whatever the system.
The twin's variables have no values, and so take no memory.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras
from tensorflow.python.framework import func_graph
from tensorflow.python.ops import resource_variable_ops

from etcmodel.layers import sublayers
from etcmodel.models import json_config

_SPREAD = 1e-9  # Of new rows, as a share of the old ones' covariance.
_TRACED = ("train_function", "test_function", "predict_function")


def resize(model: Any, vocab_size: int, seed: int = 0) -> None:
    """Changes the size of a model's vocabulary in place: see `Pretrained.resize_token_embeddings`.

    Args:
        model: Keras layer or model with a `config`; built first if it is not yet.
        vocab_size: int.
        seed: int.
    Raises:
        ValueError: see there. The model is then unchanged.
    """
    old_size, what = model.config.vocab_size, "The model cannot get another vocabulary:"
    config = dataclasses.replace(model.config, vocab_size=vocab_size)
    config.check()
    sublayers.build_sublayer(model, None)
    if config.vocab_size == old_size:
        return
    _check_optimizer(model)
    # In a graph, as some layers call a part of theirs to build it.
    with tf.variable_creator_scope(_without_value), func_graph.FuncGraph("twin").as_default():
        twin = type(model).from_config(_resized(model.get_config(), config.vocab_size))
        sublayers.build_sublayer(twin, None)
    layers, twins = _layers(model), _layers(twin)
    if [type(x) for x in layers] != [type(x) for x in twins]:
        raise ValueError(f"{what} it has layers besides those of its class. Resize it before.")
    draws, replaced = np.random.default_rng(seed), {}
    for layer, other in zip(layers, twins, strict=True):
        for old, new in zip(_own(layer), _own(other), strict=True):
            if old.shape != new.shape and id(old) not in replaced:
                replaced[id(old)] = old, _grown(layer, old, new.shape, draws)
    new_of = {key: new for key, (_, new) in replaced.items()}
    for layer, other in zip(layers, twins, strict=True):
        _replace(layer, other, new_of, old_size)
    for name in _TRACED:
        if hasattr(model, name):
            setattr(model, name, None)


def _without_value(next_creator: Any, **settings: Any) -> Any:
    names = ("name", "shape", "dtype", "trainable")
    if settings.get("shape") is None:
        return next_creator(**settings)
    return resource_variable_ops.UninitializedVariable(**{x: settings[x] for x in names})


def _resized(entries: Any, size: int) -> Any:
    """A nest of configs with another `vocab_size`."""
    if isinstance(entries, Mapping):
        return {x: size if x == "vocab_size" else _resized(y, size) for x, y in entries.items()}
    return entries


def _check_optimizer(model: Any) -> None:
    optimizer = getattr(model, "optimizer", None)
    optimizer = getattr(optimizer, "inner_optimizer", optimizer)
    if getattr(optimizer, "_built", False) or len(getattr(optimizer, "_weights", ())) > 1:
        raise ValueError(
            f"The model's optimizer, {optimizer.name!r}, has averages of the table as it is: "
            "`compile` the model anew, with a new optimizer, and resize it before it is trained."
        )


def _layers(model: Any) -> list[Any]:
    return [x for x in model._flatten_layers() if not isinstance(x, tf_keras.metrics.Metric)]


def _own(layer: Any) -> list[Any]:
    """A layer's own variables, in an order that does not depend on which are frozen."""
    return [*layer._trainable_weights, *layer._non_trainable_weights]


def _grown(layer: Any, old: Any, shape: tf.TensorShape, draws: np.random.Generator) -> Any:
    """A new variable of the layer, of this shape, with the rows of `old`, and drawn ones."""
    (axis,) = (i for i, (x, y) in enumerate(zip(old.shape, shape, strict=True)) if x != y)
    rows = np.moveaxis(old.numpy(), axis, 0)
    more = shape[axis] - len(rows)
    if more > 0:
        drawn = _drawn(rows.astype(np.float64), more, draws) if old.trainable else 0.0
        drawn = np.broadcast_to(drawn, [more, *rows.shape[1:]]).astype(rows.dtype)
        rows = np.concatenate([rows, drawn])
    values = np.moveaxis(rows[: shape[axis]], 0, axis)
    *scope, name = old.name.removesuffix(":0").split("/")
    strategy = getattr(old, "distribute_strategy", tf.distribute.get_strategy())
    with strategy.scope(), tf.name_scope("".join(f"{x}/" for x in scope)):
        return layer.add_weight(
            name=name,
            shape=values.shape,
            dtype=old.dtype,
            initializer=lambda shape, dtype=None, **kwargs: tf.constant(values, dtype),
            trainable=old.trainable,
        )


def _drawn(rows: np.ndarray, count: int, draws: np.random.Generator) -> np.ndarray:
    """New rows around the mean of `rows`, [count, ...]."""
    mean, noise = rows.mean(0), draws.standard_normal
    if rows.ndim == 1:
        return mean + _SPREAD * rows.std() * noise(count)
    values, vectors = np.linalg.eigh(np.cov(rows.T, bias=True))
    scales = np.sqrt(_SPREAD * np.maximum(values, 0))
    return mean + (noise([count, len(scales)]) * scales) @ vectors.T


def _replace(layer: Any, other: Any, new_of: dict[int, Any], old_size: int) -> None:
    """Gives a layer the new variables and configs for the old ones, and the sizes of its twin.

    Keras's own `__setattr__` would put a new variable behind all others.
    """
    for names in ("_trainable_weights", "_non_trainable_weights"):
        added = set(map(id, new_of.values()))  # At the end.
        kept = [new_of.get(id(x), x) for x in getattr(layer, names) if id(x) not in added]
        object.__setattr__(layer, names, kept)
    for name, part in list(layer._trackable_children().items()):
        if id(part) in new_of:
            layer._track_trackable(new_of[id(part)], name, overwrite=True)
    for name, value in list(vars(layer).items()):
        theirs = vars(other).get(name)
        is_config = isinstance(value, json_config.JsonConfig) and hasattr(value, "vocab_size")
        if is_config and id(value) not in new_of:  # Parts may share a config.
            new_of[id(value)] = dataclasses.replace(value, vocab_size=theirs.vocab_size)
        if id(value) in new_of:
            object.__setattr__(layer, name, new_of[id(value)])
        elif type(value) is int and value == old_size and type(theirs) is int:
            object.__setattr__(layer, name, theirs)
