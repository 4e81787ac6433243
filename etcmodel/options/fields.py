"""Options as fields of frozen dataclasses, and the checks that their metadata define."""

import collections
import dataclasses
import math
import os
import types
import typing

from etcmodel.bounded_yaml import INTEGERS
from etcmodel.options import program_help
from etcmodel.shown_values import shortened, shown

# What an option affects: the model and so its weights; only the training; the features; what later
# modes may choose differently from the records; how outputs become predictions; or only where files
# are and how the program runs.
ROLES = ("model", "training", "features", "inference", "decoding", "run")
_GROUPS_OF_ROLES = {  # The other roles are groups.
    "features": "data",
    "inference": "evaluation",
    "decoding": "evaluation",
    "run": program_help.OTHER,
}


def option(
    default,
    help_text,
    *,
    role="run",
    choices=None,
    lower_bound=None,
    upper_bound=None,
    is_file=False,
    is_needed=False,
    is_repeated=False,
    kept_as=None,
    group=None,
    example=None,
):
    """Declares a dataclass field as an option.

    Its annotation must be bool, int, float, str, tuple (of str) or tuple[int, ...] (tuples become
    flags with comma-separated items), or one of these `| None`.

    Args:
        default: the default of the field and the flag.
        help_text: str.
        role: one of `ROLES`.
        choices: tuple of str, or dict by them. The allowed values; for a tuple, the allowed items.
        lower_bound, upper_bound: int or float. The smallest and the largest allowed value; for a
            tuple, of its items.
        is_file: bool. Whether the value, if given, must be an existing file.
        is_needed: bool. Whether a value must be given: an empty value or None is an error.
        is_repeated: bool. For a tuple: whether the flag may be repeated, adding its values each
            time; with `choices`, each time adds one item, which may contain commas.
        kept_as: str. Name under which runs and exports store the value. None: the field's name.
        group: one of `program_help.GROUPS`: the group in which --help lists the flag. None: the
            role's group. An option whose help says that it has no effect is listed only by
            --helpfull.
        example: str. A value for the example command in --help.
    Raises:
        ValueError: if `role` is unknown.

    >>> from etcmodel import options
    >>> field = options.option(3, "How many.", lower_bound=1)
    >>> field.default, field.metadata["help_text"]
    (3, 'How many.')
    """
    if role not in ROLES:
        raise ValueError(f"`role` must be one of {ROLES}. Received: {role!r}")
    metadata = {
        "help_text": help_text,
        "role": role,
        "choices": choices,
        "lower_bound": lower_bound,
        "upper_bound": upper_bound,
        "is_file": is_file,
        "is_needed": is_needed,
        "is_repeated": is_repeated,
        "kept_as": kept_as,
        "group": group,
        "example": example,
    }
    return dataclasses.field(default=default, metadata=metadata)


def changed(options_class, field_name, **changes):
    """Redeclares an option of another class with some arguments of `option` changed.

    Args:
        options_class: dataclass.
        field_name: str. One of its options.
        **changes: arguments of `option`, including `default`.
    Raises:
        ValueError: if the class has no such option.

    >>> from etcmodel import options
    >>> options.changed(options.LengthOptions, "long_seq_length", default=512).default
    512
    """
    fields = {field.name: field for field in option_fields(options_class)}
    if field_name not in fields:
        raise ValueError(f"{options_class.__name__} has no option {field_name!r}.")
    field = fields[field_name]
    return option(**{"default": field.default, **field.metadata, **changes})


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
    """Base class of options; every instance has valid values.

    A mixin class should derive from this class only: of several bases, the first that has a field
    wins, even if it only inherited the field.

    Attributes:
        aliases: dict from a further flag name to the field; subclasses add theirs.
        help_texts: dict from an inherited option to its help text in this class and its subclasses;
            everything else about the option is as in the base class.
        needed: tuple of str. Flags that --help lists as needed, in addition to those that always
            are; or a dict from a value of --run_mode to such a tuple.
        not_needed: tuple of str. Flags to remove from the `needed` of other classes.
        former_values: dict from a field to the value that was fixed before it was an option, if the
            default is another: that of records, runs and exports which lack it.

    Raises:
        ValueError: if a value is out of range or not one of the choices, or a needed option is not
            given.

    >>> import dataclasses
    >>> from etcmodel import options
    >>> @dataclasses.dataclass(frozen=True, kw_only=True)
    ... class Colors(options.Options):
    ...     ink: str = options.option("black", "Of lines.", choices=("black", "blue"))
    >>> Colors(ink="red")
    Traceback (most recent call last):
        ...
    ValueError: `ink` must be one of ('black', 'blue'). Received: 'red'
    """

    aliases = types.MappingProxyType({})
    help_texts = types.MappingProxyType({})
    needed = ()
    not_needed = ()
    former_values = types.MappingProxyType({})

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        _redeclare(cls, vars(cls).get("help_texts", {}))

    def __post_init__(self):
        for field in option_fields(type(self)):
            check_value(field, getattr(self, field.name))


