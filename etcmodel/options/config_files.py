"""Reads YAML files of options, checking every key and value, and writes such files."""

import contextlib
import dataclasses
import difflib
import functools

import yaml

from etcmodel import bounded_yaml
from etcmodel.options import fields
from etcmodel.shown_values import shortened, shown

_TYPES = {
    bool: ((bool,), "true or false"),
    int: ((int,), "an integer"),
    float: ((int, float), "a number"),
    str: ((str,), "text (in quotes, if YAML reads it as something else)"),
}


def load(path, sections, aliases=None):
    """Reads the options in a YAML file.

    Args:
        path: str. Local, or remote (`gs://…`).
        sections: dict from a section's name to its class of options. An option may be inside its
            section or at the top level: `training: {learning_rate: 1.0e-4}` or `learning_rate:
            1.0e-4`.
        aliases: dict from an alias to the name of an option.
    Returns:
        dict of name to value.
    Raises:
        ValueError: in one line that names the file and the key, for a file that is not there or is
            malformed, an option that does not exist (with the nearest that does) or has two
            different values, and a value that is none of it.

    >>> from etcmodel import options
    >>> with open("run.yaml", "w") as file:
    ...     _ = file.write("lengths: {long_seq_length: 512}")
    >>> options.load("run.yaml", {"lengths": options.LengthOptions})
    {'long_seq_length': 512}
    """
    content = read_mapping(path)
    found, keys = {}, {}
    for key, value in _flat(content, sections, path):
        is_section = isinstance(value, dict) and "." not in key
        field = find_option(key, sections, aliases or {}, path, is_section=is_section)
        value = checked(field, value, key, path)
        if found.setdefault(field.name, value) != value:
            raise ValueError(
                f"{path}: `{keys[field.name]}` and `{key}` are one option with two values: "
                f"{shown(found[field.name])} and {shown(value)}. Give one of them."
            )
        keys[field.name] = key
    return found


def load_kept(options_class, values, source):
    """Like `from_kept`, for options stored in a file, such as an export's; checks every value.

    Args:
        options_class: dataclass of options.
        values: dict. The parsed JSON.
        source: str. The file, for error messages.
    Returns:
        dict of field name to value.
    Raises:
        ValueError: naming the file and the entry, for an unknown option or an invalid value.

    >>> from etcmodel import options
    >>> options.load_kept(options.LengthOptions, {"long_seq_length": 512}, "settings.json")
    {'long_seq_length': 512}
    """
    known = {field.name: field for field in fields.option_fields(options_class)}
    found = {}
    for name, value in fields.from_kept(options_class, values).items():
        if name not in known:
            raise ValueError(f"{source}: there is no option `{shortened(name, 100)}`.")
        found[name] = checked(known[name], _plain(value), name, source)
    return found


def dump(sections):
    """Formats options as YAML that `load` can read.

    Args:
        sections: dict from a section's name to an instance of its class, or to a dict from an
            option's name to its value.
    Returns:
        str.

    >>> from etcmodel import options
    >>> print(options.dump({"lengths": options.LengthOptions(long_seq_length=512)}))
    lengths:
      long_seq_length: 512
      global_seq_length: 230
    """
    content = {}
    for section, values in sections.items():
        if dataclasses.is_dataclass(values):
            values = fields.select(values, *fields.ROLES)
        content[section] = {name: _plain(value) for name, value in values.items()}
    return yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=1000)


def find_option(key, sections, aliases, source, *, is_section=False):
    """Finds the field that a key refers to.

    Args:
        key: str. An option's name or alias, optionally prefixed by its section's name and a dot.
        sections, aliases: as in `load`.
        source: str. The origin of the key, for error messages.
        is_section: bool. Whether the key has options below it, as a section does.
    Raises:
        ValueError: if there is no such field; names the nearest option or section.
    """
    known, homes = _known(tuple(sections.items()), tuple(aliases.items()))
    if key in known:
        return known[key]
    nearest = homes.get(key.rpartition(".")[2])  # In another section.
    key = shortened(key, 100)  # Comparing long strings is slow.
    names = sections if is_section else [*known, *sections]
    nearest = nearest or difflib.get_close_matches(key, names, n=1, cutoff=0.0)[0]
    kind = "section" if is_section else "option"
    of_other_kind = "the section " * (nearest in sections and not is_section)
    raise ValueError(
        f"{source}: there is no {kind} `{key}`. The nearest is {of_other_kind}`{nearest}`."
    )


