"""Loads checkpoints into models, and reports what was loaded."""

import re

import tensorflow as tf
from absl import logging

from etcmodel.checkpoints import (
    bert,
    coverage,
    hugging_face,
    lifting,
    lifting_modernbert,
    lifting_roberta,
    sources,
    strict,
)
from etcmodel.checkpoints import names as names_lib
from etcmodel.checkpoints.coverage import LoadReport
from etcmodel.models.gmat import GmatModel
from etcmodel.shown_values import listed

_LAYER = re.compile(r"gmat/layers/(attention|feed_forward)_layer_(\d+)/(.+)")
_HEAD = re.compile(r"gmat_\w+/((?!gmat/).+)")  # TensorFlow's names of what is outside the encoder.


def for_compression(source, model):
    """Renames the layers of a GMAT without compression in their order, for a model with it.

    Args:
        source: `Source`.
        model: a built model.
    Returns:
        `Source`, with the names of the model's layers; `source` itself if the model has no
        compression, or the checkpoint has it already.
    """
    found = (x for x in model._flatten_layers() if isinstance(x, GmatModel))
    encoder = next(found, None)
    if encoder is None or encoder.compressor is None:
        return source
    if not any(map(_LAYER.fullmatch, source.shapes)):
        return source
    names = {_renamed(name, encoder, source.format): name for name in source.shapes}
    return source.renamed(names)


def _renamed(name, encoder, source_format):
    if match := _LAYER.fullmatch(name):
        part, index, rest = match[1], int(match[2]), match[3]
        for layers in encoder.stacks:
            if index < layers.num_hidden_layers:
                return f"gmat/{layers.name}/{part}_layer_{index}/{rest}"
            index -= layers.num_hidden_layers
    elif source_format == sources.OBJECTS and (match := _HEAD.fullmatch(name)):
        return match[1]
    return name


def load_released_checkpoint(model, checkpoint):
    """Loads an ETC checkpoint: the authors', or this library's in any format.

    Args:
        model: a built `Encoder`, or a task model that contains one.
        checkpoint: `Source`, or path as in `open_source`, usually a prefix ("…/model.ckpt").
    Returns:
        `LoadReport`.
    Raises:
        ValueError: if there is no such checkpoint, a variable has another shape there (naming all
            of them), nothing matched, a whole layer of the encoder is missing, weights are not
            floats, or copies differ. Relative labels, the global side's normalization and a task's
            heads may be missing. The model is then unchanged.

    >>> from etcmodel import checkpoints
    >>> path, _ = checkpoints.convert("my_model", "released", "released")
    >>> model = etcmodel.from_pretrained("my_model")
    >>> checkpoints.load_released_checkpoint(model, path).not_in_checkpoint
    ()
    """
    source = sources.open_source(checkpoint)
    found = _same_objects(model, source)
    variables = {} if found else names_lib.release_names(model)
    found = found or {name: v for name, v in variables.items() if name in source.shapes}
    if not found:
        raise ValueError(
            f"No variable of {model.name!r} is in {source.path!r}. The model has, for example, "
            f"{sorted(variables)[:2]}; the checkpoint {sorted(source.shapes)[:2]}."
        )
    weights = {name: (variable, False) for name, variable in found.items()}
    strict.check_dtypes(source, weights)
    _check_shapes(source, found)
    coverage.check_layers(source, model, found)
    strict.assign(source, weights)
    loaded = {id(variable) for variable in found.values()}
    not_in_checkpoint = tuple(n for n, v in variables.items() if id(v) not in loaded)
    unused = tuple(sorted(set(source.shapes) - set(found)))
    return LoadReport(
        checkpoint=source.path,
        loaded=tuple(found),
        not_in_checkpoint=not_in_checkpoint,
        unused=unused,
        training_state=source.training_state,
        notes=tuple(_notes(model, not_in_checkpoint)),
        warnings=tuple(_warnings(model, not_in_checkpoint, unused)),
    )


def _warnings(model, not_in_checkpoint, unused):
    """Encoder weights that the checkpoint lacks, or has and the model has not."""
    encoder = set(names_lib.encoder_variables(model))
    for name in not_in_checkpoint:
        if name in encoder and not coverage.is_without_use(name, model):
            yield f"the checkpoint lacks {name}: initial value"
    for name in filter(names_lib.is_in_encoder, unused):
        yield f"not used: {name}"


