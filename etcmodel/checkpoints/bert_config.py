"""Converts the config of BERT or RoBERTa to that of an ETC with the same outputs."""

import dataclasses
import types

from etcmodel import shown_values
from etcmodel.models import encoders, hugging_face, json_config
from etcmodel.models.config import EtcConfig

__all__ = [
    "ROBERTA_TYPES",
    "TYPES",
    "activation",
    "check",
    "check_type",
    "etc_config",
    "with_structure",
]

ROBERTA_TYPES = ("roberta", "xlm-roberta", "camembert")
TYPES = ("bert", *ROBERTA_TYPES)
# Names of entries in `EtcConfig`.
_NAMES = {
    "vocab_size": "vocab_size",
    "type_vocab_size": "segment_vocab_size",
    "hidden_size": "hidden_size",
    "num_hidden_layers": "num_hidden_layers",
    "num_attention_heads": "num_attention_heads",
    "intermediate_size": "intermediate_size",
    "hidden_dropout_prob": "hidden_dropout_prob",
    "attention_probs_dropout_prob": "attention_probs_dropout_prob",
    "initializer_range": "initializer_range",
    "layer_norm_eps": "layer_norm_epsilon",
    "pad_token_id": "pad_token_id",
}
_NEEDED = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "max_position_embeddings",
)
_OF_ETC = {field.name: field for field in dataclasses.fields(EtcConfig)}
_WITHOUT_EFFECT = hugging_face.WITHOUT_EFFECT | {
    # The pooler is not part of the encoder.
    "pooler_fc_size",
    "pooler_num_attention_heads",
    "pooler_num_fc_layers",
    "pooler_size_per_head",
    "pooler_type",
}
_ROBERTA_PADDING_ROWS = 2
_LONGER = 8  # The ETC's default table of positions is so many times as long.


def activation(entries, is_hugging_face):
    """Returns the activation's name in `EtcConfig`.

    Hugging Face's "gelu" is exact; that of the original BERT is the tanh approximation.

    Args:
        entries: dict, a BERT's config.
        is_hugging_face: bool. Whether the weights are Hugging Face's.
    """
    name = entries.get("hidden_act", "gelu")
    return hugging_face.ACTIVATIONS.get(name, name) if is_hugging_face else name


def check_type(entries, source):
    """Checks that a config is one of BERT's family.

    Args:
        entries: dict. Without a `model_type` it counts as BERT's.
        source: str. The entries' origin, for errors.
    Raises:
        ValueError: naming the type and the supported ones, if it is another.
    """
    if entries.get("model_type", "bert") not in TYPES:
        types = ", ".join(map(repr, (*TYPES, *(x.model_type for x in encoders.registered_types()))))
        raise ValueError(
            f"{source}: models of type {shown_values.shown(entries['model_type'])} cannot be read. "
            f"Those that can are {types}"
        )


def etc_config(entries, *, is_roberta, is_hugging_face, source):
    """Returns the `EtcConfig` of an ETC with the weights of a BERT.

    The long input is BERT's only input. A token attends to all others within the length of BERT's
    table of positions on each side, so that texts that BERT can read give BERT's own outputs; the
    table is 8 times as long (see `lift_bert`); there are no relative labels, and default structures
    have no global tokens. All attention pieces share BERT's projections.

    Args:
        entries: dict, a `config.json` or `bert_config.json`.
        is_roberta: bool. Whether the first two positions are for padding.
        is_hugging_face: bool. Whether the weights are Hugging Face's.
        source: str. The entries' origin, for errors.
    Raises:
        ValueError: naming the entry, if one is missing, unknown (it may change what the model
            computes), or has a value that ETC does not support.
    """
    check(entries, source)
    length = entries["max_position_embeddings"] - _ROBERTA_PADDING_ROWS * is_roberta
    given = {_NAMES[name]: value for name, value in entries.items() if name in _NAMES}
    config = {
        "segment_vocab_size": 2,
        "hidden_act": activation(entries, is_hugging_face),
        "local_radius": length,
        "max_absolute_position_embeddings": _LONGER * length,
        "relative_pos_max_distance": 0,
        "relative_vocab_size": None,
        "share_qkv_projections": True,
        "share_att_output_projection": True,
        "default_segment_id": 0,
        "global_block_length": 0,
        "pad_token_id": int(is_roberta),
        # RoBERTa's padding is 1, and its CLS 0; BERT's 1 is [unused0].
        "global_token_id": int(not is_roberta),
        **given,
    }
    try:
        config = EtcConfig(**config)
        config.check()
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from None
    return config


def with_structure(config, long_length, global_length):
    """Adapts the config of an ETC initialized from BERT to the inputs of a data set.

    Token types and relative labels are those of the paper's base model, which all data sets use;
    BERT has learned two of the types and none of the labels. Tables of positions have a row for
    each token of the inputs. If these are longer than BERT's, a token attends to as many others as
    in BERT, half of them on each side, as in a Longformer initialized from RoBERTa (Beltagy et al.
    2020, section 5).

    Args:
        config: `EtcConfig`, from `etc_config`.
        long_length: int. Tokens of the long input.
        global_length: int. Tokens of the global input.
    Returns:
        `EtcConfig`.
    """
    length = config.local_radius  # Of BERT's table.
    return dataclasses.replace(
        config,
        segment_vocab_size=max(config.segment_vocab_size, EtcConfig.segment_vocab_size),
        relative_pos_max_distance=EtcConfig.relative_pos_max_distance,
        relative_vocab_size=EtcConfig.relative_vocab_size,
        local_radius=length if long_length <= length else max(1, length // 2),
        max_absolute_position_embeddings=max(length, long_length, global_length),
    )


def check(entries, source):
    """Checks that this library supports everything in a BERT's config.

    Args:
        entries: dict, a `config.json` or `bert_config.json`.
        source: str. The entries' origin, for errors.
    Raises:
        ValueError: naming the entry, if a size is missing, or an entry is unknown (it may change
            what the model computes) or has an unsupported value.
    """
    json_config.check_not_quantized(entries, source)
    try:
        for name in _NEEDED:
            if type(entries.get(name)) is not int:
                raise ValueError(
                    f"`{name}` must be an int. Received: {shown_values.shown(entries.get(name))}"
                )
        kinds = {name: _OF_ETC[ours].type for name, ours in _NAMES.items()}
        for name, kind in {**kinds, "hidden_act": str, "max_position_embeddings": int}.items():
            if name in entries:
                field = types.SimpleNamespace(name=name, type=kind)
                is_size = name in _NEEDED or name == "type_vocab_size"
                json_config.check_entry(field, entries[name], least=int(is_size))
        known = {*_NAMES, "hidden_act", "max_position_embeddings"}
        json_config.check_others(entries, known, _WITHOUT_EFFECT)
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from None