@functools.lru_cache
def _known(sections, aliases):
    """(fields by their names, with and without a section, and aliases; names with a section)."""
    known, homes = {}, {}
    for section, options_class in sections:
        for field in fields.option_fields(options_class):
            others = [alias for alias, name in aliases if name == field.name]
            for name in (field.name, *others):
                known[name] = known[f"{section}.{name}"] = field
                homes[name] = f"{section}.{name}"
    return known, homes


def read_mapping(path, flag="--config", lines=None):
    """Reads the mapping in a YAML file, which must not repeat keys: dict.

    Args:
        path: str. Local, or remote (`gs://…`).
        flag: str. The flag that named the file, for error messages.
        lines: dict that gets the lines of keys, or None: see `bounded_yaml.loads`.
    Raises:
        ValueError: in one line that names the file, if it is missing or contains something else.
    """
    content = bounded_yaml.loads(_read(path, flag), path, lines)
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise ValueError(f"{path}: must be a mapping of options to values, as `name: value`.")
    return content


def _read(path, flag):
    """The first bytes of a file, up to one more than the allowed size."""
    try:
        if "://" in path:
            import tensorflow as tf  # Takes seconds to import.

            with tf.io.gfile.GFile(path, "rb") as file:
                return file.read(bounded_yaml.MAX_BYTES + 1)
        with open(path, "rb") as file:
            return file.read(bounded_yaml.MAX_BYTES + 1)
    except FileNotFoundError as error:
        raise ValueError(f"{flag}: no such file: {path!r}") from error


def _flat(content, sections, path):
    """Yields (key, value) for each option; the key is as in the file, with its section."""
    for key, value in content.items():
        if key not in sections:
            yield str(key), value
        elif isinstance(value, dict):
            yield from ((f"{key}.{name}", item) for name, item in value.items())
        elif value is not None:
            raise ValueError(
                f"{path}: `{key}` is a section: give its options, as `name: value`. "
                f"Received: {shown(value)}"
            )


def checked(field, value, key, path):
    """Checks and converts the value of an option from a file.

    Args:
        field: `dataclasses.Field` of an option.
        value: the parsed YAML or JSON value.
        key, path: str. Its name there, and the file, for error messages.
    Raises:
        ValueError: naming both, if the value is invalid for the option.

    >>> from etcmodel import options
    >>> (_, field) = options.option_fields(options.ModelOptions)
    >>> options.checked(field, "three", "grad_checkpointing_period", "run.yaml")
    Traceback (most recent call last):
        ...
    ValueError: run.yaml: `grad_checkpointing_period` must be an integer. Received: 'three'
    """
    what = f"{path}: `{key}`"
    if value is None:
        if not fields.is_optional(field):
            raise ValueError(f"{what} must have a value.")
        return None
    kind, item_type = fields.kind(field)
    if kind is tuple:
        items = value.split(",") if isinstance(value, str) else value
        if not isinstance(items, list | tuple):
            raise ValueError(f"{what} must be a list. Received: {shown(value)}")
        value = tuple(_as(item_type, item, f"{what}, each item,") for item in items)
    else:
        value = _as(kind, value, what)
    try:
        fields.check_value(field, value)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    return value


def _as(kind, value, what):
    allowed, name = _TYPES[kind]
    if kind is float:
        allowed = (*allowed, str)  # YAML reads 1e-4, without a point, as text.
    if isinstance(value, allowed) and (kind is bool or not isinstance(value, bool)):
        with contextlib.suppress(ValueError, OverflowError):
            return kind(value)
    raise ValueError(f"{what} must be {name}. Received: {shown(value)}")


def _plain(value):
    return list(value) if isinstance(value, tuple) else value
