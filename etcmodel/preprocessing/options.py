"""Options of a program as fields of a frozen dataclass, from which its flags are made.

A task adds a field for an option of its own and repeats an inherited field to give it another
default or flag name. The module needs no TensorFlow.
"""

import dataclasses
import typing

from absl import flags

__all__ = [
    "ROLES",
    "check_files",
    "define_flags",
    "flag_name",
    "option",
    "select",
    "values_from_flags",
]

flags.disclaim_key_flags()  # The flags are those of the program that calls, as --help shows them.

# What an option decides: the model and so its weights; the training alone; the features; how
# outputs become predictions; or only where things are and how the program runs.
ROLES = ("model", "training", "features", "decoding", "run")

_DEFINERS = {
    bool: flags.DEFINE_bool,
    int: flags.DEFINE_integer,
    float: flags.DEFINE_float,
    str: flags.DEFINE_string,
    tuple: flags.DEFINE_list,
}


def option(
    default,
    help_text,
    *,
    role="run",
    flag=None,
    choices=None,
    lower_bound=None,
    is_file=False,
    is_repeated=False,
):
    """A dataclass field that is an option.

    Its annotation is bool, int, float, str or tuple (of str: a comma-separated flag), or one of
    these `| None`.

    Args:
        default: default of the field and of the flag.
        help_text: str.
        role: one of `ROLES`.
        flag: str. Name of the flag. None: that of the field.
        choices: tuple of str. The allowed values.
        lower_bound: int or float. The least allowed value.
        is_file: bool. The value, where given, must be an existing file.
        is_repeated: bool. Of a tuple: the flag may be given several times, for all of its values.
    Raises:
        ValueError: if `role` is unknown.
    """
    if role not in ROLES:
        raise ValueError(f"`role` must be one of {ROLES}. Received: {role!r}")
    metadata = {
        "help": help_text,
        "role": role,
        "flag": flag,
        "choices": choices,
        "lower_bound": lower_bound,
        "is_file": is_file,
        "is_repeated": is_repeated,
    }
    return dataclasses.field(default=default, metadata=metadata)


def flag_name(options_class, field_name):
    """Name of the flag of a field, without dashes."""
    (field,) = (field for field in _options(options_class) if field.name == field_name)
    return field.metadata["flag"] or field.name


def define_flags(options_class, flag_values=flags.FLAGS):
    """Defines a flag for every option of the class."""
    for field in _options(options_class):
        _define(field, flag_values)


def values_from_flags(options_class, flag_values=flags.FLAGS, *, only_given=False, roles=ROLES):
    """The parsed flags.

    Args:
        options_class: dataclass.
        flag_values: parsed `flags.FlagValues`.
        only_given: bool. Leave out flags that the command line does not name.
        roles: tuple of str. Leave out options of other roles.
    Returns:
        dict of field name to value; '' becomes None where that is the default.
    """
    values = {}
    for field in _options(options_class):
        flag = flag_values[flag_name(options_class, field.name)]
        if field.metadata["role"] in roles and (flag.present or not only_given):
            values[field.name] = _value(field, flag)
    return values


def check_files(options):
    """Checks that the files that the options name are there.

    Raises:
        ValueError: naming the flag and the file.
    """
    import tensorflow as tf  # Takes seconds to import.

    for field in _options(type(options)):
        path = getattr(options, field.name)
        if field.metadata["is_file"] and path and not tf.io.gfile.exists(path):
            name = flag_name(type(options), field.name)
            raise ValueError(f"--{name}: no such file: {path!r}")


def select(options, *roles):
    """dict of field name to value: the options with one of these roles."""
    return {
        field.name: getattr(options, field.name)
        for field in _options(type(options))
        if field.metadata["role"] in roles
    }


def _options(options_class):
    return [field for field in dataclasses.fields(options_class) if "role" in field.metadata]


def _kind(field):
    # `str | None` is a string flag whose default may be None.
    return next(iter(typing.get_args(field.type)), field.type)


def _define(field, flag_values):
    name, metadata = field.metadata["flag"] or field.name, field.metadata
    arguments = {"flag_values": flag_values}
    if metadata["lower_bound"] is not None:
        arguments["lower_bound"] = metadata["lower_bound"]
    if metadata["choices"]:
        flags.DEFINE_enum(
            name, field.default, list(metadata["choices"]), metadata["help"], **arguments
        )
        return
    default = list(field.default) if isinstance(field.default, tuple) else field.default
    if metadata["is_repeated"]:
        flag = _RepeatedListFlag(
            flags.ListParser(), flags.ListSerializer(","), name, default, metadata["help"]
        )
        flags.DEFINE_flag(flag, flag_values)
        return
    _DEFINERS[_kind(field)](name, default, metadata["help"], **arguments)


class _RepeatedListFlag(flags.Flag):
    """Comma-separated values, to which each further time adds, as with absl's multi flags."""

    def parse(self, argument):
        before = self.value if self.present else []
        super().parse(argument)
        self.value = before + self.value


def _value(field, flag):
    if _kind(field) is tuple:
        return None if flag.value is None else tuple(flag.value)
    if field.default is None and flag.value == "":
        return None
    return flag.value
