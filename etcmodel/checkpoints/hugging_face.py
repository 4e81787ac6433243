"""Weights under Hugging Face's names, for the systems that its library has, too."""

import os
import re
from typing import NamedTuple

import tensorflow as tf

from etcmodel import bounded_json
from etcmodel.checkpoints import names as names_lib
from etcmodel.checkpoints import sources, strict
from etcmodel.checkpoints.coverage import LoadReport
from etcmodel.models import encoders, heads, systems
from etcmodel.models import hugging_face as models_hugging_face
from etcmodel.shown_values import listed


class Place(NamedTuple):
    """A variable, and whether the file has its transpose."""

    name: str
    variable: object
    is_transposed: bool

    @property
    def shape(self):
        """The shape in the file: list of int."""
        shape = self.variable.shape.as_list()
        return shape[::-1] if self.is_transposed else shape

    def value(self):
        """The array for the file."""
        return self.variable.numpy().T if self.is_transposed else self.variable.numpy()


def _naming(model_type):
    """The `systems.Weights` of a system; None for those with the library's own names."""
    system = systems.find(model_type)
    return system and system.weights


def naming_of(model):
    """Returns the `systems.Weights` of a model: those of its class, or of its system; or None.

    Args:
        model: `Encoder`, encoder-decoder, or a model that contains one.
    """
    encoder = names_lib.encoder_of(model)
    return getattr(type(encoder), "stored_weights", None) or _naming(encoder.config.model_type)


def is_of(source):
    """Returns whether a `Source` is a Hugging Face file, by the names of its tensors."""
    return source.format == sources.SAFETENSORS and not any("/" in name for name in source.shapes)


def type_beside(source):
    """Returns the `model_type` in the `config.json` beside a `Source`; None without one."""
    path = os.path.join(os.path.dirname(source.path), encoders.CONFIG_FILE)
    return bounded_json.read_object(path).get("model_type") if tf.io.gfile.exists(path) else None


def encoder_options(config, source, head_class=None):
    """Returns the encoder's constructor arguments that depend on a Hugging Face file: dict.

    Args:
        config: `EncoderConfig`.
        source: `Source`.
        head_class: class of the model's head, or None.
    """
    naming = _naming(config.model_type)
    if naming is None or not is_of(source):
        return {}
    return naming.encoder_options(source.shapes, head_class)


def head_of(entries):
    """Finds the head that a `config.json` names.

    Args:
        entries: dict.
    Returns:
        (class, settings): an `EncoderWithHead` and its arguments; (None, None) if it names none of
        this library's.
    Raises:
        ValueError: naming the entry, if it has a wrong type.
    """
    naming = _naming(entries.get("model_type"))
    by_name = {known.__name__: known for known in heads.head_classes().values()}
    for name in models_hugging_face.architectures(entries):
        if naming is not None and name in by_name:
            return by_name[name], models_hugging_face.head_settings(entries, by_name[name])
    return None, None


def config_entries(model):
    """Returns the entries of `config.json` besides the encoder's config, for Hugging Face: dict."""
    if not has_names(model):
        return {}
    entries = {"architectures": [getattr(model, "architecture", type(model).__name__)]}
    if isinstance(model, heads.EncoderWithHead):
        entries |= models_hugging_face.head_entries(model)
    return entries


def has_names(model):
    """Returns whether a model's weights have names of their own in files, mostly Hugging Face's.

    Args:
        model: built `Encoder`, or a model that contains one.
    """
    return naming_of(model) is not None


def values(model):
    """Returns a model's weights as in a Hugging Face file: dict of name to array.

    Raises:
        ValueError: see `places`.
    """
    return {name: place.value() for name, place in places(model).items()}


def load(model, source):
    """Loads a model's weights from a Hugging Face file.

    The file may have another head, or none: all other weights must be there, unless they are
    optional; a missing head keeps its initial values.

    Args:
        model: built `Encoder`, encoder-decoder, or model of one, for which `has_names` holds.
        source: `Source`.
    Returns:
        `LoadReport`.
    Raises:
        ValueError: if weights are missing, a head is there only in part, shapes differ or weights
            are not floats (naming the first of these), or copies differ. The model is then
            unchanged.
    """
    by_name, naming = places(model), naming_of(model)
    found = {name: _name_in_file(name, source.shapes, naming) for name in by_name}
    missing = [name for name, place in found.items() if place is None]
    _check_missing(model, source, missing, by_name, naming)
    places_in_file = {found[name]: by_name[name] for name in by_name if name not in missing}
    weights = {name: place[1:] for name, place in places_in_file.items()}
    strict.check_dtypes(source, weights)
    _check_shapes(source, places_in_file)
    # A weight that the model has itself is not a copy.
    copies = {name: original for name, original in naming.copies.items() if name not in by_name}
    copies = strict.copies_in(source.shapes, copies, naming.prefix)
    strict.assign(source, weights, copies)
    notes = strict.notes_on(source.shapes, copies, naming.obsolete, naming.prefix)
    return LoadReport(
        checkpoint=source.path,
        loaded=tuple(place.name for place in places_in_file.values()),
        not_in_checkpoint=tuple(by_name[name].name for name in missing),
        unused=tuple(x for x in source.shapes if x not in weights and x not in notes),
        training_state=source.training_state,
        origins={place.name: name for name, place in places_in_file.items()},
        notes=tuple(notes.values()),
    )


