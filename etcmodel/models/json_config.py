"""The base of encoder configs that are stored as JSON."""

import dataclasses
import json
import math
import numbers
import os
import types
import typing
from collections.abc import Collection, Iterator, Mapping

from typing_extensions import Self

from etcmodel import bounded_json
from etcmodel.bounded_json import MAX_INT
from etcmodel.models import downloads, hugging_face
from etcmodel.shown_values import listed, shown

# NumPy's numbers are accepted like Python's, to which they are converted: see `python_numbers`.
_ACCEPTED = {int: numbers.Integral, float: numbers.Real}
_MAX_FLOAT = 3.4028234e38  # Of float32.
_RATE = "dropout"  # Names of rates contain it.
# The entries of BERT's config that are at least 1.
BERT_SIZES = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
)


class JsonConfig:
    """The base of dataclasses that are stored as a JSON file beside a checkpoint.

    A config is a frozen dataclass with a class variable `model_type`, which is written to the file.
    It is checked (`check`) when it is created, once lists are tuples where an entry is one. Numbers
    are finite and not negative, and rates, which have "dropout" in their names, are below 1.

    Attributes:
        needed: of the class: required entries, besides those without a default.
        at_least_1: of the class: entries that must be positive, or None where None is allowed.
        without_effect: of the class: entries of files that do not change what a model computes. All
            other entries that are not fields are refused.
        only: of the class: dict of such entries to the only values they may have, the usual one
            first.
        ours: of the class: entries that are not Hugging Face's: files include them where they are
            not the defaults.
        at_calls: of the class: fields that a model reads at every call. They may change after the
            model is built: assign its `config` a changed copy, or the field of one that is not
            frozen.

    >>> from etcmodel.models import json_config
    >>> issubclass(etcmodel.LedConfig, json_config.JsonConfig), etcmodel.LedConfig.model_type
    (True, 'led')
    """

    model_type: typing.ClassVar[str]
    needed: typing.ClassVar[tuple[str, ...]] = ()
    at_least_1: typing.ClassVar[tuple[str, ...]] = ()
    without_effect: typing.ClassVar[frozenset[str]] = hugging_face.WITHOUT_EFFECT
    only: typing.ClassVar[Mapping[str, tuple[typing.Any, ...]]] = hugging_face.ONLY
    ours: typing.ClassVar[tuple[str, ...]] = ()
    at_calls: typing.ClassVar[tuple[str, ...]] = ()
    __dataclass_fields__: typing.ClassVar[dict[str, dataclasses.Field[typing.Any]]]

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            if tuple in (field.type, *typing.get_args(field.type)):
                object.__setattr__(self, field.name, _as_tuples(getattr(self, field.name)))
        self.check()

    @classmethod
    def of(cls, config: typing.Any) -> Self:
        """Returns a config of this class, given one or its dict.

        Raises:
            ValueError: if it is neither, or see `of_entries`.
        """
        if isinstance(config, dict):
            config = cls.of_entries(config)
        if not isinstance(config, cls):
            raise ValueError(
                f"`config` must be a `{cls.__name__}` or its dict. Received: {shown(config)}"
            )
        return config

    @classmethod
    def from_dict(cls, given: Mapping[str, typing.Any]) -> Self:
        """Creates a config from a dict, such as a file's content; its `model_type` is ignored.

        Raises:
            ValueError: if an entry is missing or invalid, or unknown: it may change what the model
                computes.

        >>> etcmodel.GmatConfig.from_dict({"chunk_size": 256, "num_memory_tokens": 32}).chunk_size
        256
        """
        fields = {field.name: field for field in dataclasses.fields(cls)}
        check_others(given, fields, cls.without_effect, cls.only)
        for name, field in fields.items():
            if name not in given and (name in cls.needed or _is_needed(field)):
                raise ValueError(f"The config has no `{name}`. It has: {shown(sorted(given))}")
        return cls(**{name: _as_tuples(value) for name, value in given.items() if name in fields})

    @classmethod
    def of_entries(cls, given: Mapping[str, typing.Any]) -> Self:
        """Like `from_dict`, for loading: unknown entries are refused by subclasses, too."""
        return cls.from_dict(given)

    @classmethod
    def from_json_file(cls, json_file: str | os.PathLike[str]) -> Self:
        """Reads a JSON file.

        Raises:
            ValueError: naming the file, if it does not exist; see also `from_json_string`.

        >>> config = etcmodel.EtcConfig.from_json_file("my_model/config.json")
        >>> config.hidden_size, config.vocab_size
        (12, 128)
        """
        return cls.from_json_string(read_text(json_file), source=json_file)

    @classmethod
    def from_json_string(cls, text: str | bytes, source: str | os.PathLike[str] = "config") -> Self:
        """Like `from_json_file`, from the text (str, or UTF-8); `source` names it in errors.

        Raises:
            ValueError: naming the source and, if it is not JSON, the position; see also
                `of_entries`.
        """
        entries = json_object(text, source)
        try:
            return cls.of_entries(entries)
        except ValueError as error:
            raise ValueError(f"{source}: {error}") from None

    def to_dict(self) -> dict[str, typing.Any]:
        """Returns the entries as a dict, including `model_type`.

        >>> etcmodel.GmatConfig(chunk_size=256).to_dict()["model_type"]
        'gmat'
        """
        entries = {"model_type": self.model_type, **dataclasses.asdict(self)}
        for field in dataclasses.fields(self):
            if field.name in self.ours and entries[field.name] == field.default:
                del entries[field.name]
        return entries

    def to_json_string(self) -> str:
        """Returns JSON text, sorted and indented, with a newline at the end.

        >>> text = etcmodel.GmatConfig(chunk_size=256).to_json_string()
        >>> text.splitlines()[:3]
        ['{', '  "attention_probs_dropout_prob": 0.1,', '  "chunk_size": 256,']
        """
        return json.dumps(self.to_dict(), indent=2, sort_keys=True) + "\n"

    def check(self) -> None:
        """Checks that a model can be built; subclasses add checks that involve several entries.

        NumPy's numbers become Python's, as JSON requires.

        Raises:
            ValueError: naming the entry and its value, if it has a wrong type or is out of range.
        """
        self.check_entries()

    def check_entries(self, but: Collection[str] = ()) -> None:
        """Checks each entry by itself, except those named in `but`."""
        for field in dataclasses.fields(self):
            if field.name in but:
                continue
            value = python_numbers(getattr(self, field.name))
            check_entry(field, value, least=int(field.name in self.at_least_1))
            object.__setattr__(self, field.name, value)  # The dataclass is frozen.

    def check_multiple(self, name: str, *of_names: str) -> None:
        """Raises ValueError unless the entry `name` is a multiple of each of the others."""
        for of_name in of_names:
            if getattr(self, name) % getattr(self, of_name):
                raise ValueError(
                    f"`{name}` must be a multiple of `{of_name}`. Received: "
                    f"{getattr(self, name)}, {getattr(self, of_name)}"
                )


