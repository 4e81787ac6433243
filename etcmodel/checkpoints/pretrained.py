"""Saves and loads models as folders: config, weights, head, vocabulary and processor."""

import dataclasses
import glob
import inspect
import json
import os
import shlex

import tensorflow as tf
from absl import logging

from etcmodel import atomic_files, bounded_json
from etcmodel.checkpoints import bert as bert_lib
from etcmodel.checkpoints import (
    coverage,
    hugging_face,
    lifting,
    processors,
    released,
    seq2seq,
    sources,
    strict,
    writing,
)
from etcmodel.checkpoints import names as names_lib
from etcmodel.models import downloads, encoders, heads, systems
from etcmodel.models.seq2seq import generation_config
from etcmodel.shown_values import listed
from etcmodel.text import vocabulary_files

CONFIG_FILE = encoders.CONFIG_FILE
HEAD_CONFIG_FILE = "head_config.json"
_WEIGHTS_FILE = writing.FILE_NAMES[sources.SAFETENSORS]
_BERT_CONFIG_FILES = (CONFIG_FILE, "bert_config.json")
_OF_PRECISION = (
    " To compute in bfloat16 or float16, call before: "
    'tf_keras.mixed_precision.set_global_policy("mixed_bfloat16").'
)


def from_pretrained(
    directory: str | os.PathLike,
    checkpoint_name: str | None = None,
    *,
    as_class: type | None = None,
    revision: str | None = None,
    **overrides,
):
    """Loads a model, with its weights and processor, from a folder or by its name.

    Args:
        directory: str. The name of a model of the Hugging Face Hub, which is downloaded: see
            `hub.local_folder` (without `hf:` if there is no such folder). Or a folder written by
            `save_pretrained`; a checkpoint of the authors' or of this library in any format with
            its config (`etc_config.json`); BERT or RoBERTa from Hugging Face (`config.json`,
            `model.safetensors`), Model Garden or the original (`bert_config.json` and a
            checkpoint), from which an ETC is initialized: see `bert.etc_config` and `lift_bert`;
            Hugging Face's Longformer, BigBird or ModernBERT, with or without a head; or its LED,
            LongT5, PEGASUS-X or BigBird-Pegasus, with `generation_config.json`.
        checkpoint_name: file name of the checkpoint (its prefix, for TensorFlow's), if there are
            several.
        as_class: class of the result: an encoder's, or a `heads.EncoderWithHead`, whose head is new
            unless the folder has one of this class, or BERT's for masked tokens. None: as there.
        revision: str. The branch, tag or commit of a model of the Hub; None for "main".
        **overrides: entries of the config, arguments of the head, or options of the encoder's class
            with other values, such as `local_radius`.
    Returns:
        `Encoder`, or `EncoderWithHead`, built and loaded. Its `processor` is the `EtcProcessor` in
        the folder, or one made from its vocabulary: see `processors.read_processor`. A new head has
        its `relation_names`. The report of loading is logged.
    Raises:
        ValueError: in a line that names the file or entry, if something is missing, unknown, or
            does not match.

    >>> etcmodel.from_pretrained("my_model").predict(["Good!"], as_labels=True, verbose=0)
    ['pos']
    """
    directory = sources.settled_folder(directory, revision)
    path = os.path.join(directory, checkpoint_name) if checkpoint_name else directory
    if seq2seq.is_of(directory, lambda: _head_of(directory, as_class)[0]):
        return seq2seq.load(directory, path, as_class, overrides)
    config, source = _config_and_source(directory, path)
    head_class, head_settings = _head_of(directory, as_class)
    encoder_class = (head_class or heads.EncoderWithHead).class_of_encoder(config.model_type)
    _check_wanted(as_class, encoder_class, directory)
    changes, options, new_settings = _split(overrides, config, encoder_class, head_class)
    config = encoders.replace(config, **changes)
    processor = processors.read_processor(directory, config, new_settings.get("relation_names"))
    if head_settings is None and "relation_names" in _head_arguments(head_class):
        new_settings = {"relation_names": getattr(processor, "relation_names", ()), **new_settings}
    of_file = hugging_face.encoder_options(config, source, head_class)
    encoder = encoder_class(config, **{**of_file, **options})
    # `save_pretrained` writes a whole model; with another config it may have more weights.
    config_file = encoders.config_file_in(directory) or ""
    is_whole = os.path.basename(config_file) == CONFIG_FILE and not changes
    model = _loaded(encoder, head_class, source, head_settings, new_settings, is_whole)
    _check_class(model, as_class, directory)
    processors.check_processor(model, processor)
    model.processor = processor
    return model


load_pretrained = from_pretrained


