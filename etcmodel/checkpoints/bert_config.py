"""From the config of a BERT or RoBERTa to that of the ETC that gives the same outputs."""

from etcmodel.models import encoders, hugging_face, json_config
from etcmodel.models.config import EtcConfig

__all__ = ["ROBERTA_TYPES", "TYPES", "activation", "check", "check_type", "etc_config"]

ROBERTA_TYPES = ("roberta", "xlm-roberta", "camembert")
TYPES = ("bert", *ROBERTA_TYPES)
# What entries are called in `EtcConfig`.
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
# Entries that must have one of these values, if they are there.
_ONLY = {
    "position_embedding_type": ("absolute", None),
    "is_decoder": (False, None),
    "is_encoder_decoder": (False, None),
    "add_cross_attention": (False, None),
    "pruned_heads": ({}, None),
}
_WITHOUT_EFFECT = hugging_face.WITHOUT_EFFECT | {
    "hidden_act",
    "max_position_embeddings",
    "model_type",
    "quantization_config",  # None.
}
_POOLER = "pooler_"  # Likewise: the pooler is no part of the encoder.
_ROBERTA_PADDING_ROWS = 2
_LONGER = 8  # Times as long as the table of positions is what the ETC reads by default.


def activation(entries, is_hugging_face):
    """The activation by the name that it has in `EtcConfig`.

    The "gelu" of Hugging Face is exact; that of the original BERT is the tanh approximation.

    Args:
        entries: dict, of a BERT's config.
        is_hugging_face: bool. Whether the weights are Hugging Face's.
    """
    name = entries.get("hidden_act", "gelu")
    return hugging_face.ACTIVATIONS.get(name, name) if is_hugging_face else name


def check_type(entries, source):
    """Checks that a config is one of BERT's family.

    Args:
        entries: dict. Without a `model_type` it is one.
        source: str. Where the entries are from, for errors.
    Raises:
        ValueError: naming the type and those that can be read, if not.
    """
    if entries.get("model_type", "bert") not in TYPES:
        types = ", ".join(map(repr, (*TYPES, *(x.model_type for x in encoders.registered_types()))))
        raise ValueError(
            f"{source}: models of type {entries['model_type']!r} cannot be read. Those that can "
            f"are {types}"
        )


def etc_config(entries, *, is_roberta, is_hugging_face, source):
    """The `EtcConfig` of an ETC that holds a BERT.

    The long input is BERT's only input. A token sees all within the length of BERT's table of
    positions on each side, so that texts which BERT can read give BERT's own outputs; the table is
    8 times as long (see `lift_bert`); there are no relative labels, and default structures have no
    global tokens. Every piece of the attention has BERT's projections, which are there once.

    Args:
        entries: dict, of a `config.json` or `bert_config.json`.
        is_roberta: bool. Whether the first two positions are for padding.
        is_hugging_face: bool. Whether the weights are Hugging Face's.
        source: str. Where the entries are from, for errors.
    Raises:
        ValueError: naming the entry, if one is missing, unknown (it may change what the model
            computes), or has a value that ETC cannot have.
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


def check(entries, source):
    """Checks that nothing in a config is beyond what this library can do of a BERT.

    Args:
        entries: dict, of a `config.json` or `bert_config.json`.
        source: str. Where the entries are from, for errors.
    Raises:
        ValueError: naming the entry, if a size is missing, or an entry is unknown (it may change
            what the model computes) or has another value than those that can be.
    """
    json_config.check_not_quantized(entries, source)
    for name in _NEEDED:
        if type(entries.get(name)) is not int:
            raise ValueError(f"{source}: `{name}` must be an int. Received: {entries.get(name)!r}")
    if not isinstance(entries.get("hidden_act", ""), str):
        raise ValueError(
            f"{source}: `hidden_act` must be a name. Received: {entries['hidden_act']!r}"
        )
    for name, allowed in _ONLY.items():
        if name in entries and entries[name] not in allowed:
            raise ValueError(
                f"{source}: `{name}` must be {allowed[0]!r}, since there is nothing else here. "
                f"Received: {entries[name]!r}"
            )
    known = {*_NAMES, *_ONLY, *_WITHOUT_EFFECT}
    unknown = sorted(x for x in entries if x not in known and not x.startswith(_POOLER))
    if unknown:
        raise ValueError(
            f"{source}: unknown settings, which may change what the model computes: "
            f"{', '.join(f'{name}={entries[name]!r}' for name in unknown)}. Remove those that do "
            "not from the file"
        )
