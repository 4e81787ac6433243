"""Initializes GMAT from BERT and RoBERTa (Gupta and Berant 2020, section 4)."""

import os
import re

import numpy as np
import tensorflow as tf
from absl import logging

from etcmodel.checkpoints import bert as bert_lib
from etcmodel.checkpoints import names as names_lib
from etcmodel.checkpoints import processors, sources
from etcmodel.checkpoints.coverage import LoadReport
from etcmodel.models import encoders
from etcmodel.models.gmat import GmatConfig, GmatForMaskedLM, GmatModel
from etcmodel.shown_values import listed

# Entries of BERT's config that GMAT's has, too.
_SAME = (
    "vocab_size",
    "type_vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "hidden_dropout_prob",
    "attention_probs_dropout_prob",
    "initializer_range",
    "layer_norm_eps",
    "pad_token_id",
)
_ROBERTA_FIRST_POSITION = 2
_LAYER = r"gmat/(\w+)/(attention|feed_forward)_layer_(\d+)/(.*)"
_EMBEDDINGS = (
    (r"gmat/embeddings/(word|position|token_type)_embeddings/.*", r"embeddings/\1_embeddings"),
    (r"gmat/embeddings/layer_norm/(\w+)", r"embeddings/LayerNorm/\1"),
)
# In a layer; the first part of a pattern belongs to attention or feed-forward.
_IN_LAYER = (
    (r"attention/attention/(query|key|value)/(\w+)", r"attention/self/\1/\2"),
    (r"attention/attention/output_projection/(\w+)", r"attention/output/dense/\1"),
    (r"attention/layer_norm/(\w+)", r"attention/output/LayerNorm/\1"),
    (r"feed_forward/dense_layers/layer_0/(\w+)", r"intermediate/dense/\1"),
    (r"feed_forward/dense_layers/layer_1/(\w+)", r"output/dense/\1"),
    (r"feed_forward/layer_norm/(\w+)", r"output/LayerNorm/\1"),
)


def lift_to_gmat(directory, *, as_class=GmatModel, **changes):
    """Creates a GMAT initialized from BERT or RoBERTa.

    The table of position remainders is BERT's, or RoBERTa's without the rows of padding. Quotients
    begin as zeros, so that without a memory (`num_memory_tokens=0`) a text no longer than a chunk
    and that table gives BERT's own outputs. The memory keeps its initial values, and so do its own
    projections: in the paper they begin at random.

    Args:
        directory: str. A folder with `config.json` or `bert_config.json` and the weights: see
            `from_pretrained`.
        as_class: class of the result: `GmatModel`, or one of the `GmatFor…` with a head. The head
            of `GmatForMaskedLM` is also copied, if the folder has one; others are initialized anew.
        **changes: entries of `GmatConfig` with other values, such as `chunk_size`, by default 512.
    Returns:
        `GmatModel`, or `as_class`. The report of loading is logged.
    Raises:
        ValueError: naming the file or entry, if the folder has no such model, something is missing
            or does not match, weights are not floats, or copies of them differ.

    >>> from etcmodel import checkpoints
    >>> model = checkpoints.lift_to_gmat("my_bert", as_class=etcmodel.GmatForMaskedLM, chunk_size=4)
    >>> model.config.chunk_size, model.config.num_memory_tokens
    (4, 64)
    """
    directory = os.fspath(directory)
    source = sources.open_source(directory)
    bert = bert_lib.find_bert(source)
    if bert is None:
        raise ValueError(f"{source.path!r} holds no BERT or RoBERTa.")
    config = _config(directory, bert, changes)
    model = as_class(config)
    if not model.built:
        with tf.name_scope(model.name):
            model.build(None)
    report = _load(model, bert)
    logging.info("%s", report)
    model.processor = processors.read_processor(directory, config)
    return model