def folder_config(directory, long_length, global_length):
    """Returns the config of the model that a program trains from a folder.

    Args:
        directory: str. See `from_pretrained`.
        long_length, global_length: int. Tokens of both inputs, for a model initialized from BERT:
            see `bert.with_structure`.
    Returns:
        `EncoderConfig`.
    Raises:
        ValueError: see `from_pretrained`.
    """
    directory = sources.settled_folder(directory)
    config, _ = _config_and_source(directory, directory)
    if encoders.config_file_in(directory) is None:
        return bert_lib.with_structure(config, long_length, global_length)
    return config


def has_config(directory):
    """Whether a directory has the config of a model that `from_pretrained` may load: bool."""
    return bool(encoders.config_file_in(directory) or _bert_config_files(directory))


def has_head(directory):
    """Whether a directory is of a model with a head that is known: bool.

    Raises:
        ValueError: see `head_settings`.
    """
    return _head_of(directory, None)[0] is not None


def head_settings(directory):
    """Returns the settings of the head in a folder: dict; {} without one that is known.

    Raises:
        ValueError: naming the file and entry, if one has a wrong type.
    """
    return dict(_head_of(directory, None)[1] or {})


def _bert_config_files(directory):
    files = (os.path.join(directory, name) for name in _BERT_CONFIG_FILES)
    return list(filter(tf.io.gfile.exists, files))


def _hint_of_run(run, directory):
    """What to do with a training's folder, or that of its best checkpoint: str."""
    path = os.path.join(run, vocabulary_files.RUN_CONFIG_FILE)
    options = bounded_json.read_object(path).get("task") or {}
    config = options.get("etc_config") or {}
    hint = "It is of a training, whose model `etcmodel export` writes as a SavedModel."
    if "labels" in options:
        made = f"`etcmodel save_pretrained NAME --output_dir={shlex.quote(run)}`"
        hint += f" {made} makes a folder of it for classification and token_classification."
    elif "summary_fields" in options:
        made = f"`etcmodel save_pretrained summarization --output_dir={shlex.quote(run)}`"
        hint += f" {made} makes a folder of it."
    elif "use_cpc" in options:
        made = f"`etcmodel save_pretrained pretraining --output_dir={shlex.quote(run)}`"
        hint = f"It is of a pre-training: {made} makes a folder of its model."
    if config.get("model_type", "etc") == "etc":  # Of an ETC, it is not noted.
        made = f"`etcmodel convert --input={shlex.quote(directory)} --output_dir=FOLDER`"
        hint += f" {made} makes a folder of its encoder, without the head."
    return hint


def _config_and_source(directory, path):
    """The config of the folder's encoder, and the `Source` of its weights."""
    config_file = encoders.config_file_in(directory)
    if config_file is not None:
        return encoders.read_config(config_file), sources.open_source(path)
    if not (files := _bert_config_files(directory)):
        run = vocabulary_files.run_folder(directory)
        hint = _hint_of_run(run, directory) if run else downloads.download_hint(directory)
        raise ValueError(
            f"{directory!r} has no {encoders.RELEASE_CONFIG_FILE} or {CONFIG_FILE}. {hint}"
        )
    entries = bounded_json.read_object(files[0])
    bert_lib.check_type(entries, files[0])
    source = sources.open_source(path)
    bert = bert_lib.find_bert(source)
    if bert is None:
        raise ValueError(f"{source.path!r} holds no BERT or RoBERTa, of which {files[0]!r} is.")
    config = bert_lib.etc_config(
        entries,
        is_roberta=bert.is_roberta,
        is_hugging_face=source.format == sources.SAFETENSORS,
        source=files[0],
    )
    return config, source


def _head_of(directory, as_class):
    """(class of the head, the settings of the folder's head), None if absent.

    A folder's head of another class than the requested one is ignored.

    Raises:
        ValueError: naming the file and entry, if it is unknown or has a wrong type.
    """
    is_head = as_class is not None and issubclass(as_class, heads.EncoderWithHead)
    if as_class is not None and not is_head:
        return None, None
    path = os.path.join(directory, HEAD_CONFIG_FILE)
    if tf.io.gfile.exists(path):
        settings = bounded_json.read_object(path)
        found = heads.head_class(settings.pop("head_type", None), path)
    else:
        path = os.path.join(directory, CONFIG_FILE)
        entries = bounded_json.read_object(path) if tf.io.gfile.exists(path) else {}
        found, settings = _named(path, hugging_face.head_of, entries)
    if found is not None:
        _named(path, found.check_settings, settings)
    if found is None or as_class in (None, found):
        return found or as_class, settings
    logging.info("%s: the head %r is left out.", path, found.head_type)
    return as_class, None


