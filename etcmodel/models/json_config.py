"""The base of encoder configs that are stored as JSON."""

import dataclasses
import json
import numbers
import os
import types
import typing
from collections.abc import Mapping

from etcmodel import bounded_json
from etcmodel.models import downloads

__all__ = [
    "JsonConfig",
    "check_not_quantized",
    "check_type",
    "json_object",
    "python_numbers",
    "read_text",
]

# NumPy's numbers are accepted like Python's, which they become: see `python_numbers`.
_ACCEPTED = {int: numbers.Integral, float: numbers.Real}


class JsonConfig:
    """The base of dataclasses that are stored as a JSON file beside a checkpoint.

    A config is a frozen dataclass with a class variable `model_type`, which is written to the file,
    and calls `check` in `__post_init__`.
    """

    model_type: typing.ClassVar[str]
    __dataclass_fields__: typing.ClassVar[dict[str, dataclasses.Field[typing.Any]]]

    @classmethod
    def of(cls, config: typing.Any) -> typing.Self:
        """A config of this class, from one or its dict.

        Raises:
            ValueError: if it is neither, or as of `from_dict`.
        """
        if isinstance(config, dict):
            config = cls.from_dict(config)
        if not isinstance(config, cls):
            raise ValueError(
                f"`config` must be a `{cls.__name__}` or its dict. Received: {config!r}"
            )
        return config

    @classmethod
    def from_dict(cls, given: Mapping[str, typing.Any]) -> typing.Self:
        """A config from a dict, whose `model_type` is ignored.

        Raises:
            ValueError: if an entry is missing, unknown or invalid.
        """
        entries = {name: value for name, value in given.items() if name != "model_type"}
        fields = {field.name: field for field in dataclasses.fields(cls)}
        if unknown := sorted(set(entries) - set(fields)):
            raise ValueError(f"Unknown entries of a {cls.__name__}: {', '.join(unknown)}")
        for name, field in fields.items():
            if name not in entries and _is_needed(field):
                raise ValueError(f"The config has no `{name}`. It has: {sorted(entries)}")
        return cls(**{name: _from_json(value) for name, value in entries.items()})

    @classmethod
    def from_json_file(cls, json_file: str | os.PathLike[str]) -> typing.Self:
        """Reads a JSON file.

        Raises:
            ValueError: naming the file, if it does not exist, or as of `from_json_string`.
        """
        return cls.from_json_string(read_text(json_file), source=json_file)

    @classmethod
    def from_json_string(
        cls, text: str | bytes, source: str | os.PathLike[str] = "config"
    ) -> typing.Self:
        """As `from_json_file`, from the text (str, or UTF-8); `source` names it in errors.

        Raises:
            ValueError: naming the source and, if it is not JSON, the position; or as of
                `from_dict`.
        """
        entries = json_object(text, source)
        try:
            return cls.from_dict(entries)
        except ValueError as error:
            raise ValueError(f"{source}: {error}") from None

    def to_dict(self) -> dict[str, typing.Any]:
        """dict of the entries, including `model_type`."""
        return {"model_type": self.model_type, **dataclasses.asdict(self)}

    def to_json_string(self) -> str:
        """JSON text, sorted and indented, with a newline at the end."""
        return json.dumps(self.to_dict(), indent=2, sort_keys=True) + "\n"

    def check(self) -> None:
        """Checks that a model can be built; subclasses add checks of their entries.

        NumPy's numbers become Python's, as JSON needs them.

        Raises:
            ValueError: naming the entry and its value, if it has a wrong type.
        """
        for field in dataclasses.fields(self):
            value = python_numbers(getattr(self, field.name))
            check_type(field, value)
            object.__setattr__(self, field.name, value)  # The dataclass is frozen.

    def check_at_least(self, least: Mapping[str, float]) -> None:
        """Raises ValueError, naming the entry, unless entries are at least so much.

        Args:
            least: dict of the entries' names to numbers.
        """
        for name, bound in least.items():
            if getattr(self, name) < bound:
                raise ValueError(
                    f"`{name}` must be at least {bound}. Received: {getattr(self, name)}"
                )

    def check_rates(self, *names: str) -> None:
        """Raises ValueError, naming the entry, unless the entries of these names are in [0, 1)."""
        for name in names:
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(
                    f"`{name}` must be at least 0 and below 1. Received: {getattr(self, name)}"
                )

    def check_multiple(self, name: str, *of_names: str) -> None:
        """Raises ValueError unless the entry of a name is a multiple of each of the others."""
        for of_name in of_names:
            if getattr(self, name) % getattr(self, of_name):
                raise ValueError(
                    f"`{name}` must be a multiple of `{of_name}`. Received: "
                    f"{getattr(self, name)}, {getattr(self, of_name)}"
                )


def read_text(path: str | os.PathLike[str]) -> bytes:
    """The bytes of a config file.

    Raises:
        ValueError: naming the path, if there is no such file.
    """
    import tensorflow as tf  # Takes seconds to import.

    if not tf.io.gfile.exists(path):
        hint = downloads.download_hint(path)
        raise ValueError(f"There is no config file {str(path)!r}. {hint}")
    if tf.io.gfile.isdir(path):
        raise ValueError(f"{str(path)!r} is a directory: give the path of a config file.")
    with tf.io.gfile.GFile(path, "rb") as file:
        return file.read(bounded_json.MAX_BYTES + 1)


def json_object(text: str | bytes, source: str | os.PathLike[str]) -> dict[str, typing.Any]:
    """The dict that a JSON text (str, or UTF-8) of a config holds.

    Raises:
        ValueError: naming the source, if the text is not a JSON object, or as of
            `check_not_quantized`.
    """
    entries = bounded_json.load_object(text, source)
    check_not_quantized(entries, source)
    return entries


def check_not_quantized(entries: Mapping[str, typing.Any], source: str | os.PathLike[str]) -> None:
    """Raises ValueError, naming the source, if a config says that the weights are quantized."""
    if (found := entries.get("quantization_config")) is not None:
        raise ValueError(
            f"{source}: `quantization_config` says that weights are quantized, which are not read. "
            f"Take the model in float32, float16 or bfloat16. Received: {str(found)[:100]}"
        )


def check_type(field: dataclasses.Field[typing.Any], value: typing.Any) -> None:
    """Raises ValueError, naming the entry of a config, if `value` is not of the field's type."""
    kinds: tuple[typing.Any, ...] = (field.type,)
    if isinstance(field.type, types.UnionType):
        kinds = typing.get_args(field.type)
    accepted = tuple(_ACCEPTED.get(kind, typing.get_origin(kind) or kind) for kind in kinds)
    if not isinstance(value, accepted) or (isinstance(value, bool) and bool not in kinds):
        wanted = " or ".join("null" if t is type(None) else t.__name__ for t in kinds)
        raise ValueError(f"`{field.name}` must be of type {wanted}. Received: {value!r}")


def python_numbers(value: typing.Any) -> typing.Any:
    """The value, with numbers of NumPy, also within lists and tuples, as Python's."""
    if type(value) in (list, tuple):
        return type(value)(map(python_numbers, value))
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return value
    return int(value) if isinstance(value, numbers.Integral) else float(value)


def _is_needed(field: dataclasses.Field[typing.Any]) -> bool:
    return field.default is field.default_factory is dataclasses.MISSING


def _from_json(value: typing.Any) -> typing.Any:
    return tuple(map(_from_json, value)) if isinstance(value, list) else value
