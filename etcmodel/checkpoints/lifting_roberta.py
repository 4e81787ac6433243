"""Initializes encoders of one text from BERT and RoBERTa, for any length.

Longformer (Beltagy et al. 2020, section 5) and BigBird (Zaheer et al. 2020, section 4) began so,
from RoBERTa.
"""

import dataclasses
import re

import numpy as np
from absl import logging

from etcmodel import shown_values
from etcmodel.checkpoints import bert as bert_lib
from etcmodel.checkpoints import hugging_face, processors, sources
from etcmodel.checkpoints import names as names_lib
from etcmodel.models import encoders, systems
from etcmodel.models.longformer.modeling import SlidingWindowLayers

_GLOBAL = re.compile(r"(.*\.attention\.self\.(?:query|key|value))_global(\..*)")
# Entries of BERT's config that these systems have, too.
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
# Those that files may lack, by whether the model is a RoBERTa; the last three are BERT's [PAD],
# [CLS] and [SEP], unless a vocabulary says otherwise.
_USUAL = {
    True: {"type_vocab_size": 1, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2},
    False: {"type_vocab_size": 2, "pad_token_id": 0, "bos_token_id": 101, "eos_token_id": 102},
}


def lift(directory, into="longformer", max_length=4096, **changes):
    """Creates a model of longer texts initialized from BERT or RoBERTa.

    The table of positions is repeated; a Longformer's global tokens get copies of the projections.
    While Longformer's window, or BigBird's full attention (`longest_full`), covers a text within
    the source's length, the outputs are the source's. Save the model with `save_pretrained`.

    Args:
        directory: str. The folder of a BERT, RoBERTa, XLM-RoBERTa or CamemBERT, or the name of one
            on the Hub: see `from_pretrained`.
        into: str. The `model_type` of the result: "longformer" or "big_bird".
        max_length: int. The most tokens of a text; any number.
        **changes: entries of the result's config with other values, such as `attention_window`, by
            default 512.
    Returns:
        The system's masked language model, or its encoder if the folder has no such head. Its
        `processor` reads the folder's vocabulary. The report of loading is logged.
    Raises:
        ValueError: naming the file or entry, if the folder is not of such a model or something is
            missing, weights are not floats, or copies of them differ.

    >>> from etcmodel import checkpoints
    >>> model = checkpoints.lift("my_bert", "big_bird", max_length=128, block_size=2)
    >>> type(model).__name__, model.config.max_position_embeddings
    ('BigBirdModel', 128)
    """
    system = systems.find(into)
    if system is None or system.lift is None:
        known = ", ".join(repr(x.model_type) for x in systems.registered() if x.lift is not None)
        raise ValueError(
            f"`into` must be the `model_type` of what is initialized, one of {known}. Received: "
            f"{shown_values.shown(into)}"
        )
    directory = sources.settled_folder(directory)
    path, entries = bert_lib.read_entries(directory)
    source = sources.open_source(directory)
    if (bert := bert_lib.find_bert(source)) is None:
        raise ValueError(f"{source.path!r} holds no BERT or RoBERTa.")
    config = _config(system, bert, path, entries, max_length, changes)
    processor = processors.read_processor(directory, config)
    if not bert.is_roberta and callable(getattr(processor, "make_batch", None)):
        first, *_, last = processor("a")["input_ids"][0].tolist()
        own = {"bos_token_id": first, "eos_token_id": last, "sep_token_id": last, **changes}
        config = encoders.replace(config, **own)
    head_class = system.masked_lm if bert_lib.MASKED_LM_BIAS in bert.names else None
    options = system.weights.encoder_options(source.shapes, head_class)
    model = encoders.build_encoder(config, **options)
    model = model if head_class is None else head_class(model)
    logging.info("%s", load(model, source))
    processors.check_processor(model, processor)
    model.processor = processor
    return model


def lift_roberta(directory, max_length=4096, **changes):
    """Creates a Longformer initialized from RoBERTa: see `lift`.

    >>> from etcmodel import checkpoints
    >>> model = checkpoints.lift_roberta("my_roberta", max_length=128, attention_window=16)
    >>> type(model).__name__, model.config.max_position_embeddings
    ('LongformerForMaskedLM', 130)
    """
    return lift(directory, "longformer", max_length, **changes)