def _named(path, function, *args):
    """The result of a function; its errors name the file of its arguments."""
    try:
        return function(*args)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _split(overrides, config, encoder_class, head_class):
    """Splits overrides: (config, options of the encoder, settings of the head)."""
    entries = {field.name for field in dataclasses.fields(config)}
    options = _arguments(encoder_class) - {"config"}
    settings = _head_arguments(head_class)
    unknown = sorted(set(overrides) - entries - options - settings)
    if unknown:
        raise ValueError(
            f"`{unknown[0]}` is no entry of a config of type {config.model_type!r}"
            + f", nor an argument of {encoder_class.__name__}"
            + (f" or {head_class.__name__}." if head_class else ".")
            + (_OF_PRECISION if unknown[0] in ("dtype", "torch_dtype") else "")
        )
    parts = (settings, entries - settings, options - settings - entries)
    of_head, changes, of_encoder = (
        {name: value for name, value in overrides.items() if name in part} for part in parts
    )
    return changes, of_encoder, of_head


def _head_arguments(head_class):
    """Names of the settings of a head's class; none for None."""
    return set() if head_class is None else set(head_class.setting_types())


def _arguments(made_of):
    """Names of the arguments of a class."""
    parameters = inspect.signature(made_of.__init__).parameters.values()
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return {x.name for x in parameters if x.kind in kinds} - {"self"}


def _initialize(model, source, is_whole):
    """Like `released.initialize`; an encoder must be complete in a file that has it whole.

    All files of systems that are initialized from others elsewhere are such.
    """
    report, encoder = released.initialize(model, source), names_lib.encoder_of(model)
    system = systems.find(encoder.config.model_type)
    if is_whole or (system and system.has_whole_files):
        inside = names_lib.encoder_variables(model)
        lost = [name for name in report.not_in_checkpoint if name in inside]
        if lost := [name for name in lost if not coverage.is_without_use(name, model)]:
            raise ValueError(f"{source.path!r} lacks weights of the model: {listed(lost)}")
    return report


def _check_order(labels, known, path):
    """Raises ValueError if labels are those of a checkpoint's head in another order."""
    given, outputs = list(labels or ()), list(known or ())
    if given != outputs and sorted(given, key=str) == sorted(outputs, key=str):
        raise ValueError(
            f"{path}: its outputs are of the labels {outputs}, in this order: leave out "
            f"`labels`. To call them otherwise, set `model.labels` then. Received: {given}"
        )


def _loaded(encoder, head_class, source, settings, changes, is_whole):
    """A model with the head of these settings, or a new one if they are None; or without a head."""
    if head_class is None:
        with tf.name_scope(encoder.name):
            encoder.build(None)
        _initialize(encoder, source, is_whole)
        return encoder
    _check_order(changes.get("labels"), (settings or {}).get("labels"), source.path)
    model = head_class(encoder, **{**(settings or {}), **changes})
    if settings is None:
        # A new head for masked tokens gets BERT's.
        is_lifted = lifting.is_for(encoder.config, source)
        _initialize(model if is_lifted else model.encoder, source, is_whole)
        _load_shared_head(model, source)
        return model
    report = _initialize(model, source, is_whole)
    encoder_names = names_lib.encoder_variables(model)
    if lost := [name for name in report.not_in_checkpoint if name not in encoder_names]:
        raise ValueError(f"{source.path!r} lacks weights of the head: {listed(lost)}")
    return model


def _load_shared_head(model, source):
    """Loads into a new head the part that all heads of its system have, if the file has it."""
    naming = hugging_face.naming_of(model)
    shared = naming and naming.shared_head
    if shared and hugging_face.is_of(source):
        places = hugging_face.places(model).items()
        weights = {x: y[1:] for x, y in places if x.startswith(shared) and x in source.shapes}
        strict.assign(source, weights)


def _check_class(model, as_class, directory):
    if as_class is not None and not isinstance(model, as_class):
        raise ValueError(
            f"{directory!r} holds a model of class {type(model).__name__}. "
            f"Wanted: {as_class.__name__}"
        )


def _check_wanted(as_class, encoder_class, directory):
    """Raises ValueError if a BERT's folder is to give a model that `lift` makes of it."""
    if encoders.config_file_in(directory) is not None:
        return
    if as_class is None or issubclass(as_class, heads.EncoderWithHead):
        wanted = getattr(as_class, "encoder_class", encoder_class)
    else:
        wanted = as_class
    for system in systems.registered() if wanted is not encoder_class else ():
        if system.lift is not None and system.encoder_class is wanted:
            raise ValueError(
                f"{directory!r} is of a BERT. {as_class.__name__} loads a {wanted.__name__}: write "
                f"one with `checkpoints.lift({directory!r}, {system.model_type!r})"
                ".save_pretrained(folder)`, and load that folder."
            )


