"""Initializes a ModernBERT with ETC's structure from ModernBERT, as ETC is from BERT."""

import dataclasses
import os
import re

from absl import logging

from etcmodel.checkpoints import hugging_face, processors, sources
from etcmodel.models import encoders, json_config
from etcmodel.models.modernbert import EtcModernBertConfig, ModernBertConfig

_OWN = re.compile(r"(?:.*\.)?(?:segment_embeddings\.weight|\w+_labels\.(?:emb|bias))")


def lift_modernbert(directory, **changes):
    """Creates an `EtcModernBertModel` initialized from a ModernBERT.

    All weights are copied, for the text and for global tokens. Segments begin as zeros, relative
    labels at random, as in an ETC from BERT. Without global tokens the hidden states are the
    source's. Save the model with `save_pretrained`; the programs' `--init_checkpoint` takes the
    folder.

    Args:
        directory: str. The folder of a ModernBERT, with or without a head, or the name of one on
            the Hub: see `from_pretrained`.
        **changes: entries of `EtcModernBertConfig` with other values, such as
            `use_hard_g2l_mask`.
    Returns:
        `EtcModernBertModel`. Its `processor`, an `EtcProcessor`, reads the folder's vocabulary. The
        report of loading is logged.
    Raises:
        ValueError: naming the file or entry, if the folder has no such model, weights are missing,
            no floats or of other shapes, or an entry is unknown or out of range.

    >>> from etcmodel import checkpoints
    >>> config = etcmodel.ModernBertConfig(hidden_size=24, num_hidden_layers=1)
    >>> etcmodel.ModernBertForMaskedLM(config).save_pretrained("modern")
    >>> model = checkpoints.lift_modernbert("modern", relative_vocab_size=64)
    >>> long_output, global_output = model([[50281, 7, 8, 50282]], [[50281]])
    >>> long_output.shape, global_output.shape
    (TensorShape([1, 4, 24]), TensorShape([1, 1, 24]))
    """
    directory = sources.settled_folder(directory)
    path = os.path.join(directory, encoders.CONFIG_FILE)
    source_config = encoders.read_config(path)
    if type(source_config) is not ModernBertConfig:
        raise ValueError(
            f"{path} must be of a model of type {ModernBertConfig.model_type!r}. Received: "
            f"{source_config.model_type!r}"
        )
    fields = dataclasses.fields(source_config)
    entries = {field.name: getattr(source_config, field.name) for field in fields}
    try:
        json_config.check_changes(EtcModernBertConfig, changes)
        config = EtcModernBertConfig(**{**entries, "skip_padding": False, **changes})
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    model = encoders.build_encoder(config)
    logging.info("%s", load(model, sources.open_source(directory)))
    processor = processors.read_processor(directory, config)
    processors.check_processor(model, processor)
    model.processor = processor
    return model


def is_for(config, source):
    """Whether `load` lifts a `Source` into models of a config: one of ModernBERT, by its config."""
    is_lifted = config is not None and config.model_type == EtcModernBertConfig.model_type
    return is_lifted and hugging_face.type_beside(source) == ModernBertConfig.model_type


def load(model, source):
    """Loads ModernBERT's weights into an `EtcModernBertModel`, or a model that contains one.

    Args:
        model: built model. What ModernBERT lacks keeps its values.
        source: `Source`.
    Returns:
        `LoadReport`.
    Raises:
        ValueError: see `hugging_face.load`.
    """
    own = {x: y for x, y in hugging_face.places(model).items() if _OWN.fullmatch(x)}
    whole = dataclasses.replace(
        source,
        shapes={**source.shapes, **{name: tuple(place.shape) for name, place in own.items()}},
        dtypes={**source.dtypes, **{name: x.variable.dtype.name for name, x in own.items()}},
        read=lambda name: own[name].value() if name in own else source.read(name),
    )
    report = hugging_face.load(model, whole)
    kept = [place.name for place in own.values()]
    return dataclasses.replace(
        report,
        loaded=tuple(name for name in report.loaded if name not in kept),
        not_in_checkpoint=(*report.not_in_checkpoint, *kept),
        origins={x: origin for x, origin in report.origins.items() if x not in kept},
    )
