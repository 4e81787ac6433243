"""Reads config and vocabulary from a model's folder given as --init_checkpoint.

The folder may contain a BERT or RoBERTa, which initializes an ETC, any model that `from_pretrained`
reads, or a training run of this library. It has the model's sizes and usually a vocabulary.
"""

import os

import tensorflow as tf
from absl import logging

from etcmodel import hub
from etcmodel import options as options_lib
from etcmodel.checkpoints import pretrained, processors
from etcmodel.finetuning import trained_run
from etcmodel.finetuning.config import (
    ProcessorFeatureOptions,
    QuestionOptions,
    SentenceOptions,
)
from etcmodel.shown_values import as_flag, shown
from etcmodel.text import processor_files, vocabulary_files
from etcmodel.text.labels import MULTI_LABEL
from etcmodel.text.row_processor import RowConfig
from etcmodel.text.tokenization import FullTokenizer

_LOWER_CASE = "do_lower_case"
# Settings of a processor that flags and records decide, that its vocabulary brings along, or that
# matter only with others, which are told.
_NOT_TOLD = {
    *("max_long_len", "max_global_len", "max_length", "pad_to", "pad_to_multiple_of", "pack"),
    *(_LOWER_CASE, "split_punctuation", "has_types"),
    *("main_only", "mention_names", "long_radius"),
}
_OF_QUESTIONS = {"question_separators": 1, "segment_id": None}  # As usual in an `EtcProcessor`.


def encoder_config(path, long_length, global_length):
    """The `EncoderConfig` of the model in a folder, or of the ETC that a BERT there initializes.

    Args:
        path: str. Value of --init_checkpoint.
        long_length, global_length: int. Lengths of the inputs in tokens: see
            `pretrained.folder_config`.
    Raises:
        ValueError: naming the path, if it is not a folder, or the folder has no config.
    """
    path = hub.local_folder(path)
    if not tf.io.gfile.isdir(path) and tf.io.gfile.glob(f"{path}*"):
        raise ValueError(
            f"--init_checkpoint={path}: the file of a checkpoint does not tell the model's sizes. "
            "Give its folder, or the sizes as --model_config_file."
        )
    if not pretrained.has_config(path) and (run := _run(path)):
        return run.encoder_config()
    return pretrained.folder_config(path, long_length, global_length)


def folder_of(path):
    """The folder of --init_checkpoint, which may be one or a checkpoint in it: str."""
    path = hub.local_folder(path)
    return path if tf.io.gfile.isdir(path) else os.path.dirname(path)


def vocabulary(path, given, settings):
    """The vocabulary options for a folder: dict; see `vocabulary_files.of_folder`.

    Args:
        path: str or None. Value of --init_checkpoint.
        given: dict from option to value, for the options given by flags.
        settings: dict from a settings file beside the training records to its content.
    Returns:
        dict; empty if there is no such folder, or no vocabulary in it.
    Raises:
        ValueError: naming the flag or the settings file, if one contradicts the folder.
    """
    path = path and hub.local_folder(path)
    if not path or not tf.io.gfile.isdir(path):
        return {}
    if processor_files.has_vocabulary(path):
        of_records = {noted.get("vocab_sha256") for noted in settings.values()}
        found = vocabulary_files.of_folder(path, given, of_records)
        _check_case(path, found, settings)
        return found
    run = None if any(map(given.get, vocabulary_files.FIELDS)) else _run(path)
    if run is None:
        return {}
    _check_case(
        path, {_LOWER_CASE: run.options.get(_LOWER_CASE, run.notes.get(_LOWER_CASE))}, settings
    )
    return run.vocabulary()


def head_options(path, config_class, given):
    """The options that the head in a folder was trained with, such as its labels.

    Args:
        path: str. Value of --init_checkpoint.
        config_class: dataclass of options.
        given: dict from option to value, for the options given by flags.
    Returns:
        dict of field name to value; empty if it is no folder, or has no head.
    Raises:
        ValueError: naming the flag, if one contradicts the head.
    """
    path = hub.local_folder(path)
    settings = pretrained.head_settings(path) if tf.io.gfile.isdir(path) else {}
    if settings.get("multi_label"):
        settings["problem_type"] = MULTI_LABEL
    names = {field.name for field in options_lib.option_fields(config_class)}
    found = {name: value for name, value in settings.items() if name in names and value}
    for name, value in found.items():
        found[name] = value = tuple(value) if isinstance(value, list) else value
        trained_run.check_given(name, given.get(name, value), value, f"the model in {path}")
    return found


def check_order_of_labels(path, labels):
    """Checks that a head to go on with has its labels in the order of the records.

    Weights are loaded by their names: in another order, they would be those of other labels.

    Args:
        path: str or None. Value of --init_checkpoint: a folder, or a checkpoint of a run.
        labels: sequence of str. Those of the records to train on.
    Raises:
        ValueError: naming both orders. Other labels are no error: they are learned anew.
    """
    path = path and hub.local_folder(path)
    if not path or not labels:
        return
    known = _labels_of(path)
    if known != tuple(labels) and sorted(map(str, known)) == sorted(labels):
        raise ValueError(
            f"--init_checkpoint={path}: its labels are in another order than those of the records, "
            f"{as_flag(tuple(labels))}. Make these again, with --labels={','.join(known)}"
        )