class BertConfig(JsonConfig):
    """The base of configs with BERT's entries, whose `hidden_act` has one of Hugging Face's names.

    >>> from etcmodel.models import json_config
    >>> issubclass(etcmodel.GmatConfig, json_config.BertConfig)
    True
    """

    hidden_act: str

    def check(self) -> None:
        """See `JsonConfig`."""
        super().check()
        self.check_multiple("hidden_size", "num_attention_heads")
        if self.hidden_act != type(self).hidden_act:  # The default is known.
            from etcmodel import tensor_utils  # With TensorFlow, which takes seconds to import.

            tensor_utils.get_activation(self.activation)  # Refuses unknown names.

    def stack_options(self) -> dict[str, typing.Any]:
        """Arguments of `layers.stack.TransformerStack`, but for the number of layers: dict."""
        from etcmodel import tensor_utils

        same = (
            "num_attention_heads",
            "hidden_dropout_prob",
            "attention_probs_dropout_prob",
            "initializer_range",
            "grad_checkpointing_period",
        )
        return {
            **{name: getattr(self, name) for name in same},
            "hidden_act": tensor_utils.get_activation(self.activation),
            "layer_norm_epsilon": typing.cast(typing.Any, self).layer_norm_eps,
        }

    @property
    def activation(self) -> typing.Any:
        """str. `hidden_act` by the name that it has in `tensor_utils.get_activation`."""
        return hugging_face.ACTIVATIONS.get(self.hidden_act, self.hidden_act)


