"""Folders of models with an encoder and a decoder: Hugging Face's, read and written."""

import dataclasses
import json
import os

import numpy as np
import tensorflow as tf
from absl import logging

from etcmodel import atomic_files, bounded_json
from etcmodel.checkpoints import names as names_lib
from etcmodel.checkpoints import processors, sources, writing
from etcmodel.checkpoints.report import LoadReport
from etcmodel.generation import GenerationSettings
from etcmodel.models import encoders, gmat, led, longt5, pegasus_x
from etcmodel.models.seq2seq import generating, generation_config
from etcmodel.models.seq2seq.names import Weight

__all__ = ["is_model", "is_of", "load", "load_weights", "save"]

# By `model_type` the class of the config, and those of models; the first is that of a folder which
# names none of them.
_CLASSES = {
    "gmat_seq2seq": (gmat.GmatSeq2SeqConfig, (gmat.GmatForConditionalGeneration,)),
    "led": (
        led.LedConfig,
        (led.LedForConditionalGeneration, led.LedForQuestionAnswering, led.LedModel),
    ),
    "longt5": (longt5.LongT5Config, (longt5.LongT5Model, longt5.LongT5EncoderModel)),
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
        as_class: class of the model; None for that which the folder names. If that is another one,
            the head begins fresh.
        overrides: dict of entries of the config that are to be others, or None.
    Returns:
        The model, built and loaded. The report of loading goes to the log.
    Raises:
        ValueError: in a line that names the file or entry, if something is missing, unknown, or
            does not fit.
    """
    config_file = os.path.join(directory, encoders.CONFIG_FILE)
    config_class, named_class = _classes_of(bounded_json.read_object(config_file))
    model_class = as_class or named_class
    if model_class not in _CLASSES[config_class.model_type][1]:
        raise ValueError(
            f"{directory!r} holds a model of class {named_class.__name__}. Wanted: "
            f"{as_class.__name__}"
        )
    config = config_class.from_json_file(config_file)
    source = sources.open_source(path)
    config = model_class.config_for(config, source)
    model = model_class(encoders.replace(config, **(overrides or {})))
    with tf.name_scope(model.name):
        model.build(None)
    logging.info("%s", load_weights(model, source, is_head_new=model_class is not named_class))
    if isinstance(model, generating.Generating):
        model.generation_config = _generation_config(directory, config, overrides or {})
    if processors.is_of_bytes(config):
        model.processor = processors.read_processor(directory, config)
    return model


def _generation_config(directory, config, overrides):
    """The folder's; what is overridden in the model's config, such as tokens, is so there, too."""
    found = generation_config.read(directory, config)
    if found is None:
        return None
    known = {*found.entries, *(field.name for field in dataclasses.fields(GenerationSettings))}
    changes = {name: x for name, x in overrides.items() if name in known}
    found = generation_config.GenerationConfig({**found.entries, **changes})
    if others := found.unsupported():
        logging.warning(
            "%s: `generate` does not know %s; it will ask to do without.", directory, others
        )
    return found


def _classes_of(entries):
    """The classes of config and model that a `config.json` names."""
    config_class, classes = _CLASSES[entries["model_type"]]
    named = entries.get("architectures") or ()
    found = (known for known in classes if known.architecture in named)
    return config_class, next(found, classes[0])


def load_weights(model, source, is_head_new=False):
    """Sets all weights of a model.

    Args:
        model: built model for which `is_model` holds.
        source: `sources.Source`.
        is_head_new: bool. Whether weights of the model's head may be missing, all of them.
    Returns:
        `LoadReport`.
    Raises:
        ValueError: if weights are missing, or of another shape; all such are named. The model is
            then unchanged.
    """
    weights, naming = _weights(model), model.naming
    places = {name: _place(name, source, naming) for name in weights}
    missing = [name for name, place in places.items() if place is None]
    may_miss = {*naming.optional, *(_head_names(model) if is_head_new else ())}
    if not may_miss.issuperset(missing):
        missing = [name for name in missing if name not in naming.optional]
        raise ValueError(
            f"{source.path!r} lacks weights of {model.name!r}: {_some(missing)}. It has, for "
            f"example, {_some(sorted(source.shapes)[:2])}."
        )
    weights = {name: weight for name, weight in weights.items() if name not in missing}
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
        not_in_checkpoint=tuple(missing),
        unused=tuple(name for name in unused if name not in known),
        training_state=source.training_state,
        origins={name: places[name] for name in weights if name != places[name]},
        notes=tuple(f"{name} is obsolete or a copy: left out" for name in known),
    )


def _weights(model):
    """The variables by their names in files: dict of `Weight`."""
    if hasattr(model, "weights_by_name"):
        return model.weights_by_name()
    # Of a system that Hugging Face has not: by their places in the model, each once.
    found, prefix = {}, f"{model.name}/"
    for name, variable in names_lib.release_names(model).items():
        found.setdefault(id(variable), (name.removeprefix(prefix), Weight(variable)))
    return dict(found.values())


def _head_names(model):
    """Names of the weights that are not of the model without a head; none for that model."""
    names, prefix = list(_weights(model)), model.naming.prefix
    of_head = [name for name in names if not name.startswith(prefix)]
    return of_head if len(of_head) < len(names) else []


def _place(name, source, naming):
    """The name in a file, or None."""
    prefix = naming.prefix
    names = [name, prefix + name]
    for key in names:
        names = [*names, *naming.aliases.get(key, ())]
    names = [*names, *(other.removeprefix(prefix) for other in names)]
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
        processor: object with a method `save_pretrained(directory)`; None for the model's own.
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
    processor = getattr(model, "processor", None) if processor is None else processor
    values = {
        name: weight.variable.numpy().T if weight.is_transposed else weight.variable.numpy()
        for name, weight in _weights(model).items()
    }
    with atomic_files.scratch_folder(os.path.join(directory, _WEIGHTS_FILE)) as folder:
        if processor is not None:
            processor.save_pretrained(folder)
        entries = {**model.config.to_dict(), "architectures": [model.architecture]}
        text = json.dumps(entries, indent=2, sort_keys=True) + "\n"
        atomic_files.write_text(os.path.join(folder, encoders.CONFIG_FILE), [text])
        if (defaults := getattr(model, "generation_config", None)) is not None:
            path = os.path.join(folder, generation_config.FILE_NAME)
            atomic_files.write_text(path, [defaults.to_json_string()])
        weights_path = os.path.join(folder, _WEIGHTS_FILE)
        writing.write_safetensors(values, weights_path, made_by="pt")
        names = sorted(tf.io.gfile.listdir(folder), key=lambda name: name == _WEIGHTS_FILE)
        moves = [(os.path.join(folder, name), os.path.join(directory, name)) for name in names]
        olds = [*reversed(names), generation_config.FILE_NAME]
        olds = [os.path.join(directory, name) for name in dict.fromkeys(olds)]
        atomic_files.replace_files(moves, list(filter(tf.io.gfile.exists, olds)), folder)