def _labels_of(path):
    """The labels of the head that training would begin with: tuple, empty if none are known."""
    is_folder = tf.io.gfile.isdir(path)
    if is_folder and pretrained.has_config(path):
        try:
            return tuple(pretrained.head_settings(path).get("labels") or ())
        except ValueError:  # Of a head that this program need not know.
            return ()
    run = trained_run.TrainedRun.find(None, os.path.join(path, "") if is_folder else path)
    return tuple(run.options.get("labels") or ()) if run else ()


def warn_of_other_inputs(path, config):
    """Warns of what a folder's processor is set to, and the program's, for every model, is not.

    Such a model would predict something else for a text than `predict` of the folder does.

    Args:
        path: str. Value of --init_checkpoint.
        config: the task's `FinetuningConfig`.
    """
    path, of_task = hub.local_folder(path), config.input_class
    is_arranged = of_task is not None and issubclass(of_task, ProcessorFeatureOptions)
    if not is_arranged or not tf.io.gfile.isdir(path) or not pretrained.has_head(path):
        return
    processor = processors.read_processor(path, config.encoder_config)
    theirs = getattr(processor, "config", None)
    if theirs is None:
        return
    ours = config.features()
    chosen = {x: getattr(ours, x) for x in ("question_globals", "sentence_splitter")}
    usual = {**vars(type(theirs)()), **chosen}
    # A Longformer's global tokens are those of its class.
    made = {**usual, "global_tokens": "model", "stride": ours.stride}
    told = {
        name: value
        for name, value in vars(theirs).items()
        if name not in {*_NOT_TOLD, *_OF_QUESTIONS} and value not in (usual[name], made[name])
    }
    expected = _of_questions({name: getattr(ours, name) for name in _OF_QUESTIONS}, config)
    found = _of_questions(_arranged(theirs, config), config)
    told |= {name: value for name, value in found.items() if value != expected[name]}
    if (
        isinstance(config, SentenceOptions)
        and isinstance(theirs, RowConfig)
        and ours.sentence_splitter != "whole"
        and not _is_of_word_pieces(processor.tokenizer)
    ):
        told["sentence_splitter"] = "whole"  # White space is text to it.
    if told:
        logging.warning(
            "The processor in %s has settings that this program does not use: %s. Inputs, and so "
            "the predictions, may differ from those of `predict` of that model.",
            path,
            ", ".join(f"{name}={shown(value)}" for name, value in told.items()),
        )


def _is_of_word_pieces(tokenizer):
    return isinstance(tokenizer, FullTokenizer) and not tokenizer.sp_model


def _arranged(theirs, config):
    """The settings of an `EtcProcessor` that arranges tokens as a folder's processor does: dict."""
    if not isinstance(theirs, RowConfig):
        return vars(theirs)
    # BigBird's reader of answers finds the question's types by itself.
    is_reader = not hasattr(config, "second_text_field")
    finds_types = is_reader and config.encoder_config.model_type == "big_bird"
    has_types = finds_types or getattr(theirs, "has_types", False)
    return {**theirs.arranged(), "segment_id": None if has_types else 0}


def _of_questions(settings, config):
    """Those `settings` that decide how a question stands before its text: dict.

    What makes no difference to this model and task has one value.
    """
    found = {name: settings.get(name, usual) for name, usual in _OF_QUESTIONS.items()}
    if not (isinstance(config, QuestionOptions) and getattr(config, "second_text_field", True)):
        found = {"question_separators": 1, "segment_id": found["segment_id"] or 0}
    of_etc = getattr(config.encoder_config, "segment_vocab_size", 1)
    if getattr(config.encoder_config, "type_vocab_size", of_etc) < 2:
        found["segment_id"] = None
    return found


def _check_case(path, found, settings):
    """Raises ValueError, naming the settings, if records and model differ in lower-casing."""
    for file, noted in settings.items():
        made, expected = noted.get(_LOWER_CASE), found.get(_LOWER_CASE)
        is_of_pieces = noted.get("tokenizer") == "wordpiece"
        if is_of_pieces and None not in (made, expected) and made != expected:
            raise ValueError(
                f"{file}: the records were made with --{_LOWER_CASE}={as_flag(made)}, and the "
                f"vocabulary in {path!r} with --{_LOWER_CASE}={as_flag(expected)}. Preprocess "
                "again, with --init_checkpoint; or give --vocab_file, too, to train so."
            )


def _run(path):
    """The `TrainedRun` that wrote a folder: its own directory, or that of its best checkpoint."""
    return trained_run.TrainedRun.find(None, os.path.join(path, ""))
