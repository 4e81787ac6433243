"""BERT's and RoBERTa's configs, and the names of their weights."""

import dataclasses
import os
import re
import types
from collections.abc import Mapping

import tensorflow as tf

from etcmodel import bounded_json, shown_values
from etcmodel.checkpoints import sources, strict
from etcmodel.models import encoders, hugging_face, json_config
from etcmodel.models.config import EtcConfig

# Converts the config of BERT or RoBERTa to that of an ETC with the same outputs.


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
    if is_roberta and entries.get("pad_token_id", 1) != 1:
        raise ValueError(
            f"{source}: `pad_token_id` must be 1, since positions are read from the row after it. "
            f"Received: {shown_values.shown(entries['pad_token_id'])}"
        )
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


# Finds BERT and RoBERTa weights in a checkpoint, whoever wrote it.
#
# Four kinds are known: the original TF1 BERT, Hugging Face's BERT and RoBERTa (PyTorch names), and
# Model Garden's `BertEncoder`. All are given the original's names, without the leading "bert/".


TOKENS = "embeddings/word_embeddings"
POSITIONS = "embeddings/position_embeddings"
TOKEN_TYPES = "embeddings/token_type_embeddings"
MASKED_LM_BIAS = "cls/predictions/output_bias"

_ORIGINAL = re.compile(
    r"(?:.*/)?(embeddings/(?:word|position|token_type)_embeddings|embeddings/LayerNorm/\w+"
    r"|encoder/layer_\d+/(?:attention/self/(?:query|key|value)|attention/output/dense"
    r"|attention/output/LayerNorm|intermediate/dense|output/dense|output/LayerNorm)/\w+"
    r"|pooler/dense/\w+|cls/predictions/transform/(?:dense|LayerNorm)/\w+"
    r"|cls/predictions/output_bias)"
)
_HUGGING_FACE = (
    (r"\.", "/"),
    (r"encoder/layer/(\d+)/", r"encoder/layer_\1/"),
    (r"(^|/)pooler/(?=weight|bias)", r"\1pooler/dense/"),  # BigBird's.
    (r"cls/predictions/bias$", MASKED_LM_BIAS),
    (r"lm_head/bias$", MASKED_LM_BIAS),  # RoBERTa's.
    (r"lm_head/dense/", "cls/predictions/transform/dense/"),
    (r"lm_head/layer_norm/", "cls/predictions/transform/LayerNorm/"),
    (r"_embeddings/weight$", "_embeddings"),
    (r"LayerNorm/weight$", "LayerNorm/gamma"),
    (r"LayerNorm/bias$", "LayerNorm/beta"),
    (r"/weight$", "/kernel"),
)
# Duplicates that Hugging Face's files may contain, with the original.
_COPIES = (
    (re.compile(r"(?:.*\.)?(?:cls\.predictions|lm_head)\.decoder\.weight"), TOKENS),
    (re.compile(r"(?:.*\.)?(?:cls\.predictions|lm_head)\.decoder\.bias"), MASKED_LM_BIAS),
)
_MODEL_GARDEN = (
    (r"word_embeddings/embeddings$", TOKENS),
    (r"position_embedding/embeddings$", POSITIONS),
    (r"type_embeddings/embeddings$", TOKEN_TYPES),
    (r"embeddings/layer_norm/", "embeddings/LayerNorm/"),
    (r"transformer/(layer_\d+)/output/", r"encoder/\1/output/dense/"),
    (r"transformer/(layer_\d+)/output_layer_norm/", r"encoder/\1/output/LayerNorm/"),
    (r"transformer/(layer_\d+)/intermediate/", r"encoder/\1/intermediate/dense/"),
    (
        r"transformer/(layer_\d+)/self_attention_layer_norm/",
        r"encoder/\1/attention/output/LayerNorm/",
    ),
    (
        r"transformer/(layer_\d+)/self_attention/attention_output/",
        r"encoder/\1/attention/output/dense/",
    ),
    (
        r"transformer/(layer_\d+)/self_attention/(query|key|value)/",
        r"encoder/\1/attention/self/\2/",
    ),
)