def save_pretrained(model, directory: str | os.PathLike, processor=None):
    """Saves a model to a folder from which `from_pretrained` loads it, bit by bit the same.

    The folder gets `config.json`, `model.safetensors`, for a model with a head `head_config.json`,
    and the files of the processor: all of these or none; an existing model of this library is
    replaced. A processor in the folder is kept if none is given and the model takes its batches.
    The training state is not saved. Systems of Hugging Face's library are saved in its format.

    Args:
        model: built `Encoder`, or `EncoderWithHead`.
        directory: str. Created if missing. On a local disk; from a copy in a bucket it can be
            loaded.
        processor: object with a method `save_pretrained(directory)`, or None for `model.processor`.
    Raises:
        ValueError: if the model is not built, its config has changed since it was created, the
            folder has another model or checkpoint, or model and processor name different relations.

    >>> config = etcmodel.EtcConfig(128, hidden_size=12, num_hidden_layers=1)
    >>> model = etcmodel.EtcForSequenceClassification(config, labels=["neg", "pos"])
    >>> etcmodel.save_pretrained(model, "reviewer", etcmodel.EtcProcessor("vocab.txt"))
    >>> sorted(tf.io.gfile.listdir("reviewer"))
    ['config.json', 'head_config.json', 'model.safetensors', 'processor_config.json',
    'vocab.txt']
    """
    directory = os.fspath(directory)
    if not model.built:
        raise ValueError(f"{model.name!r} has no weights yet: call it, or `build` it, first.")
    encoder = model if seq2seq.is_model(model) else names_lib.encoder_of(model)
    if hasattr(encoder, "check_config"):  # A user's encoder may lack it.
        encoder.check_config()
    atomic_files.settle(directory)
    config = encoder.config
    processor = getattr(model, "processor", None) if processor is None else processor
    processors.check_processor(model, processor)
    _check_free(directory)
    of_hugging_face = hugging_face.has_names(model)
    if of_hugging_face:
        values = hugging_face.values(model)
    else:
        values = {name: v.numpy() for name, v in names_lib.release_names(model).items()}
    with atomic_files.scratch_folder(os.path.join(directory, _WEIGHTS_FILE)) as folder:
        others = _others(model, directory, config)
        if processor is not None:
            processor.save_pretrained(folder)
            written = tf.io.gfile.listdir(folder)
            others = (*others, *processors.older_names(directory, written, processor))
        for name, text in _texts(model, config).items():
            atomic_files.write_text(os.path.join(folder, name), [text])
        made_by = "pt" if of_hugging_face else "tf"  # Hugging Face's reader requires it.
        writing.write_safetensors(values, os.path.join(folder, _WEIGHTS_FILE), made_by=made_by)
        atomic_files.move_all(folder, _WEIGHTS_FILE, others)


def _texts(model, config):
    """The files beside the weights: dict of name to text."""
    entries = {"model_type": config.model_type, **config.to_dict()}
    found = {CONFIG_FILE: {**entries, **hugging_face.config_entries(model)}}
    if isinstance(model, heads.EncoderWithHead):
        found[HEAD_CONFIG_FILE] = {"head_type": model.head_type, **model.settings()}
    texts = {
        name: json.dumps(entries, indent=2, sort_keys=True) + "\n"
        for name, entries in found.items()
    }
    if (defaults := getattr(model, "generation_config", None)) is not None:
        complete = generation_config.with_tokens(defaults, config)
        texts[generation_config.FILE_NAME] = complete.to_json_string()
    return texts


def _others(model, directory, config):
    """Names of files beside a model that do not belong to it once it is saved."""
    names = (HEAD_CONFIG_FILE, generation_config.FILE_NAME, *encoders.config_file_names())
    if not tf.io.gfile.exists(os.path.join(directory, processors.PROCESSOR_FILE)):
        return names
    try:
        processors.check_processor(model, processors.read_processor(directory, config))
    except ValueError as error:
        logging.info("%s: the processor of an older model goes away: %s", directory, error)
        return (*names, processors.PROCESSOR_FILE)
    return names


def _check_free(directory):
    """Raises ValueError if a folder has another model that would be read instead, or be lost."""
    indexes = tf.io.gfile.glob(os.path.join(glob.escape(directory), "*.index"))
    config_file = os.path.join(directory, CONFIG_FILE)
    is_of_others = tf.io.gfile.exists(config_file) and encoders.config_file_in(directory) is None
    for path in (*indexes[:1], *[config_file] * is_of_others):
        raise ValueError(
            f"{directory!r} holds another model: {os.path.basename(path)!r}. Choose another "
            "directory."
        )