def _redeclare(options_class, help_texts):
    """Adds inherited options to a class's own declarations, before `dataclass` reads them.

    Raises:
        TypeError: if a name is not an inherited option, or is declared by the class itself.
    """
    for name, help_text in help_texts.items():
        owners = [base for base in options_class.__mro__[1:] if dataclasses.is_dataclass(base)]
        fields = [field for base in owners for field in option_fields(base) if field.name == name]
        if not fields or name in vars(options_class).get("__annotations__", {}):
            raise TypeError(
                f"`help_texts` of {options_class.__name__} must name inherited options. "
                f"Received: {name!r}"
            )
        options_class.__annotations__ = {
            **vars(options_class).get("__annotations__", {}),
            name: fields[0].type,
        }
        metadata = {**fields[0].metadata, "help_text": help_text}
        setattr(options_class, name, option(fields[0].default, **metadata))


def check_value(field, value):
    """Checks that a needed option is given, and checks its range and its choices.

    Integers must fit in signed 64 bits, and numbers must be finite.

    Args:
        field: `dataclasses.Field` of an option.
        value: a value of its type; None is not range-checked.
    Raises:
        ValueError: naming the field and the value.
    """
    if field.metadata["is_needed"] and value in (None, "", ()):
        raise ValueError(f"--{field.name} must be given.")
    if value is None:
        return
    low, high = field.metadata["lower_bound"], field.metadata["upper_bound"]
    choices = field.metadata["choices"]
    if high is None:
        condition = f"at least {low}"
    else:
        condition = f"at most {high}" if low is None else f"between {low} and {high}"
    for item in value if kind(field)[0] is tuple else (value,):
        if choices and item not in choices:
            raise ValueError(
                f"`{field.name}` must be one of {tuple(choices)}. Received: {shown(item)}"
            )
        if (low is not None and not item >= low) or (high is not None and not item <= high):
            raise ValueError(f"`{field.name}` must be {condition}. Received: {shown(item)}")
        if isinstance(item, float) and not math.isfinite(item):
            raise ValueError(f"`{field.name}` must be a finite number. Received: {item}")
        if isinstance(item, int) and item not in INTEGERS:
            raise ValueError(
                f"`{field.name}` must fit into 64 bits, signed. Received: {shown(item)}"
            )


def group_of(field):
    """The group of `program_help` in which --help lists an option."""
    role = field.metadata["role"]
    if "no effect: " in field.metadata["help_text"].lower():
        return program_help.HIDDEN
    return field.metadata["group"] or _GROUPS_OF_ROLES.get(role, role)


def option_fields(options_class):
    """The `dataclasses.Field`s that are options; their metadata are the arguments of `option`.

    >>> from etcmodel import options
    >>> [field.name for field in options.option_fields(options.LengthOptions)]
    ['long_seq_length', 'global_seq_length']
    """
    return [field for field in dataclasses.fields(options_class) if "role" in field.metadata]


def aliases_of(options_class):
    """The aliases that the class and its bases declare: dict from alias to field name.

    >>> from etcmodel import options, training
    >>> options.aliases_of(training.TrainingConfig)
    {}
    """
    names = {field.name for field in option_fields(options_class)}
    found = {}
    for base in reversed(options_class.__mro__):
        found |= vars(base).get("aliases", {})
    return {alias: name for alias, name in found.items() if name in names}


