"""Folders of models with an encoder and a decoder: Hugging Face's, read and written."""

import json
import os

import numpy as np
import tensorflow as tf
from absl import logging

from etcmodel import atomic_files, bounded_json
from etcmodel.checkpoints import sources, writing
from etcmodel.checkpoints.report import LoadReport
from etcmodel.models import encoders, longt5, pegasus_x

__all__ = ["is_model", "is_of", "load", "load_weights", "save"]

# By `model_type` the class of the config, and those of models: the first one if none is named.
_CLASSES = {
    "longt5": (longt5.LongT5Config, (longt5.LongT5Model,)),
    "pegasus_x": (
        pegasus_x.PegasusXConfig,
        (pegasus_x.PegasusXForConditionalGeneration, pegasus_x.PegasusXModel),
    ),
}
_WEIGHTS_FILE = writing.FILE_NAMES[sources.SAFETENSORS]
_MAX_NAMED = 5


def is_model(model):
    """Whether a model is of a class that this module writes."""
    return isinstance(model, sum((classes for _, classes in _CLASSES.values()), ()))


def is_of(directory):
    """Whether the `config.json` of a folder is of a type that this module reads."""
    path = os.path.join(directory, encoders.CONFIG_FILE)
    return tf.io.gfile.exists(path) and bounded_json.read_object(path).get("model_type") in _CLASSES


def load(directory, path, as_class=None, overrides=None):
    """A model from a folder for which `is_of` holds.

    Args:
        directory: str.
        path: str. The folder, or the file of its weights.
        as_class: class that the model must be of, or None.
        overrides: dict of entries of the config that are to be others, or None.
    Returns:
        The model, built and loaded. The report of loading goes to the log.
    Raises:
        ValueError: in a line that names the file or entry, if something is missing, unknown, or
            does not fit.
    """
    config_file = os.path.join(directory, encoders.CONFIG_FILE)
    entries = bounded_json.read_object(config_file)
    config_class, classes = _CLASSES[entries["model_type"]]
    model_class = _class_of(entries, classes)
    if as_class not in (None, *classes):
        raise ValueError(
            f"{directory!r} holds a model of class {model_class.__name__}. Wanted: "
            f"{as_class.__name__}"
        )
    model_class = as_class or model_class
    config = config_class.from_json_file(config_file)
    source = sources.open_source(path)
    config = model_class.config_for(config, source)
    model = model_class(encoders.replace(config, **(overrides or {})))
    with tf.name_scope(model.name):
        model.build(None)
    logging.info("%s", load_weights(model, source))
    return model


def _class_of(entries, classes):
    """That of the model's classes which the entries of a `config.json` name."""
    named = entries.get("architectures") or ()
    return next((x for x in classes if x.architecture in named), classes[0])


def load_weights(model, source):
    """Sets all weights of a model.

    Args:
        model: built model for which `is_model` holds.
        source: `sources.Source`.
    Returns:
        `LoadReport`.
    Raises:
        ValueError: if weights are missing, or of another shape; all such are named. The model is
            then unchanged.
    """
    weights, naming = model.weights_by_name(), model.naming
    places = {name: _place(name, source, naming) for name in weights}
    if missing := [name for name, place in places.items() if place is None]:
        raise ValueError(
            f"{source.path!r} lacks weights of {model.name!r}: {_some(missing)}. It has, for "
            f"example, {_some(sorted(source.shapes)[:2])}."
        )
    wrong = [
        f"{places[name]}: {list(source.shapes[places[name]])} in the file, {_shape(weight)} by the "
        "config"
        for name, weight in weights.items()
        if list(source.shapes[places[name]]) != _shape(weight)
    ]
    if wrong:
        raise ValueError(f"{source.path!r} does not fit the config:\n  " + "\n  ".join(wrong))
    for name, weight in weights.items():
        value = np.asarray(source.read(places[name]))
        value = value.T if weight.is_transposed else value
        weight.variable.assign(value.astype(weight.variable.dtype.as_numpy_dtype))
    unused = [name for name in source.shapes if name not in places.values()]
    known = [name for name in unused if _is_ignored(name, naming)]
    return LoadReport(
        checkpoint=source.path,
        loaded=tuple(weights),
        not_in_checkpoint=(),
        unused=tuple(name for name in unused if name not in known),
        training_state=source.training_state,
        origins={name: place for name, place in places.items() if name != place},
        notes=tuple(f"{name} is obsolete or a copy: left out" for name in known),
    )


def _place(name, source, naming):
    """The name in a file, or None."""
    known = [name, *naming.aliases.get(name, ())]
    bare = [x.removeprefix(naming.prefix) for x in known]
    names = [*known, *bare, *(naming.prefix + x for x in bare)]
    return next((x for x in names if x in source.shapes), None)


def _is_ignored(name, naming):
    return bool(naming.ignored.fullmatch(name) or naming.ignored.fullmatch(naming.prefix + name))


def _shape(weight):
    shape = weight.variable.shape.as_list()
    return shape[::-1] if weight.is_transposed else shape


def _some(names):
    more = len(names) - _MAX_NAMED
    return ", ".join(names[:_MAX_NAMED]) + (f" and {more} more" if more > 0 else "")


def save(model, directory, processor=None):
    """Writes a model to a folder that `load` and Hugging Face's library read.

    Args:
        model: built model for which `is_model` holds.
        directory: str. Made if missing; an older model of the same type is replaced.
        processor: object with a method `save_pretrained(directory)`, or None.
    Raises:
        ValueError: if the folder holds another model.
    """
    config_path = os.path.join(directory, encoders.CONFIG_FILE)
    if tf.io.gfile.exists(config_path):
        kind = bounded_json.read_object(config_path).get("model_type")
        if kind != model.config.model_type:
            raise ValueError(
                f"{directory!r} holds another model, of type {kind!r}. Choose another directory."
            )
    values = {
        name: weight.variable.numpy().T if weight.is_transposed else weight.variable.numpy()
        for name, weight in model.weights_by_name().items()
    }
    with atomic_files.scratch_folder(os.path.join(directory, _WEIGHTS_FILE)) as folder:
        if processor is not None:
            processor.save_pretrained(folder)
        entries = {**model.config.to_dict(), "architectures": [model.architecture]}
        text = json.dumps(entries, indent=2, sort_keys=True) + "\n"
        atomic_files.write_text(os.path.join(folder, encoders.CONFIG_FILE), [text])
        weights_path = os.path.join(folder, _WEIGHTS_FILE)
        writing.write_safetensors(values, weights_path, made_by="pt")
        names = sorted(tf.io.gfile.listdir(folder), key=lambda name: name == _WEIGHTS_FILE)
        moves = [(os.path.join(folder, name), os.path.join(directory, name)) for name in names]
        olds = [os.path.join(directory, name) for name in reversed(names)]
        atomic_files.replace_files(moves, list(filter(tf.io.gfile.exists, olds)), folder)
