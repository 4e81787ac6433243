"""The registry of encoders, by the `model_type` of their configs.

Tasks, programs and checkpoints work with an `Encoder` and its `EncoderConfig`, whose classes are
chosen by the `model_type` in a config's JSON. A type is registered below, or elsewhere by
`register`.
"""

import dataclasses
import os
import typing

import tensorflow as tf

from etcmodel import shown_values
from etcmodel.models import (
    bigbird,
    bigbird_pegasus,
    gmat,
    json_config,
    led,
    longformer,
    longformer_char_lm,
    longt5,
    modernbert,
    pegasus_x,
    systems,
)
from etcmodel.models.config import LIFTING_ADVICE, EtcConfig
from etcmodel.models.modeling import EtcModel


class EncoderConfig(typing.Protocol):
    """Sizes and options of an encoder: a dataclass (see `json_config.JsonConfig`).

    Attributes:
        model_type: str, a class attribute. The registered type.
        vocab_size: int. Token ids are below it.
        hidden_size: int. Size of the hidden states.
        initializer_range: float. Standard deviation of initial weights, also of heads.
        hidden_dropout_prob: float.
        pad_token_id: int. The id that padding gets in batches of programs and in pre-training; a
            system that reads neither needs none.
    """

    model_type: typing.ClassVar[str]
    vocab_size: int
    hidden_size: int
    initializer_range: float
    hidden_dropout_prob: float
    pad_token_id: int

    @classmethod
    def from_dict(cls, entries):
        """Creates a config from a dict; raises ValueError, naming the entry, if one is invalid."""

    def to_dict(self):
        """Returns the dict that `from_dict` takes; it can be written as JSON."""

    def to_json_string(self):
        """Returns the content of the config's file: str."""

    def check(self):
        """Raises ValueError, naming the entries, if no model can be built."""


@typing.runtime_checkable
class Encoder(typing.Protocol):
    """A Keras layer from token ids to hidden states: the interface for reading and writing weights.

    Its class takes the config, and options by keyword. Its default name is the scope of its
    `systems.System`. A subclass of this protocol, such as `GlobalLocalEncoder`, defines the call.

    Attributes:
        config: `EncoderConfig`, the encoder's own copy.
    """

    config: EncoderConfig

    def build(self, input_shape):
        """Creates all variables; their sizes depend on the config, not on the shape."""

    def get_token_embedding_table(self):
        """Returns the table of token embeddings: variable [vocab_size, embedding_size]."""


class GlobalLocalEncoder(Encoder, typing.Protocol):
    """An encoder of a long and a global input: the interface for tasks and pre-training."""

    def __call__(
        self,
        token_ids,
        global_token_ids,
        *,
        segment_ids=None,
        global_segment_ids=None,
        structure=None,
        training=None,
    ):
        """Encodes both inputs, like `EtcModel`.

        Args:
            token_ids, segment_ids: int [batch, long_len]; segments may be None.
            global_token_ids, global_segment_ids: int [batch, global_len]; likewise.
            structure: `ops.structure.GlobalLocalStructure`, or None.
            training: bool.
        Returns:
            (long_output, global_output): float [batch, long_len, hidden_size] and [batch,
            global_len, hidden_size].
        """


CONFIG_FILE = "config.json"  # In a folder with one model; BERT's config has this name, too.
RELEASE_CONFIG_FILE = "etc_config.json"
_DEFAULT = EtcConfig.model_type  # For configs without a type, such as the release's.
EncoderType = systems.System
register, registered_types = systems.register, systems.registered


def encoder_type(model_type, source="config"):
    """Returns the `EncoderType` of a `model_type`.

    Args:
        model_type: str, or None for ETC; any other value from a file is unknown.
        source: str. Where the type is from, for error messages.
    Raises:
        ValueError: naming the source and the known types, if the type is unknown.
    """
    if (found := systems.find(_DEFAULT if model_type is None else model_type)) is None:
        known = ", ".join(map(repr, sorted(x.model_type for x in systems.registered())))
        raise ValueError(
            f"{source}: There is no encoder of `model_type` {shown_values.shown(model_type)}; the "
            f"known types are {known}. Import yours first. {LIFTING_ADVICE}"
        )
    return found


def config_from_dict(entries, source="config"):
    """Creates an `EncoderConfig` from a dict, in the class for its `model_type`.

    Args:
        entries: dict, as from `EncoderConfig.to_dict`. Without a type it is an `EtcConfig`'s.
        source: str. Where the dict is from, for error messages.
    Raises:
        ValueError: naming the source, if the type is unknown or an entry is invalid.
    """
    config_class = encoder_type(entries.get("model_type"), source).config_class
    try:
        return config_class.of_entries(entries)
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from None


