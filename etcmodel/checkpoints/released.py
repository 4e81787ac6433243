"""Loading the authors' checkpoints (TF1, V2 format) and reporting what went where."""

import dataclasses
import os
import re

import tensorflow as tf
from absl import logging

from etcmodel.checkpoints import names as names_lib
from etcmodel.models import modeling

__all__ = ["LoadReport", "initialize", "load_pretrained", "load_released_checkpoint"]

# What a training checkpoint holds besides the model.
_TRAINING_STATE = re.compile(r"(^|/)(global_step|adam_m|adam_v)$")


@dataclasses.dataclass(frozen=True)
class LoadReport:
    """What loading a checkpoint did; names are those in the checkpoint.

    Attributes:
        checkpoint: path prefix of the checkpoint.
        loaded: variables that got the checkpoint's values.
        not_in_checkpoint: variables of the model that stayed at their initial values.
        unused: entries of the checkpoint that the model has no place for.
        training_state: unused entries that are expected: optimizer slots and `global_step`.
    """

    checkpoint: str
    loaded: tuple[str, ...]
    not_in_checkpoint: tuple[str, ...]
    unused: tuple[str, ...]
    training_state: tuple[str, ...]

    def __str__(self):
        lines = [
            f"{self.checkpoint}: {len(self.loaded)} variables loaded, "
            f"{len(self.not_in_checkpoint)} left at their initial values, "
            f"{len(self.unused)} entries not used, "
            f"{len(self.training_state)} entries of training state skipped"
        ]
        lines += [f"  initial value: {name}" for name in self.not_in_checkpoint]
        lines += [f"  not used: {name}" for name in self.unused]
        return "\n".join(lines)


def load_released_checkpoint(model, checkpoint):
    """Loads a checkpoint with the release's variable names.

    Args:
        model: a built `EtcModel`, or a task model that holds one.
        checkpoint: path prefix ("…/model.ckpt").
    Returns:
        `LoadReport`.
    Raises:
        ValueError: if there is no such checkpoint, a variable has another shape there (all such
            are named), or nothing matched. The model is then unchanged.
    """
    try:
        reader = tf.train.load_checkpoint(checkpoint)
    except (tf.errors.OpError, ValueError) as error:
        raise ValueError(f"No readable checkpoint at {checkpoint!r}: {error}") from None
    shapes = reader.get_variable_to_shape_map()
    variables = names_lib.release_names(model)
    found = [name for name in variables if name in shapes]
    if not found:
        raise ValueError(
            f"No variable of {model.name!r} is in {checkpoint!r}. The model has, for example, "
            f"{sorted(variables)[:2]}; the checkpoint {sorted(shapes)[:2]}."
        )
    _check_shapes(checkpoint, {name: variables[name] for name in found}, shapes)
    for name in found:
        variables[name].assign(reader.get_tensor(name))
    others = sorted(set(shapes) - set(found))
    return LoadReport(
        checkpoint=str(checkpoint),
        loaded=tuple(found),
        not_in_checkpoint=tuple(name for name in variables if name not in shapes),
        unused=tuple(name for name in others if not _TRAINING_STATE.search(name)),
        training_state=tuple(name for name in others if _TRAINING_STATE.search(name)),
    )


def _check_shapes(checkpoint, variables, shapes):
    wrong = [
        f"{name}: {list(variable.shape)} in the model, {list(shapes[name])} in the checkpoint"
        for name, variable in variables.items()
        if list(variable.shape) != list(shapes[name])
    ]
    if wrong:
        raise ValueError(
            f"{checkpoint!r} does not fit the model's config:\n  " + "\n  ".join(wrong)
        )


def load_pretrained(directory, checkpoint_name=None, **model_options):
    """A ready `EtcModel` from a released checkpoint's directory.

    Args:
        directory: holds `etc_config.json` and one checkpoint, usually `model.ckpt`.
        checkpoint_name: file name prefix of the checkpoint, where there are several.
        **model_options: arguments of `EtcModel` besides `config`.
    Returns:
        `EtcModel`, built and loaded; the report goes to the log.
    Raises:
        ValueError: if a file is missing, or model and checkpoint do not fit.
    """
    config_file = os.path.join(directory, "etc_config.json")
    if not tf.io.gfile.exists(config_file):
        raise ValueError(f"{directory!r} has no etc_config.json.")
    prefix = os.path.join(directory, checkpoint_name or _only_checkpoint(directory))
    model = modeling.EtcModel(modeling.EtcConfig.from_json_file(config_file), **model_options)
    with tf.name_scope(model.name):
        model.build(None)
    report = load_released_checkpoint(model, prefix)
    log = logging.warning if report.not_in_checkpoint else logging.info
    log("%s", report)
    return model


def initialize(model, checkpoint):
    """Sets a new model's weights from a released checkpoint or from one of `etcmodel.training`.

    Args:
        model: a built task model.
        checkpoint: path prefix, or a directory with one checkpoint (or a training run's latest).
    Raises:
        ValueError: as `load_released_checkpoint`.
    """
    if tf.io.gfile.isdir(checkpoint):
        latest = tf.train.latest_checkpoint(checkpoint)
        checkpoint = latest or os.path.join(checkpoint, _only_checkpoint(checkpoint))
    if not tf.io.gfile.exists(f"{checkpoint}.index"):
        raise ValueError(f"No checkpoint at {checkpoint!r}.")
    if (
        "_CHECKPOINTABLE_OBJECT_GRAPH"
        in tf.train.load_checkpoint(checkpoint).get_variable_to_shape_map()
    ):
        status = tf.train.Checkpoint(model=model).read(checkpoint)
        status.assert_existing_objects_matched().expect_partial()
        logging.info("%s: all variables loaded", checkpoint)
    else:
        logging.info("%s", load_released_checkpoint(model, checkpoint))


def _only_checkpoint(directory):
    """The name prefix of the directory's checkpoint."""
    found = [os.path.basename(path) for path in tf.io.gfile.glob(f"{directory}/*.index")]
    prefixes = sorted(name.removesuffix(".index") for name in found)
    if "model.ckpt" in prefixes:
        return "model.ckpt"
    if len(prefixes) != 1:
        raise ValueError(
            f"{directory!r} must hold one checkpoint; found {prefixes or 'none'}. "
            "Give `checkpoint_name`."
        )
    return prefixes[0]
