"""Initializes Longformer from RoBERTa (Beltagy et al. 2020, section 5), for any length."""

import dataclasses
import os
import re

import numpy as np
import tensorflow as tf
from absl import logging

from etcmodel import bounded_json, shown_values
from etcmodel.checkpoints import bert, hugging_face, processors, sources
from etcmodel.checkpoints import names as names_lib
from etcmodel.models import encoders
from etcmodel.models.longformer import LongformerConfig, LongformerForMaskedLM, LongformerModel
from etcmodel.models.longformer.modeling import SlidingWindowLayers

__all__ = ["copy_local_to_global", "lift_roberta"]

_POSITIONS = "longformer.embeddings.position_embeddings.weight"
_GLOBAL = re.compile(r"(.*\.attention\.self\.(?:query|key|value))_global(\..*)")
# Entries of RoBERTa's config that Longformer's has, too.
_SAME = (
    "vocab_size",
    "type_vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "hidden_act",
    "hidden_dropout_prob",
    "attention_probs_dropout_prob",
    "initializer_range",
    "layer_norm_eps",
    "pad_token_id",
    "bos_token_id",
    "eos_token_id",
)


def lift_roberta(directory, max_length=4096, **changes):
    """Creates a Longformer initialized from RoBERTa.

    The table of positions is repeated, except for rows 0 and 1 (RoBERTa's padding); global tokens
    get copies of the projections. For texts within the window and RoBERTa's length, the outputs are
    RoBERTa's. Save the model with `save_pretrained`.

    Args:
        directory: str. A RoBERTa's (or XLM-RoBERTa's or CamemBERT's) folder from Hugging Face:
            `config.json` and `model.safetensors`.
        max_length: int. The most tokens of a text; any number.
        **changes: entries of `LongformerConfig` with other values, such as `attention_window`, by
            default 512.
    Returns:
        `LongformerForMaskedLM`, or `LongformerModel` if the folder has no such head. Its
        `processor` is the folder's. The report of loading is logged.
    Raises:
        ValueError: naming the file or entry, if the folder is not of such a model or something is
            missing, weights are not floats, or copies of them differ.

    >>> from etcmodel import checkpoints
    >>> model = checkpoints.lift_roberta("my_roberta", max_length=128, attention_window=16)
    >>> type(model).__name__, model.config.max_position_embeddings
    ('LongformerForMaskedLM', 130)
    """
    directory = os.fspath(directory)
    path = os.path.join(directory, encoders.CONFIG_FILE)
    entries = bounded_json.read_object(path)
    if entries.get("model_type") not in bert.ROBERTA_TYPES:
        raise ValueError(
            f"{path}: only a RoBERTa is lifted into Longformer. Received: a model of type "
            f"{shown_values.shown(entries.get('model_type'))}"
        )
    bert.check(entries, path)
    source = sources.open_source(directory)
    config = _config(entries, path, max_length, changes)
    has_head = any(name.startswith("lm_head.") for name in source.shapes)
    model = LongformerForMaskedLM(config) if has_head else _encoder(config, source)
    lifted = _lifted(source, list(hugging_face.places(model)), config)
    bert.find_bert(source).check()
    report = hugging_face.load(model, lifted)
    logging.info("%s", report)
    model.processor = processors.read_processor(directory, config)
    return model


def _config(entries, path, max_length, changes):
    given = {name: entries[name] for name in _SAME if name in entries}
    given = {"type_vocab_size": 1, "pad_token_id": 1, "attention_window": 512, **given}
    given["max_position_embeddings"] = max_length + given["pad_token_id"] + 1
    given["sep_token_id"] = given.get("eos_token_id", LongformerConfig.sep_token_id)
    try:
        return encoders.replace(LongformerConfig(**given), **changes)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _encoder(config, source):
    has_pooler = any("pooler." in name for name in source.shapes)
    encoder = LongformerModel(config, add_pooling_layer=has_pooler)
    with tf.name_scope(encoder.name):
        encoder.build(None)
    return encoder


def _lifted(source, wanted, config):
    """A `Source` of the wanted Longformer weights, from RoBERTa's."""
    theirs = {name.removeprefix("roberta."): name for name in source.shapes}
    origins = {name: theirs.get(_origin(name)) for name in wanted}
    if missing := [name for name, origin in origins.items() if origin is None]:
        raise ValueError(
            f"{source.path!r} lacks what becomes {', '.join(missing[:5])}. It has, for example, "
            f"{sorted(source.shapes)[:2]}."
        )
    renamed = source.renamed(origins)
    first = config.pad_token_id + 1
    num_rows = config.max_position_embeddings

    def is_table(name):
        return _POSITIONS.endswith(name)

    def read(name):
        value = np.asarray(renamed.read(name))
        if not is_table(name):
            return value
        rows = np.resize(value[first:], (num_rows - first, value.shape[1]))
        return np.concatenate([value[:first], rows])

    shapes = renamed.shapes.items()
    shapes = {n: (num_rows, *s[1:]) if is_table(n) else s for n, s in shapes}
    return dataclasses.replace(renamed, shapes=shapes, read=read)


def _origin(name):
    """RoBERTa's name, without its prefix, of the source of a Longformer weight."""
    name = name.removeprefix("longformer.")
    match = _GLOBAL.fullmatch(name)
    return match.group(1) + match.group(2) if match else name


def copy_local_to_global(model):
    """Copies the projections of local tokens to those of global ones.

    For use after pre-training without global tokens, which does not train the latter.

    Args:
        model: built `LongformerModel` or `LedModel`, or a model that contains one.
    Raises:
        ValueError: if there is none, or it has no global tokens.

    >>> from etcmodel import checkpoints
    >>> model = checkpoints.lift_roberta("my_roberta", max_length=128)
    >>> checkpoints.copy_local_to_global(model)
    >>> model([[0, 7, 2]], global_attention_mask=[[1, 0, 0]]).shape
    TensorShape([1, 3, 77])
    """
    stacks = [x for x in model._flatten_layers() if isinstance(x, SlidingWindowLayers)]
    if not stacks or stacks[0].is_causal:
        kind = names_lib.encoder_of(model).config.model_type
        raise ValueError(f"{model.name!r}, of type {kind!r}, has no projections of global tokens.")
    for block in stacks[0].attention_layers:
        attention = block.inner_layer
        for local, of_globals in (
            (attention.query, attention.query_global),
            (attention.key, attention.key_global),
            (attention.value, attention.value_global),
        ):
            of_globals.linear.kernel.assign(local.linear.kernel)
            of_globals.linear.bias.assign(local.linear.bias)