def _config(system, bert, path, entries, max_length, changes):
    config_class = system.config_class
    fields = {field.name for field in dataclasses.fields(config_class)}
    given = {name: entries[name] for name in _SAME if entries.get(name) is not None}
    given = {**_USUAL[bert.is_roberta], **_function_of(bert), **system.lift, **given}
    given["hidden_act"] = _function_of(bert)["hidden_act"]
    given["sep_token_id"] = given["eos_token_id"]
    try:
        config = config_class(**{name: x for name, x in given.items() if name in fields})
        rows = max_length + config.max_position_embeddings - config.max_length
        return encoders.replace(config, **{"max_position_embeddings": rows, **changes})
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _function_of(bert):
    """What the source's layers compute, beside what shapes show: dict of config entries."""
    activation = bert.config.get("hidden_act", "gelu")
    if activation == "gelu" and bert.source.format != sources.SAFETENSORS:
        activation = "gelu_new"  # The tanh approximation, as in the original BERT.
    return {
        "hidden_act": activation,
        "layer_norm_eps": bert.config.get("layer_norm_eps", 1e-12),
    }


# The weights: also for a model that a program made with a config of its own.


def is_for(model, source):
    """Whether a `Source` is of BERT's family, beside its config, and `load` lifts it into a model.

    Args:
        model: built `Encoder`, or a model that contains one.
        source: `Source`.
    """
    if hugging_face.type_beside(source) not in bert_lib.TYPES:
        return False
    system = systems.find(names_lib.encoder_of(model).config.model_type)
    return system is not None and system.lift is not None


def load(model, source):
    """Loads weights of BERT or RoBERTa into a model of a system that has `System.lift`.

    Args:
        model: built encoder or model with a head. A head that the source lacks keeps its values.
        source: `Source`.
    Returns:
        `LoadReport`.
    Raises:
        ValueError: see `lift`; also naming both numbers, if layers or attention heads differ.
    """
    bert, config = bert_lib.find_bert(source), names_lib.encoder_of(model).config
    bert.check()
    for name in ("num_hidden_layers", "num_attention_heads"):
        theirs = getattr(bert, name)
        if theirs not in (None, getattr(config, name)):
            raise ValueError(
                f"{source.path!r} does not fit the model's config: `{name}` is "
                f"{getattr(config, name)} in the model, {theirs} in the checkpoint."
            )
    report = hugging_face.load(model, _lifted(bert, hugging_face.places(model), config))
    used = {bert.names.get(origin) for origin in map(_origin, report.origins.values())}
    return dataclasses.replace(
        report,
        unused=tuple(name for name in source.shapes if name not in used),
        warnings=tuple(_warnings(bert, config)),
    )


def _warnings(bert, config):
    for name, theirs in _function_of(bert).items():
        if (ours := getattr(config, name)) != theirs:
            yield f"the checkpoint's `{name}` is {theirs!r}, the model's {ours!r}"
    if bert.is_roberta and config.hidden_act != "gelu" and bert_lib.MASKED_LM_BIAS in bert.names:
        yield (
            "RoBERTa's head for masked tokens has 'gelu' whatever its `hidden_act`, the model's "
            f"{config.hidden_act!r}: their logits differ"
        )


def _lifted(bert, places, config):
    """A `Source` of a BERT's weights by the names that they have in files of a model."""
    origins = {name: x for name in places if (x := _origin(name)) in bert.names}
    first = config.max_position_embeddings - config.max_length
    theirs = bert.config.get("pad_token_id", 1) + 1 if bert.is_roberta else 0

    def read(name):
        value = np.asarray(bert.read(origins[name]))
        if origins[name] == bert_lib.POSITIONS:
            size = config.max_position_embeddings - first
            rows = np.resize(value[theirs:], (size, value.shape[1]))
            return np.concatenate([value[:first], rows])
        return value.T if places[name].is_transposed else value

    renamed = bert.source.renamed({name: bert.names[origin] for name, origin in origins.items()})
    return dataclasses.replace(renamed, shapes={x: read(x).shape for x in origins}, read=read)


def _origin(name):
    """The original BERT's name of the source of a weight, from its name in a file; or None."""
    match = _GLOBAL.fullmatch(name)
    return bert_lib.original_name(match.group(1) + match.group(2) if match else name)


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