def _notes(model, not_in_checkpoint):
    """Explanations that the names of missing weights do not give."""
    has_tables = not any(map(coverage.LABEL_TABLE.fullmatch, not_in_checkpoint))
    if not has_tables and coverage.is_without_positions(model):
        yield (
            "the checkpoint has no relative labels: without relative positions structures do not "
            "use them, and labels of your own begin fresh"
        )


def _same_objects(model, source):
    """The model's variables by name in a checkpoint of such a model; {} for others.

    Works without names: a user's model may have variables of the same name.
    """
    if source.format != sources.OBJECTS:
        return {}
    view = tf.train.CheckpointView(source.path)
    objects = view.match(tf.train.Checkpoint(model=model))
    found = {source.nodes[node]: obj for node, obj in objects.items() if node in source.nodes}
    missing = {id(v) for v in model.weights} - {id(v) for v in found.values()}
    return {} if missing else found


def _check_shapes(source, variables):
    wrong = [
        f"{name}: {list(variable.shape)} in the model, {list(source.shapes[name])} in the "
        "checkpoint"
        for name, variable in variables.items()
        if list(variable.shape) != list(source.shapes[name])
    ]
    if wrong:
        raise ValueError(f"{source.path!r} does not fit the model's config: {listed(wrong, '; ')}")


def initialize(model, checkpoint):
    """Initializes a new model from a checkpoint of any kind.

    Args:
        model: a built task model, or `Encoder`.
        checkpoint: `Source`, or path as in `open_source`: a checkpoint of ETC (the authors', of
            `etcmodel.training`, or safetensors); of BERT or RoBERTa (`lift_bert`, or `lift` for a
            Longformer or BigBird, whose tables of positions may be longer); of ModernBERT for an
            `EtcModernBertModel` (`lift_modernbert`); Hugging Face's
            of the model's own system (`hugging_face.load`); for a GMAT with compression, also of
            one without (`for_compression`).
    Returns:
        `LoadReport`; it is also logged.
    Raises:
        ValueError: see these functions.

    >>> from etcmodel import checkpoints
    >>> model = etcmodel.from_pretrained("my_model")
    >>> report = checkpoints.initialize(model, "my_model/model.safetensors")
    >>> len(report.loaded) == len(model.weights), report.not_in_checkpoint
    (True, ())
    """
    source = for_compression(sources.open_source(checkpoint), model)
    report = _loader(model, source)(model, source)
    logging.info("%s", report)
    if report.warnings:
        logging.warning("%s:\n  %s", report.checkpoint, "\n  ".join(report.warnings))
    return report


def load_whole(model, checkpoint):
    """Like `initialize`, for a model that is used as it is: nothing may keep its initial value.

    Args:
        model, checkpoint: as of `initialize`.
    Returns:
        `LoadReport`.
    Raises:
        ValueError: also if the checkpoint lacks a weight of the encoder or of the head; all of them
            are named.

    >>> from etcmodel.checkpoints import released
    >>> model = etcmodel.from_pretrained("my_model")
    >>> len(released.load_whole(model, "my_model").loaded) == len(model.weights)
    True
    """
    source = sources.open_source(checkpoint)
    report = initialize(model, source)
    if hugging_face.is_of(source) and hugging_face.has_names(model):
        hugging_face.check_head(model, report)  # The encoder was whole, but for what is optional.
        return report
    lost = [x for x in report.not_in_checkpoint if not coverage.is_without_use(x, model)]
    if lost:
        raise ValueError(
            f"{source.path!r} lacks weights of the model: {listed(lost)}. They would be random: "
            "train the model, or give a checkpoint of one that is trained for this."
        )
    return report


def _loader(model, source):
    if lifting_roberta.is_for(model, source):
        return lifting_roberta.load
    if hugging_face.is_of(source) and hugging_face.has_names(model):
        is_lifted = lifting_modernbert.is_for(names_lib.encoder_of(model).config, source)
        return lifting_modernbert.load if is_lifted else hugging_face.load
    return lifting.lift_bert if bert.find_bert(source) else load_released_checkpoint