def config_from_json_string(text, source="config"):
    """Like `config_from_dict`, from JSON text."""
    return config_from_dict(json_config.json_object(text, source), source)


def read_config(path):
    """Like `config_from_dict`, from a JSON file; also raises ValueError if it does not exist."""
    return config_from_json_string(json_config.read_text(path), path)


def config_file_in(directory):
    """Returns the path of the config in a checkpoint's directory; None if there is none.

    A `config.json` counts only if its `model_type` is registered.
    """
    paths = [os.path.join(directory, name) for name in config_file_names()]
    if found := next(filter(tf.io.gfile.exists, paths), None):
        return found
    path = os.path.join(directory, CONFIG_FILE)
    if not tf.io.gfile.exists(path):
        return None
    entries = json_config.json_object(json_config.read_text(path), path)
    return path if systems.find(entries.get("model_type")) else None


def config_file_names():
    """Returns the names of the config files of all types: tuple of str."""
    return tuple(dict.fromkeys(known.config_file for known in systems.registered()))


def replace(config, **changes):
    """Returns a copy of a config with some entries changed.

    Raises:
        ValueError: naming the entry, if configs of this type have no such entry.
    """
    json_config.check_changes(config, changes)
    return dataclasses.replace(config, **changes)


def make_encoder(config, **options):
    """Creates an `Encoder`, not yet built.

    Args:
        config: `EncoderConfig`.
        **options: further arguments of the encoder's class.
    """
    return encoder_type(config.model_type).encoder_class(config, **options)


def make_global_local_encoder(config, **options):
    """Creates a `GlobalLocalEncoder`, not yet built, like `make_encoder`.

    Raises:
        ValueError: naming the config's type, if its encoders have no global input.

    >>> from etcmodel.models import encoders
    >>> config = etcmodel.EtcConfig(128, hidden_size=12, num_hidden_layers=1)
    >>> type(encoders.make_global_local_encoder(config)).__name__
    'EtcModel'
    """
    check_global_local(config)
    return make_encoder(config, **options)


def check_global_local(config):
    """Raises ValueError, naming the config's type, if its encoders have no global input."""
    if not _is_global_local(encoder_type(config.model_type)):
        fit = [x.model_type for x in systems.registered() if _is_global_local(x)]
        raise ValueError(
            "This model needs an encoder of a long and a global input, of `model_type` "
            f"{' or '.join(map(repr, fit))}. Received a config of type {config.model_type!r}."
        )


def has_global_input(config):
    """Whether encoders of a config's type are each a `GlobalLocalEncoder`."""
    return _is_global_local(systems.find(config.model_type))


def _is_global_local(system):
    # `issubclass` does not support protocols with attributes.
    return GlobalLocalEncoder in system.protocol.__mro__


def check_one_sequence(config):
    """Raises ValueError, naming the config's type, if its encoders have a global input, too."""
    if has_global_input(config):
        raise ValueError(
            "This model needs an encoder of one sequence. Received a config of type "
            f"{config.model_type!r}, which has a global input, too."
        )


def build_encoder(config, **options):
    """Creates an encoder like `make_encoder`, and builds it in its own name scope."""
    encoder = make_encoder(config, **options)
    with tf.name_scope(encoder.name):
        encoder.build(None)
    return encoder


register(
    EncoderType(
        config_class=EtcConfig,
        encoder_class=EtcModel,
        scope="etc_document_bert",
        protocol=GlobalLocalEncoder,
        config_file=RELEASE_CONFIG_FILE,
        unscoped_parts=("position_emb_lookup_long", "position_emb_lookup_global"),
        parts=(
            "token_emb_lookup",
            "segment_emb_lookup",
            "long_emb_layer_norm",
            "global_emb_layer_norm",
            "global_local_transformer_layers",
        ),
        classifier="etcmodel.models.sequence_classifiers:etc_classifier",
        span_reader="etcmodel.models.span_readers:etc_span_reader",
        tagger="etcmodel.models.token_classifiers:EtcTagger",
        watched="etcmodel.inspection.attention:of_etc",
        has_layer_rates=True,
        small={**systems.SMALL_BERT, "local_radius": 28, "relative_pos_max_distance": 12},
    )
)
for _package in (
    longformer,
    gmat,
    longformer_char_lm,
    led,
    longt5,
    pegasus_x,
    bigbird,
    bigbird_pegasus,
    modernbert,
):
    for _system in _package.SYSTEMS:
        register(_system)
