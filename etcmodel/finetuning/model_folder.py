"""What a program takes from the folder of a model that is given as --init_checkpoint.

The folder may be of a BERT or RoBERTa, which is lifted into an ETC, of any model that
`from_pretrained` reads, or of a training run of this library. It has the model's sizes, and mostly
a vocabulary.
"""

import os

import tensorflow as tf

from etcmodel.checkpoints import pretrained
from etcmodel.finetuning import trained_run
from etcmodel.shown_values import as_flag
from etcmodel.text import processor_files, vocabulary_files

__all__ = ["check_case", "encoder_config", "vocabulary"]

_LOWER_CASE = "do_lower_case"


def encoder_config(path, long_length, global_length):
    """The `EncoderConfig` of the model in a folder, or of the ETC that the BERT there becomes.

    Args:
        path: str. Value of --init_checkpoint.
        long_length, global_length: int. Tokens of the inputs: see `pretrained.folder_config`.
    Raises:
        ValueError: naming the path, if it is no folder, or the folder has no config.
    """
    if not tf.io.gfile.isdir(path) and tf.io.gfile.glob(f"{path}*"):
        raise ValueError(
            f"--init_checkpoint={path}: the file of a checkpoint does not tell the model's sizes. "
            "Give its folder, or the sizes as --model_config_file."
        )
    if not pretrained.has_config(path) and (run := _run(path)):
        return run.encoder_config()
    return pretrained.folder_config(path, long_length, global_length)


def vocabulary(path, given):
    """The options of the vocabulary that a folder gives: dict, see `vocabulary_files.of_folder`.

    Args:
        path: str or None. Value of --init_checkpoint.
        given: dict of option to value: those that flags give.
    Returns:
        dict, empty if there is no such folder, or no vocabulary in it.
    Raises:
        ValueError: naming the flag, if one contradicts the folder.
    """
    if not path or not tf.io.gfile.isdir(path):
        return {}
    if processor_files.has_vocabulary(path):
        return vocabulary_files.of_folder(path, given)
    run = None if any(map(given.get, vocabulary_files.FIELDS)) else _run(path)
    return run.vocabulary() if run else {}


def check_case(path, found, settings):
    """Checks that records have text in the case of the model's vocabulary.

    Args:
        path: str or None. Value of --init_checkpoint.
        found: dict of `vocabulary`.
        settings: dict of a settings file beside the records to its content.
    Raises:
        ValueError: naming the settings file, if not.
    """
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
    """The `TrainedRun` that wrote a folder, its own or the one with its best checkpoint."""
    return trained_run.TrainedRun.find(None, os.path.join(path, ""))
