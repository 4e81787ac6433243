"""Finds BERT and RoBERTa weights in a checkpoint, whoever wrote it.

Four kinds are known: the original TF1 BERT, Hugging Face's BERT and RoBERTa (PyTorch names), and
Model Garden's `BertEncoder`. All are given the original's names, without the leading "bert/".
"""

import dataclasses
import os
import re
from collections.abc import Mapping

import tensorflow as tf

from etcmodel import bounded_json
from etcmodel.checkpoints import bert_config, sources, strict
from etcmodel.models import encoders
from etcmodel.models.config import EtcConfig

__all__ = [
    "MASKED_LM_BIAS",
    "POSITIONS",
    "TOKENS",
    "TOKEN_TYPES",
    "BertWeights",
    "find_bert",
]

TOKENS = "embeddings/word_embeddings"
POSITIONS = "embeddings/position_embeddings"
TOKEN_TYPES = "embeddings/token_type_embeddings"
MASKED_LM_BIAS = "cls/predictions/output_bias"

_ORIGINAL = re.compile(
    r"(?:.*/)?(embeddings/(?:word|position|token_type)_embeddings|embeddings/LayerNorm/\w+"
    r"|encoder/layer_\d+/(?:attention/self/(?:query|key|value)|attention/output/dense"
    r"|attention/output/LayerNorm|intermediate/dense|output/dense|output/LayerNorm)/\w+"
    r"|cls/predictions/transform/(?:dense|LayerNorm)/\w+|cls/predictions/output_bias)"
)
_HUGGING_FACE = (
    (r"\.", "/"),
    (r"encoder/layer/(\d+)/", r"encoder/layer_\1/"),
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
        match = _ORIGINAL.fullmatch(_original_name(name))
        if match and names.setdefault(match.group(1), name) != name:
            raise ValueError(
                f"{source.path!r} holds several BERT encoders: {names[match.group(1)]!r} and "
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
            f"Lifted are those of {', '.join(bert_config.TYPES)}."
        )
    return BertWeights(source, names, config, _is_roberta(source, names, config))


def _original_name(name):
    """The original BERT's name, for names that follow one of the patterns."""
    return _replaced(name, _HUGGING_FACE if "." in name else _MODEL_GARDEN)


def _replaced(name, replacements):
    for pattern, replacement in replacements:
        name = re.sub(pattern, replacement, name)
    return name


def _read_config(directory):
    for name in ("config.json", "bert_config.json"):
        path = os.path.join(directory, name)
        if tf.io.gfile.exists(path):
            return bounded_json.read_object(path)
    return {}


def _is_roberta(source, names, config):
    if "model_type" in config:
        return config["model_type"] in bert_config.ROBERTA_TYPES
    if "roberta." in names[TOKENS]:
        return True
    # Every BERT has at least two token types; RoBERTa does not use them, and so has one.
    return source.shapes.get(names.get(TOKEN_TYPES), (2,))[0] == 1