def kind(field):
    """The type of an option's value (bool, int, float, str or tuple), and of a tuple's items."""
    annotation = next(iter(_without_none(field.type)))
    if typing.get_origin(annotation) is tuple:
        return tuple, typing.get_args(annotation)[0]
    return annotation, str


def is_optional(field):
    """Whether None is a valid value of the option."""
    return field.default is None or type(None) in typing.get_args(field.type)


def _without_none(annotation):
    if isinstance(annotation, types.UnionType):
        return [part for part in typing.get_args(annotation) if part is not type(None)]
    return [annotation]


def check_files(options):
    """Checks that the files named by the options exist.

    Raises:
        ValueError: naming the flag and the file.

    >>> from etcmodel import options
    >>> options.check_files(options.VocabularyOptions(vocab_file="vocab.txt"))
    >>> options.check_files(options.VocabularyOptions(vocab_file="vacab.txt"))
    Traceback (most recent call last):
        ...
    ValueError: --vocab_file: no such file: 'vacab.txt'
    """
    for field in option_fields(type(options)):
        path = getattr(options, field.name)
        if field.metadata["is_file"] and path and not _exists(path):
            raise ValueError(f"--{field.name}: no such file: {shortened(repr(path))}")


def _exists(path):
    if "://" not in path:
        return os.path.exists(path)
    import tensorflow as tf  # Takes seconds to import.

    return tf.io.gfile.exists(path)


def select(options, *roles):
    """Selects the options with one of these roles: dict from field name to value.

    >>> from etcmodel import options
    >>> options.select(options.LengthOptions(long_seq_length=512), "features", "inference")
    {'long_seq_length': 512, 'global_seq_length': 230}
    """
    return {
        field.name: getattr(options, field.name)
        for field in option_fields(type(options))
        if field.metadata["role"] in roles
    }


def shared(options_class, options):
    """Selects the options that a class shares with an instance: dict from field name to value.

    Args:
        options_class: dataclass whose options are wanted.
        options: instance of another dataclass of options.

    >>> from etcmodel import options
    >>> options.shared(options.LengthOptions, options.FeatureOptions(long_seq_length=512))
    {'long_seq_length': 512, 'global_seq_length': 230}
    """
    names = {field.name for field in option_fields(type(options))}
    wanted = [field.name for field in option_fields(options_class)]
    return {name: getattr(options, name) for name in wanted if name in names}


def kept_name(field):
    """The name under which runs and exports store an option.

    >>> from etcmodel import options
    >>> [options.kept_name(field) for field in options.option_fields(options.LengthOptions)]
    ['max_long_seq_length', 'max_global_seq_length']
    """
    return field.metadata["kept_as"] or field.name


def kept(options, *roles):
    """Like `select`, with the names under which runs and exports store options.

    >>> from etcmodel import options
    >>> options.kept(options.FeatureOptions(long_seq_length=512), "features")
    {'max_long_seq_length': 512, 'max_global_seq_length': 230, 'release_compatible': False}
    """
    values = select(options, *roles)
    fields = option_fields(type(options))
    return {kept_name(field): values[field.name] for field in fields if field.name in values}


def from_kept(options_class, values):
    """Renames stored options of runs, exports or records to their field names.

    Args:
        options_class: dataclass of options.
        values: dict. The parsed JSON; entries that are not options stay unchanged.
    Returns:
        dict of field name to value, with the `former_values` of options that are missing.

    >>> from etcmodel import options
    >>> options.from_kept(options.LengthOptions, {"long_seq_length": 512, "notes": ""})
    {'long_seq_length': 512, 'notes': ''}
    """
    names = {**aliases_of(options_class)}
    names |= {kept_name(field): field.name for field in option_fields(options_class)}
    found = {
        names.get(name, name): tuple(value) if isinstance(value, list) else value
        for name, value in values.items()
    }
    former = (vars(base).get("former_values", {}) for base in options_class.__mro__)
    return {**collections.ChainMap(*former), **found}
