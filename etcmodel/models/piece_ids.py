"""Where the ids of sentence pieces begin in a model's folder, as an option of a program."""

import os

from etcmodel import bounded_json, hub
from etcmodel.models import systems
from etcmodel.shown_values import as_flag, shown
from etcmodel.text import processor_files, vocabulary_files

__all__ = ["OPTION", "check_records", "offset_of", "of_folder"]

OPTION = "piece_id_offset"
_SETTING = "id_offset"  # Of a `Seq2SeqProcessor`.


def of_folder(folder, given):
    """The value of the option for a model's folder: int.

    Args:
        folder: str. See `vocabulary_files.of_folder`.
        given: dict of option to value: the vocabulary options given by the user. With a vocabulary
            among them, any offset may be, too.
    Raises:
        ValueError: naming the flag, if it contradicts the folder; naming the folder, if its offset
            is no number of tokens.
    """
    found = offset_of(folder)
    value = given.get(OPTION, found)
    if value != found and not any(map(given.get, vocabulary_files.FIELDS)):
        raise ValueError(
            f"--{OPTION}={as_flag(value)}: the model in {str(folder)!r} has "
            f"--{OPTION}={as_flag(found)}. Leave the flag out."
        )
    return value


def offset_of(folder):
    """What is added to the ids of sentence pieces above 1 in a model's folder, or a run's: int.

    Raises:
        ValueError: naming the folder, if it is no number of tokens.
    """
    folder = hub.local_folder(os.fspath(folder), with_weights=False)
    if not processor_files.has_vocabulary(folder):
        found = _of_run(vocabulary_files.run_folder(folder))
    else:
        path, settings = processor_files.vocabulary_and_settings(folder)
        is_numbered = not path.endswith(".model") or processor_files.is_byte_level(path)
        found = 0 if is_numbered else settings.get(_SETTING, _of_system(folder))
    if type(found) is not int or found < 0:
        raise ValueError(
            f"{folder}: the offset of sentence pieces must be a whole number of at least 0. "
            f"Received: {shown(found)}"
        )
    return found


def check_records(folder, settings):
    """Checks that records have the ids of the model that they train.

    Args:
        folder: str. That of the model.
        settings: dict from a settings file beside the records to its content.
    Raises:
        ValueError: naming the file, if it notes another offset.
    """
    made = {file: noted[OPTION] for file, noted in settings.items() if OPTION in noted}
    expected = offset_of(folder) if made else None
    for file, value in made.items():
        if value != expected:
            raise ValueError(
                f"{file}: the records were made with --{OPTION}={as_flag(value)}, and the model in "
                f"{str(folder)!r} has --{OPTION}={as_flag(expected)}: its ids are of other tokens. "
                "Preprocess again, with --init_checkpoint; or give --spm_model_file, too, to train "
                "so."
            )


def _of_run(run):
    if run is None:
        return 0
    described = bounded_json.read_object(os.path.join(run, vocabulary_files.RUN_CONFIG_FILE))
    return (described.get("task") or {}).get(OPTION, 0)


def _of_system(folder):
    """That of the system that `config.json` names, or of the tokenizer's own settings."""
    if not processor_files.is_there(folder, "config.json"):
        return 0
    entries = bounded_json.read_object(os.path.join(folder, "config.json"))
    system = systems.find(entries.get("model_type"))
    setting, entry, usual = (system and system.own_tokens) or (None, None, 0)
    return processor_files.foreign_entries(folder).get(entry, usual) if setting == _SETTING else 0