def check_changes(config_class: typing.Any, changes: Collection[str]) -> None:
    """Raises ValueError, naming the entry, if a class of configs lacks one that is to be changed.

    Args:
        config_class: class of a config, or a config.
        changes: names of entries.
    """
    known = {field.name for field in dataclasses.fields(config_class)}
    if unknown := sorted(set(changes) - known):
        raise ValueError(f"A config of type {config_class.model_type!r} has no `{unknown[0]}`.")


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
    """Parses the JSON text (str, or UTF-8) of a config: dict.

    Raises:
        ValueError: naming the source, if the text is not a JSON object; see also
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
            f"Take the model in float32, float16 or bfloat16. Received: {shown(found)}"
        )


def check_others(
    given: Mapping[str, typing.Any],
    known: Collection[str],
    without_effect: Collection[str] = hugging_face.WITHOUT_EFFECT,
    only: Mapping[str, tuple[typing.Any, ...]] = hugging_face.ONLY,
) -> None:
    """Checks the entries of a config that a model does not use.

    Args:
        given: dict of a config's entries.
        known: names of the entries that are used.
        without_effect, only: see `JsonConfig`.
    Raises:
        ValueError: naming the entries and their values, if one is unknown or changes what the model
            computes.
    """
    hugging_face.check_descriptions(given)
    others = {name: value for name, value in given.items() if name not in known}
    for name, allowed in only.items():
        if name in others and others[name] not in allowed:
            raise ValueError(
                f"`{name}` must be {allowed[0]!r}, since there is nothing else here. Received: "
                f"{shown(others[name])}"
            )
    if unknown := sorted(set(others) - {*without_effect, *only, "model_type"}):
        values = [f"{name:.50}={shown(others[name])}" for name in unknown]
        raise ValueError(
            f"unknown settings, which may change what the model computes: {listed(values)}. Remove "
            "those that do not from the file"
        )


def check_entry(field: dataclasses.Field[typing.Any], value: typing.Any, least: float = 0) -> None:
    """Raises ValueError, naming an entry, if it has a wrong type or is out of range.

    Args:
        field: a dataclass field, or another object with a `name` and a `type`. A name with
            "dropout" denotes a rate, below 1.
        value: the entry's value. Numbers in tuples are checked, too.
        least: number. The lower bound.
    """
    check_type(field, value)
    for number in _numbers_in(value):
        if _RATE in field.name and field.type is not int and not 0 <= number < 1:
            raise ValueError(
                f"`{field.name}` must be at least 0 and below 1. Received: {shown(value)}"
            )
        if not least <= number < math.inf:
            raise ValueError(f"`{field.name}` must be at least {least}. Received: {shown(value)}")
        most = MAX_INT if isinstance(number, numbers.Integral) else _MAX_FLOAT
        if number > most:
            raise ValueError(f"`{field.name}` must be at most {most}. Received: {shown(value)}")


def check_finite(name: str, value: typing.Any) -> None:
    """Raises ValueError, naming an entry, if it is a float that is NaN or infinite."""
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"`{name}` must be a finite number. Received: {value}")


def check_type(field: dataclasses.Field[typing.Any], value: typing.Any) -> None:
    """Raises ValueError, naming the entry of a config, if `value` is not of the field's type."""
    kinds: tuple[typing.Any, ...] = (field.type,)
    if isinstance(field.type, types.UnionType):
        kinds = typing.get_args(field.type)
    if not any(_is_of(value, kind) for kind in kinds):
        if typing.get_origin(field.type) is typing.Literal:
            allowed = list(typing.get_args(field.type))
            raise ValueError(f"`{field.name}` must be one of {allowed}. Received: {shown(value)}")
        wanted = " or ".join(map(_kind_name, kinds))
        raise ValueError(f"`{field.name}` must be of type {wanted}. Received: {shown(value)}")


def can_check(kind: typing.Any) -> bool:
    """Returns whether `check_type` knows a type; arguments of users' classes may have any."""
    if isinstance(kind, types.UnionType):
        return all(map(can_check, typing.get_args(kind)))
    is_plain = kind in (int, float, bool, str, type(None))
    return is_plain or typing.get_origin(kind) in (tuple, typing.Literal)


def _is_of(value: typing.Any, kind: typing.Any) -> bool:
    if typing.get_origin(kind) is tuple and typing.get_args(kind)[1:] == (...,):
        (of_each, _) = typing.get_args(kind)
        return isinstance(value, tuple) and all(_is_of(x, of_each) for x in value)
    if typing.get_origin(kind) is typing.Literal:
        return value in typing.get_args(kind)
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, _ACCEPTED.get(kind, typing.get_origin(kind) or kind))


def _kind_name(kind: typing.Any) -> str:
    if typing.get_origin(kind) is tuple:
        return f"list of {_kind_name(typing.get_args(kind)[0])}"
    return "null" if kind is type(None) else str(kind.__name__)


def _numbers_in(value: typing.Any) -> Iterator[typing.Any]:
    if isinstance(value, tuple):
        for x in value:
            yield from _numbers_in(x)
    elif isinstance(value, numbers.Real) and not isinstance(value, bool):
        yield value


def python_numbers(value: typing.Any) -> typing.Any:
    """Returns the value with NumPy's numbers, also within lists and tuples, as Python's."""
    if type(value) in (list, tuple):
        return type(value)(map(python_numbers, value))
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return value
    return int(value) if isinstance(value, numbers.Integral) else float(value)


def _is_needed(field: dataclasses.Field[typing.Any]) -> bool:
    return field.default is field.default_factory is dataclasses.MISSING


def _as_tuples(value: typing.Any) -> typing.Any:
    return tuple(map(_as_tuples, value)) if isinstance(value, (list, tuple)) else value
