"""YAML files of options: read with every key and value checked, and written to be read again."""

import contextlib
import dataclasses
import difflib

import yaml

from etcmodel import bounded_yaml
from etcmodel.options import fields
from etcmodel.shown_values import shortened, shown

__all__ = ["checked", "dump", "find_option", "load", "load_kept", "read_mapping"]

_TYPES = {
    bool: ((bool,), "true or false"),
    int: ((int,), "an integer"),
    float: ((int, float), "a number"),
    str: ((str,), "text (in quotes, if YAML reads it as something else)"),
}


def load(path, sections, aliases=None):
    """The options of a YAML file.

    Args:
        path: str. Local, or remote (`gs://…`).
        sections: dict of a section's name to its class of options. An option stands in its section
            or alone: `training: {learning_rate: 1.0e-4}` or `learning_rate: 1.0e-4`.
        aliases: dict of a further name to that of an option.
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
    """What was kept of options, such as with an export: as `from_kept`, with every value checked.

    Args:
        options_class: dataclass of options.
        values: dict that JSON held.
        source: str. The file, for errors.
    Returns:
        dict of field name to value.
    Raises:
        ValueError: naming the file and the entry, for one that is no option, or no value of it.

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
    """A YAML file that `load` reads back.

    Args:
        sections: dict of a section's name to an instance of its class, or to a dict of an option's
            name to its value.
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
    """The field that a key means.

    Args:
        key: str. An option's name or alias, also behind its section's name and a dot.
        sections, aliases: as of `load`.
        source: str. What to call the place of the key in an error.
        is_section: bool. Whether the key has options below it, as that of a section has.
    Raises:
        ValueError: if there is none; names the nearest option or section.
    """
    known, homes = {}, {}
    for section, options_class in sections.items():
        for field in fields.option_fields(options_class):
            others = [alias for alias, name in aliases.items() if name == field.name]
            for name in (field.name, *others):
                known[name] = known[f"{section}.{name}"] = field
                homes[name] = f"{section}.{name}"
    if key in known:
        return known[key]
    nearest = homes.get(key.rpartition(".")[2])  # In another section.
    key = shortened(key, 100)  # Comparing with what is long takes long.
    names = sections if is_section else [*known, *sections]
    nearest = nearest or difflib.get_close_matches(key, names, n=1, cutoff=0.0)[0]
    kind = "section" if is_section else "option"
    of_other_kind = "the section " * (nearest in sections and not is_section)
    raise ValueError(
        f"{source}: there is no {kind} `{key}`. The nearest is {of_other_kind}`{nearest}`."
    )


def read_mapping(path, flag="--config"):
    """The mapping of a YAML file, in which no key stands twice: dict.

    Args:
        path: str. Local, or remote (`gs://…`).
        flag: str. What gave the file, for an error.
    Raises:
        ValueError: in one line that names the file, if it is not there or holds something else.
    """
    content = bounded_yaml.loads(_read(path, flag), path)
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise ValueError(f"{path}: must be a mapping of options to values, as `name: value`.")
    return content


def _read(path, flag):
    """The first bytes of a file, one more than it may have."""
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
    """Yields (key, value) of each option, the key as the file has it, with its section."""
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
    """The value of an option as a file has it.

    Args:
        field: `dataclasses.Field` of an option.
        value: what YAML or JSON held.
        key, path: str. Its name there, and the file, for errors.
    Raises:
        ValueError: naming both, if it is no value of the option.

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
        allowed = (*allowed, str)  # YAML takes 1e-4, without a point, for text.
    if isinstance(value, allowed) and (kind is bool or not isinstance(value, bool)):
        with contextlib.suppress(ValueError, OverflowError):
            return kind(value)
    raise ValueError(f"{what} must be {name}. Received: {shown(value)}")


def _plain(value):
    return list(value) if isinstance(value, tuple) else value