def _config(directory, bert, changes):
    path, entries = bert_lib.read_entries(directory)
    given = {name: entries[name] for name in _SAME if name in entries}
    activation = entries.get("hidden_act", "gelu")
    if activation == "gelu" and bert.source.format != sources.SAFETENSORS:
        activation = "gelu_new"  # The tanh approximation, as in the original BERT.
    first = _ROBERTA_FIRST_POSITION if bert.is_roberta else 0
    given |= {
        "hidden_act": activation,
        "position_period": entries["max_position_embeddings"] - first,
    }
    try:
        return encoders.replace(GmatConfig(**given), **changes)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _load(model, bert):
    """Sets the weights; returns the `LoadReport`."""
    bert.check()
    encoder = names_lib.encoder_of(model)
    variables = names_lib.release_names(model)
    origins = {name: _origin(name, encoder) for name in names_lib.encoder_variables(model)}
    origins = {name: origin for name, origin in origins.items() if origin is not None}
    origins |= _head_origins(model, bert, variables)
    if missing := [name for name, origin in origins.items() if origin not in bert.names]:
        raise ValueError(
            f"{bert.source.path!r} lacks what becomes {', '.join(missing[:5])}. It has, for "
            f"example, {sorted(bert.source.shapes)[:2]}."
        )
    values = {name: _value(bert, origin) for name, origin in origins.items()}
    wrong = [
        f"{name}: {list(value.shape)} in the file, {variables[name].shape.as_list()} by the config"
        for name, value in values.items()
        if list(value.shape) != variables[name].shape.as_list()
    ]
    if wrong:
        raise ValueError(f"{bert.source.path!r} does not fit the config: {listed(wrong, '; ')}")
    for name, value in values.items():
        variables[name].assign(value.astype(variables[name].dtype.as_numpy_dtype))
    used = {bert.names[origin] for origin in origins.values()}
    return LoadReport(
        checkpoint=bert.source.path,
        loaded=tuple(origins),
        not_in_checkpoint=tuple(name for name in variables if name not in origins),
        unused=tuple(name for name in bert.source.shapes if name not in used),
        training_state=bert.source.training_state,
        origins={name: bert.names[origin] for name, origin in origins.items()},
    )


def _head_origins(model, bert, variables):
    """The same for a masked-language-model head; {} if the model or the checkpoint has none."""
    if not isinstance(model, GmatForMaskedLM) or bert_lib.MASKED_LM_BIAS not in bert.names:
        return {}
    head, prefix = model.language_model, "cls/predictions/transform"
    found = {
        id(head.dense.kernel): f"{prefix}/dense/kernel",
        id(head.dense.bias): f"{prefix}/dense/bias",
        id(head.layer_norm.gamma): f"{prefix}/LayerNorm/gamma",
        id(head.layer_norm.beta): f"{prefix}/LayerNorm/beta",
        id(head.bias): bert_lib.MASKED_LM_BIAS,
    }
    return {name: found[id(x)] for name, x in variables.items() if id(x) in found}


def _value(bert, origin):
    value = np.asarray(bert.read(origin))
    is_roberta = bert.is_roberta and origin == bert_lib.POSITIONS
    return value[_ROBERTA_FIRST_POSITION:] if is_roberta else value


def _origin(name, model):
    """The original BERT's name of a variable's source; None for variables that BERT lacks."""
    if match := re.fullmatch(_LAYER, name):
        stack, part, index, rest = match.groups()
        prefix = f"encoder/layer_{_first_layer(model, stack) + int(index)}/"
        return _expanded(f"{part}/{rest}", _IN_LAYER, prefix)
    return _expanded(name, _EMBEDDINGS)


def _expanded(name, patterns, prefix=""):
    for pattern, origin in patterns:
        if match := re.fullmatch(pattern, name):
            return prefix + match.expand(origin)
    return None


def _first_layer(model, stack):
    """The number of layers before those of a stack."""
    names = [layers.name for layers in model.stacks]
    return sum(x.num_hidden_layers for x in model.stacks[: names.index(stack)])
