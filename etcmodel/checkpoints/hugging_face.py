"""Weights under Hugging Face's names, for the systems that its library has, too."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from etcmodel.checkpoints import names as names_lib
from etcmodel.checkpoints import sources, strict
from etcmodel.checkpoints.coverage import LoadReport
from etcmodel.models import heads, systems
from etcmodel.models import hugging_face as models_hugging_face
from etcmodel.shown_values import listed

__all__ = [
    "Place",
    "config_entries",
    "encoder_options",
    "has_names",
    "head_of",
    "is_of",
    "load",
    "places",
    "values",
]


class Place(NamedTuple):
    """A variable, and whether the file has its transpose."""

    name: str
    variable: object
    is_transposed: bool


def _naming(model_type):
    """The `systems.Weights` of a system; None for those with the library's own names."""
    system = systems.find(model_type)
    return system and system.weights


def is_of(source):
    """Returns whether a `Source` is a Hugging Face file, by the names of its tensors."""
    return source.format == sources.SAFETENSORS and not any("/" in name for name in source.shapes)


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
    entries = {"architectures": [type(model).__name__]}
    if isinstance(model, heads.EncoderWithHead):
        entries |= models_hugging_face.head_entries(model)
    return entries


def has_names(model):
    """Returns whether a model's weights are stored under Hugging Face's names, by its system.

    Args:
        model: built `Encoder`, or a model that contains one.
    """
    return _naming(names_lib.encoder_of(model).config.model_type) is not None


def values(model):
    """Returns a model's weights as in a Hugging Face file: dict of name to array.

    Raises:
        ValueError: if the model has variables without a name in such files.
    """
    by_name = places(model)
    return {
        name: place.variable.numpy().T if place.is_transposed else place.variable.numpy()
        for name, place in by_name.items()
    }


def load(model, source):
    """Loads a model's weights from a Hugging Face file.

    The file may have another head, or none: all weights of the model's encoder must be there; a
    missing head keeps its initial values.

    Args:
        model: built `Encoder`, or `HeadModel` of one, for which `has_names` holds.
        source: `Source`.
    Returns:
        `LoadReport`.
    Raises:
        ValueError: if weights of the encoder are missing, a head is there only in part, shapes
            differ or weights are not floats (naming the first of these), or copies differ. The
            model is then unchanged.
    """
    by_name = places(model)
    naming = _naming(names_lib.encoder_of(model).config.model_type)
    found = _names_in_file(source.shapes, naming)
    _check_missing(source, model, by_name, found)
    loaded = [name for name in by_name if name in found]
    weights = {found[name]: by_name[name][1:] for name in loaded}
    strict.check_dtypes(source, weights)
    _check_shapes(source, by_name, found)
    copies = strict.copies_in(source.shapes, naming.copies, naming.prefix)
    strict.assign(source, weights, copies)
    notes = strict.notes_on(source.shapes, copies, naming.obsolete, naming.prefix)
    known = {*notes, *(found[name] for name in loaded)}
    return LoadReport(
        checkpoint=source.path,
        loaded=tuple(by_name[name].name for name in loaded),
        not_in_checkpoint=tuple(p.name for name, p in by_name.items() if name not in found),
        unused=tuple(name for name in source.shapes if name not in known),
        training_state=source.training_state,
        origins={by_name[name].name: found[name] for name in loaded},
        notes=tuple(notes.values()),
    )


def places(model):
    """Maps names in a Hugging Face file to a model's weights.

    Args:
        model: built `Encoder`, or `HeadModel` of one, for which `has_names` holds.
    Returns:
        dict of name in the file to `Place`, in the model's order; tied weights occur once.
    Raises:
        ValueError: if the model has variables without a name in such files.
    """
    encoder = names_lib.encoder_of(model)
    naming = _naming(encoder.config.model_type)
    is_alone = encoder is model
    found, unknown, seen = {}, [], set()
    for name, variable in names_lib.release_names(model).items():
        if id(variable) in seen:  # Tied weights occur once.
            continue
        seen.add(id(variable))
        file_name = _file_name(name, naming)
        if file_name is None:
            unknown.append(name)
            continue
        if is_alone:
            file_name = file_name.removeprefix(naming.prefix)
        found[file_name] = Place(name, variable, name.endswith("/kernel"))
    if unknown:
        raise ValueError(f"Hugging Face's files have no name for {', '.join(unknown)}.")
    return found


def _file_name(name, naming):
    """The name in files of models with a head, or None."""
    for pattern, replacement in naming.names:
        if match := re.fullmatch(pattern, name):
            return match.expand(replacement)
    return None


def _names_in_file(shapes, naming) -> Mapping[str, str]:
    """Maps all names by which a tensor may be requested to its name in the file.

    The encoder's names have a prefix in files of models with a head, and none in others.
    """
    found = {name: name for name in shapes}
    for name in shapes:
        bare = name.removeprefix(naming.prefix)
        found.setdefault(bare, name)
        found.setdefault(naming.prefix + bare, name)
    return found


def _check_missing(source, model, by_name, found):
    inside = {id(variable) for variable in names_lib.encoder_of(model).weights}
    missing = [name for name in by_name if name not in found]
    lost = [name for name in missing if id(by_name[name].variable) in inside]
    of_head = [name for name in missing if name not in lost]
    if len(of_head) < sum(id(place.variable) not in inside for place in by_name.values()):
        lost += of_head
    if lost:
        raise ValueError(
            f"{source.path!r} lacks weights of {model.name!r}: {listed(lost)}. It has, for "
            f"example, {listed(sorted(source.shapes)[:2])}."
        )


def _check_shapes(source, by_name, found):
    wrong = []
    for name, place in by_name.items():
        if name not in found:
            continue
        shape, wanted = list(source.shapes[found[name]]), list(place.variable.shape)
        if shape != (wanted[::-1] if place.is_transposed else wanted):
            wrong.append(f"{found[name]}: {shape} in the file, {wanted} in the model")
    if wrong:
        raise ValueError(f"{source.path!r} does not fit the model's config: {listed(wrong, '; ')}")