@dataclasses.dataclass(frozen=True)
class BertWeights:
    """The weights of a BERT encoder, and of its masked-language-model head if there is one.

    Attributes:
        source: `Source`.
        names: dict of each weight's name in the original BERT to its name in the source.
        config: entries of the `config.json` or `bert_config.json` beside the checkpoint; else {}.
        is_roberta: bool. Whether positions count from 2: the first two rows are for padding.
    """

    source: sources.Source
    names: Mapping[str, str]
    config: Mapping[str, object]
    is_roberta: bool

    @property
    def num_hidden_layers(self):
        """Number of layers: int."""
        layers = (re.match(r"encoder/layer_(\d+)/", name) for name in self.names)
        return 1 + max((int(match.group(1)) for match in layers if match), default=-1)

    @property
    def num_attention_heads(self):
        """Number of heads: int, or None if it is unknown."""
        query = self.names.get("encoder/layer_0/attention/self/query/kernel")
        shape = self.source.shapes.get(query, ())
        return shape[1] if len(shape) == 3 else self.config.get("num_attention_heads")

    def check(self):
        """Checks all weights before any is used: see `strict.check`.

        Raises:
            ValueError: if weights are not floats, or a duplicate differs from its original.
        """
        copies = {
            name: self.names[original]
            for pattern, original in _COPIES
            for name in filter(pattern.fullmatch, self.source.shapes)
            if original in self.names
        }
        strict.check(self.source, self.names.values(), copies)

    def read(self, name):
        """Returns a weight as in the original BERT: kernels are float [inputs, outputs].

        Args:
            name: a key of `names`.
        """
        value = self.source.read(self.names[name])
        if name.endswith("/kernel"):
            if value.ndim == 3:  # [hidden, heads, size], and [heads, size, hidden] of the output.
                rows = value.shape[0] * (value.shape[1] if "/output/" in name else 1)
                return value.reshape(rows, -1)
            is_torch = self.names[name].endswith(".weight")
            return value.T if is_torch else value
        return value.reshape(-1) if name.endswith("/bias") else value


def find_bert(source):
    """Finds the BERT or RoBERTa encoder of a checkpoint.

    Args:
        source: `Source`.
    Returns:
        `BertWeights`, or None if there is none.
    Raises:
        ValueError: if there are several, it belongs to another type of model with BERT's names,
            such as Longformer, or the config beside the checkpoint is not a JSON object.
    """
    names = {}
    for name in source.shapes:
        original = original_name(name)
        if original and names.setdefault(original, name) != name:
            raise ValueError(
                f"{source.path!r} holds several BERT encoders: {names[original]!r} and "
                f"{name!r}, for example. Save the one to load alone."
            )
    if TOKENS not in names:
        return None
    config = _read_config(os.path.dirname(source.path))
    is_longformer = any(".query_global." in name for name in source.shapes)
    kind = config.get("model_type", "longformer" if is_longformer else "bert")
    others = {known.model_type for known in encoders.registered_types()}
    if kind in others - {EtcConfig.model_type}:  # That may be the config of the new ETC.
        raise ValueError(
            f"{source.path!r} is of a model of type {kind!r}, whose weights fit no other one. "
            f"Lifted are those of {', '.join(TYPES)}."
        )
    return BertWeights(source, names, config, _is_roberta(source, names, config))


def original_name(name):
    """Returns the original BERT's name of a weight, from that in a file; None if it has none."""
    name = _replaced(name, _HUGGING_FACE if "." in name else _MODEL_GARDEN)
    match = _ORIGINAL.fullmatch(name)
    return match and match.group(1)


def _replaced(name, replacements):
    for pattern, replacement in replacements:
        name = re.sub(pattern, replacement, name)
    return name


_CONFIG_FILES = ("config.json", "bert_config.json")


def read_entries(directory):
    """Reads the config of a BERT's folder, of which another model is made, and checks it.

    Returns:
        (path, dict).
    Raises:
        ValueError: see `check`; also if there is none, or it is of another type.
    """
    paths = [os.path.join(directory, name) for name in _CONFIG_FILES]
    path = next(filter(tf.io.gfile.exists, paths), None)
    if path is None:
        raise ValueError(f"{directory!r} has neither of {' and '.join(_CONFIG_FILES)}.")
    entries = bounded_json.read_object(path)
    if entries.get("model_type", "bert") not in TYPES:
        raise ValueError(
            f"{path}: what can be lifted are models of type {', '.join(map(repr, TYPES))}. "
            f"Received: {shown_values.shown(entries['model_type'])}"
        )
    check(entries, path)
    return path, entries


def _read_config(directory):
    for name in _CONFIG_FILES:
        path = os.path.join(directory, name)
        if tf.io.gfile.exists(path):
            return bounded_json.read_object(path)
    return {}


def _is_roberta(source, names, config):
    if "model_type" in config:
        return config["model_type"] in ROBERTA_TYPES
    if "roberta." in names[TOKENS]:
        return True
    # Every BERT has at least two token types; RoBERTa does not use them, and so has one.
    return source.shapes.get(names.get(TOKEN_TYPES), (2,))[0] == 1
