"""Initializes LED from BART (Beltagy et al. 2020, section 7), for any length."""

import dataclasses
import os
import re

import numpy as np
import tensorflow as tf
from absl import logging

from etcmodel import bounded_json, shown_values
from etcmodel.checkpoints import hugging_face, processors, seq2seq, sources, strict
from etcmodel.models import encoders, json_config
from etcmodel.models.led import LedConfig, LedForConditionalGeneration

_PREFIX = "model."  # Of BART's names, in files of models with a head.
_PADDING_ROWS = 2  # At the beginning of BART's tables of positions.
_POSITIONS = re.compile(r"(?:encoder|decoder)\.embed_positions\.weight")
_ATTENTION = re.compile(
    r"(encoder\.layers\.\d+\.self_attn\.)"
    r"(?:longformer_self_attn\.(query|key|value)(?:_global)?|(output))(\..*)"
)
_PARTS = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "out_proj"}
# Entries of BART's config that LED's has, too.
_SAME = (
    "vocab_size",
    "d_model",
    "encoder_layers",
    "encoder_attention_heads",
    "encoder_ffn_dim",
    "decoder_layers",
    "decoder_attention_heads",
    "decoder_ffn_dim",
    "activation_function",
    "dropout",
    "attention_dropout",
    "activation_dropout",
    "init_std",
    "pad_token_id",
    "bos_token_id",
    "eos_token_id",
    "decoder_start_token_id",
)


def lift_bart(directory, max_length=16384, **changes):
    """Creates an LED initialized from BART.

    The encoder's table of positions is repeated, the decoder's is BART's; global tokens get copies
    of the projections. For texts within the window and BART's length, the outputs are BART's. Save
    the model with `save_pretrained`.

    Args:
        directory: str. A BART's folder from Hugging Face: `config.json` and `model.safetensors`.
        max_length: int. The most tokens of a text; any number.
        **changes: entries of `LedConfig` with other values, such as `attention_window`, by default
            1024.
    Returns:
        `LedForConditionalGeneration`. Its `processor` and the defaults of `generate`
        (`generation_config.json`, or entries of `config.json`) are the folder's. The report of
        loading is logged.
    Raises:
        ValueError: naming the file or entry, if the folder is not of such a model or something is
            missing, weights are not floats, or copies of them differ.

    >>> from etcmodel import checkpoints
    >>> model = checkpoints.lift_bart("my_bart", max_length=128, attention_window=16)
    >>> type(model).__name__, model.config.max_encoder_position_embeddings
    ('LedForConditionalGeneration', 128)
    """
    directory = os.fspath(directory)
    path = os.path.join(directory, encoders.CONFIG_FILE)
    entries = bounded_json.read_object(path)
    if entries.get("model_type") != "bart":
        raise ValueError(
            f"{path}: only a BART is lifted into LED. Received: a model of type "
            f"{shown_values.shown(entries.get('model_type'))}"
        )
    json_config.check_not_quantized(entries, path)
    config = _config(entries, path, max_length, changes)
    model = LedForConditionalGeneration(config)
    with tf.name_scope(model.name):
        model.build(None)
    lifted = _lifted(sources.open_source(directory), model)
    logging.info("%s", hugging_face.load(model, lifted))
    model.generation_config = seq2seq.read_generation_config(directory, config, changes)
    model.processor = processors.read_processor(directory, config)
    return model


def _config(entries, path, max_length, changes):
    given = {name: entries[name] for name in _SAME if name in entries}
    given["max_decoder_position_embeddings"] = entries.get("max_position_embeddings", 1024)
    given["max_encoder_position_embeddings"] = max_length
    given["attention_window"] = 1024
    try:
        known = {*_SAME, "max_position_embeddings"}
        json_config.check_others(entries, known, LedConfig.without_effect, LedConfig.only)
        return encoders.replace(LedConfig.from_dict(given), **changes)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _lifted(source, model):
    """A `Source` of an LED's weights by its names, from BART's."""
    theirs = {name.removeprefix(_PREFIX): name for name in source.shapes}
    weights, naming = hugging_face.places(model), hugging_face.naming_of(model)
    bare = {name: name.removeprefix(naming.prefix) for name in weights}
    aliases = [x.removeprefix(naming.prefix) for x in naming.aliases["led.shared.weight"]]
    table = next((x for x in ("shared.weight", *aliases) if x in theirs), None)
    origins = {
        name: theirs.get(table if short == "shared.weight" else _origin(short))
        for name, short in bare.items()
    }
    lost = [x for x, origin in origins.items() if origin is None and x not in naming.optional]
    if lost:
        raise ValueError(
            f"{source.path!r} lacks what becomes {', '.join(lost[:5])}. It has, for example, "
            f"{sorted(source.shapes)[:2]}."
        )
    origins = {name: origin for name, origin in origins.items() if origin is not None}
    copies = {
        copy.replace(naming.prefix, _PREFIX): original.replace(naming.prefix, _PREFIX)
        for copy, original in naming.copies.items()
    }
    copies = strict.copies_in(source.shapes, copies, _PREFIX)
    strict.check(source, origins.values(), copies)
    renamed = source.renamed(origins)
    rows = {x: weights[x].variable.shape[0] for x in origins if _POSITIONS.fullmatch(bare[x])}

    def read(name):
        value = np.asarray(renamed.read(name))
        if name not in rows:
            return value
        value = value[_PADDING_ROWS:]
        return np.resize(value, (rows[name], value.shape[1]))

    shapes = renamed.shapes.items()
    shapes = {name: (rows.get(name, shape[0]), *shape[1:]) for name, shape in shapes}
    return dataclasses.replace(renamed, shapes=shapes, read=read)


def _origin(name):
    """BART's name of the source of an LED's weight, both without prefixes."""
    match = _ATTENTION.fullmatch(name)
    if match is None:
        return name
    before, projection, output, after = match.groups()
    return before + _PARTS[projection or output] + after