def check_head(model, report):
    """Raises ValueError if a report says that a file lacks weights of a model, as of its head."""
    optional = naming_of(model).optional
    lost = [
        file_name
        for file_name, place in places(model).items()
        if place.name in report.not_in_checkpoint and file_name not in optional
    ]
    if lost:
        raise ValueError(f"{report.checkpoint!r} lacks weights of the head: {listed(lost)}")


def places(model):
    """Maps names in a Hugging Face file to a model's weights.

    Args:
        model: built `Encoder`, encoder-decoder, or model of one, for which `has_names` holds.
    Returns:
        dict of name in the file to `Place`, in the model's order; tied weights occur once. The
        variables of a user's head have their own names, with dots, where theirs has none.
    Raises:
        ValueError: if the encoder has variables without a name in such files, or two have the same.
    """
    encoder, naming = names_lib.encoder_of(model), naming_of(model)
    patterns = naming.names(encoder.config) if callable(naming.names) else naming.names
    inside = {id(variable) for variable in encoder.weights}
    is_bare = encoder is model and _is_without_head(encoder)
    found, unknown, seen = {}, [], set()
    for name, variable in names_lib.release_names(model).items():
        if id(variable) in seen:  # Tied weights occur once.
            continue
        seen.add(id(variable))
        file_name = _file_name(name, name.removeprefix(f"{encoder.name}/"), patterns)
        if id(variable) not in inside and (file_name is None or file_name in found):
            file_name = name.replace("/", ".")  # A user's head: these files have no slashes.
        if file_name is None or file_name in found:
            unknown.append(name)
            continue
        is_transposed = name.endswith("/kernel") and file_name.endswith(".weight")
        if is_bare:
            file_name = file_name.removeprefix(naming.prefix)
        found[file_name] = Place(name, variable, is_transposed)
    if unknown:
        raise ValueError(f"Hugging Face's files have no name for {', '.join(unknown)}.")
    return found


def _is_without_head(encoder):
    """Whether the class has a name like those without a head: an encoder-decoder may have one."""
    return getattr(encoder, "architecture", "Model").endswith("Model")


def _file_name(name, inner_name, patterns):
    """The name in files of models with a head, or None."""
    for pattern, replacement in patterns:
        if match := re.fullmatch(pattern, inner_name) or re.fullmatch(pattern, name):
            return match.expand(replacement)
    return None


def _name_in_file(name, shapes, naming):
    """The name of a weight among those of a file, or None.

    Names have a prefix in files of models with a head, and none in others.
    """
    names = [name, naming.prefix + name.removeprefix(naming.prefix)]
    names += [alias for known in names for alias in naming.aliases.get(known, ())]
    names += [known.removeprefix(naming.prefix) for known in names]
    return next((known for known in names if known in shapes), None)


def _check_missing(model, source, missing, by_name, naming):
    """Raises ValueError if weights are missing, unless they are optional or a head's, and all."""
    of_head = {name for name in by_name if not name.startswith(naming.prefix)}
    if len(of_head) == len(by_name):  # Without a head, names have no prefix.
        of_head = set()
    of_head -= {*naming.optional}
    own = {name for name in of_head if not name.startswith(naming.shared_head or naming.prefix)}
    lost = [name for name in missing if name not in naming.optional]
    if own.issubset(lost):
        whole = of_head if of_head.issubset(lost) else own
        lost = [name for name in lost if name not in whole]
    if lost:
        raise ValueError(
            f"{source.path!r} lacks weights of {model.name!r}: {listed(lost)}. It has, for "
            f"example, {listed(sorted(source.shapes)[:2])}."
        )


def _check_shapes(source, places_in_file):
    wrong = [
        f"{name}: {list(source.shapes[name])} in the file, {place.shape} in the model"
        for name, place in places_in_file.items()
        if list(source.shapes[name]) != place.shape
    ]
    if wrong:
        raise ValueError(f"{source.path!r} does not fit the model's config: {listed(wrong, '; ')}")
