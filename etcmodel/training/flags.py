"""The flags that every task program shares, made from the fields of `TrainingConfig`.

A program calls `define_training_flags` where it defines its own flags and hands
`training_config_from_flags(FLAGS)` to the library, which itself knows no flags. To list the shared
flags under `--help` it calls `flags.adopt_module_key_flags` with this module.
"""

import dataclasses
import typing

from absl import flags

from etcmodel.training import config as config_lib

__all__ = ["RUN_MODES", "define_training_flags", "training_config_from_flags"]

RUN_MODES = ("train", "continuous_eval", "evaluate", "predict_records", "export", "predict")

_DEFINERS = {
    bool: flags.DEFINE_bool,
    int: flags.DEFINE_integer,
    float: flags.DEFINE_float,
    str: flags.DEFINE_string,
}


def define_training_flags(flag_values=flags.FLAGS, **defaults):
    """Defines one flag per field of `TrainingConfig`, and those of the program and the model.

    Args:
        flag_values: `flags.FlagValues` to define them in.
        **defaults: a task's own defaults, by flag name.
    Raises:
        ValueError: if `defaults` names no shared flag.
    """
    fields = dataclasses.fields(config_lib.TrainingConfig)
    known = {field.name for field in fields}
    if unknown := sorted(set(defaults) - known):
        raise ValueError(f"`defaults` must name shared flags. Received: {unknown}")
    for field in fields:
        default = defaults.get(field.name, field.default)
        _define(field, default, flag_values)
    flags.DEFINE_enum("run_mode", "train", RUN_MODES, "What to do.", flag_values=flag_values)
    flags.DEFINE_string(
        "etc_config_file", None, "JSON file of the model's sizes.", flag_values=flag_values
    )
    flags.DEFINE_integer(
        "grad_checkpointing_period",
        None,
        "Layers per part whose activations are recomputed in the backward pass, which needs less "
        "memory and more time. None or 0: nothing is recomputed.",
        lower_bound=0,
        flag_values=flag_values,
    )


def training_config_from_flags(flag_values=flags.FLAGS):
    """The parsed flags as a checked `TrainingConfig`.

    Raises:
        ValueError: if a value is outside its range.
    """
    fields = dataclasses.fields(config_lib.TrainingConfig)
    values = {field.name: flag_values[field.name].value for field in fields}
    # As in the release, '' stands for no file or name.
    nothing = {field.name for field in fields if field.default is None and not values[field.name]}
    return config_lib.TrainingConfig(**{**values, **dict.fromkeys(nothing)})


def _define(field, default, flag_values):
    help_text, choices = field.metadata["help"], field.metadata["choices"]
    if choices:
        flags.DEFINE_enum(field.name, default, choices, help_text, flag_values=flag_values)
        return
    # `str | None` is a string flag whose default may be None.
    kind = next(iter(typing.get_args(field.type)), field.type)
    _DEFINERS[kind](field.name, default, help_text, flag_values=flag_values)
