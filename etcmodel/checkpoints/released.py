"""Loading checkpoints into models, and reporting what went where."""

import os

import tensorflow as tf
from absl import logging

from etcmodel.checkpoints import bert_names, coverage, lifting, sources
from etcmodel.checkpoints import names as names_lib
from etcmodel.checkpoints.report import LoadReport
from etcmodel.models import downloads, modeling

__all__ = ["initialize", "load_pretrained", "load_released_checkpoint"]


def load_released_checkpoint(model, checkpoint):
    """Loads an ETC checkpoint: one of the authors', or one of this library in any format.

    Args:
        model: a built `EtcModel`, or a task model that holds one.
        checkpoint: `Source`, or path as in `open_source`, usually a prefix ("…/model.ckpt").
    Returns:
        `LoadReport`.
    Raises:
        ValueError: if there is no such checkpoint, a variable has another shape there (all such
            are named), nothing matched, or there is nothing of a whole layer of the encoder.
            Relative labels, the global side's normalization and a task's heads may be missing. The
            model is then unchanged.
    """
    source = sources.open_source(checkpoint)
    variables = names_lib.release_names(model)
    found = _same_objects(model, source) or {
        name: variable for name, variable in variables.items() if name in source.shapes
    }
    if not found:
        raise ValueError(
            f"No variable of {model.name!r} is in {source.path!r}. The model has, for example, "
            f"{sorted(variables)[:2]}; the checkpoint {sorted(source.shapes)[:2]}."
        )
    _check_shapes(source, found)
    coverage.check_layers(source, model, found)
    for name, variable in found.items():
        variable.assign(source.read(name))
    loaded = {id(variable) for variable in found.values()}
    not_in_checkpoint = tuple(n for n, v in variables.items() if id(v) not in loaded)
    return LoadReport(
        checkpoint=source.path,
        loaded=tuple(found),
        not_in_checkpoint=not_in_checkpoint,
        unused=tuple(sorted(set(source.shapes) - set(found))),
        training_state=source.training_state,
        notes=tuple(_notes(model, not_in_checkpoint)),
    )


def _notes(model, not_in_checkpoint):
    """What the names of missing weights do not tell."""
    has_tables = not any(map(coverage.LABEL_TABLE.fullmatch, not_in_checkpoint))
    if not has_tables and not names_lib.encoder_of(model).config.relative_pos_max_distance:
        yield (
            "the checkpoint has no relative labels: without relative positions structures do not "
            "use them, and labels of your own begin fresh"
        )


def _same_objects(model, source):
    """The model's variables by name in a checkpoint of such a model; {} if it is of another.

    Needs no names: a user's model may have variables of the same name.
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
        raise ValueError(
            f"{source.path!r} does not fit the model's config:\n  " + "\n  ".join(wrong)
        )


def load_pretrained(directory, checkpoint_name=None, **model_options):
    """A ready `EtcModel` from a directory with a config and a checkpoint.

    Args:
        directory: holds `etc_config.json` and one checkpoint, usually `model.ckpt` or
            `model.safetensors`; also one of BERT or RoBERTa, which is lifted.
        checkpoint_name: file name of the checkpoint (its prefix, for TensorFlow's), where there
            are several.
        **model_options: arguments of `EtcModel` besides `config`.
    Returns:
        `EtcModel`, built and loaded; the report goes to the log.
    Raises:
        ValueError: if a file is missing, or model and checkpoint do not fit.
    """
    config_file = os.path.join(directory, "etc_config.json")
    if not tf.io.gfile.exists(config_file):
        raise ValueError(_no_config(directory))
    path = os.path.join(directory, checkpoint_name) if checkpoint_name else directory
    source = sources.open_source(path)
    model = modeling.EtcModel(modeling.EtcConfig.from_json_file(config_file), **model_options)
    with tf.name_scope(model.name):
        model.build(None)
    initialize(model, source)
    return model


def _no_config(directory):
    """Why there is no config, and what to do."""
    if tf.io.gfile.exists(os.path.join(directory, "config.json")):
        return (
            f"{directory!r} has no etc_config.json, but Hugging Face's config.json. Lift BERT or "
            "RoBERTa into an `EtcModel` of your own config with `lift_bert(model, directory)`, or "
            "with `python -m etcmodel.tools.convert_checkpoint --preset=etc_base --input=…`."
        )
    return f"{directory!r} has no etc_config.json. {downloads.download_hint(directory)}"


def initialize(model, checkpoint):
    """Sets a new model's weights from a checkpoint of any kind.

    Args:
        model: a built task model, or `EtcModel`.
        checkpoint: `Source`, or path as in `open_source`: a checkpoint of ETC (the authors', of
            `etcmodel.training`, or safetensors), or of BERT or RoBERTa, which is lifted
            (`lift_bert`).
    Returns:
        `LoadReport`; it goes to the log, too.
    Raises:
        ValueError: as `load_released_checkpoint` or `lift_bert`.
    """
    source = sources.open_source(checkpoint)
    load = lifting.lift_bert if bert_names.find_bert(source) else load_released_checkpoint
    report = load(model, source)
    left = any(map(names_lib.is_in_encoder, report.unused))
    is_notable = report.not_in_checkpoint or report.notes or left
    log = logging.warning if is_notable else logging.info
    log("%s", report)
    return report
