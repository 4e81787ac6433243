"""Compares the settings that `preprocess` wrote beside records with the options of a run."""

from etcmodel import options as options_lib
from etcmodel import record_files, training
from etcmodel.shown_values import as_flag

__all__ = ["check_evaluation", "check_punctuation", "check_vocabulary", "settings", "vocabularies"]

# The records themselves show this length, and the stride affects only the number of windows.
_NOT_COMPARED = ("global_seq_length", "stride")


def settings(file_pattern):
    """The settings files that `preprocess` wrote beside the records, if they exist.

    Args:
        file_pattern: str or list of str. TFRecord files, wildcards allowed.
    Returns:
        dict from the path of a settings file to its content, a dict.

    >>> from etcmodel import finetuning
    >>> ((path, found),) = finetuning.settings("my_records/train").items()
    >>> found["labels"], found["tokenizer"]
    (['neg', 'pos'], 'wordpiece')
    """
    try:
        files = training.matching_files(file_pattern) if file_pattern else []
    except ValueError:
        return {}  # The reader of the records reports the error.
    return record_files.read_settings(files)


def vocabularies(file_pattern):
    """The vocabularies that records were made with, if they have settings files.

    Args:
        file_pattern: str or list of str. TFRecord files, wildcards allowed.
    Returns:
        dict from the path of a settings file to a `FullTokenizer.source_sha256`.
    """
    found = {name: noted.get("vocab_sha256") for name, noted in settings(file_pattern).items()}
    return {name: sha256 for name, sha256 in found.items() if sha256}


def check_vocabulary(file_pattern, tokenizer):
    """Compares the vocabulary of records, if it is known, with that of the run.

    Args:
        file_pattern: str or list of str. TFRecord files, wildcards allowed.
        tokenizer: `FullTokenizer`.
    Raises:
        ValueError: naming both files, if they differ.

    >>> from etcmodel import finetuning
    >>> from etcmodel.text.tokenization import FullTokenizer
    >>> finetuning.check_vocabulary("my_records/train", FullTokenizer("vocab.txt")) is None
    True
    """
    expected = tokenizer.source_sha256()
    for settings_file, sha256 in vocabularies(file_pattern).items():
        if sha256 != expected:
            raise ValueError(
                f"{settings_file}: the records were made with another vocabulary than "
                f"{str(tokenizer.source_file)!r}. Give that one, or preprocess again."
            )
    check_punctuation(file_pattern, tokenizer.split_punctuation)


def check_punctuation(file_pattern, split_punctuation):
    """Compares `split_punctuation` of records with that of the run.

    Args:
        file_pattern: str or list of str. TFRecord files, wildcards allowed.
        split_punctuation: bool. See `tokenization.FullTokenizer`.
    Raises:
        ValueError: naming the settings beside the records, if they differ.

    >>> from etcmodel import finetuning
    >>> finetuning.check_punctuation("my_records/train", split_punctuation=False)
    >>> finetuning.check_punctuation("my_records/train", split_punctuation=True)
    Traceback (most recent call last):
        ...
    ValueError: my_records/train.config.json: the records were made without --split_punctuation.
    Leave it out, or preprocess again.
    """
    for settings_file, noted in settings(file_pattern).items():
        if noted.get("split_punctuation", False) != split_punctuation:
            made, advice = ("without", "Leave it out") if split_punctuation else ("with", "Give it")
            raise ValueError(
                f"{settings_file}: the records were made {made} --split_punctuation. {advice}, or "
                "preprocess again."
            )


def check_evaluation(file_pattern, config):
    """Compares the options of evaluation records with those of the run.

    Args:
        file_pattern: str or list of str. TFRecord files, wildcards allowed.
        config: `FinetuningConfig`. Its `not_of_evaluation` options are not compared.
    Raises:
        ValueError: naming the settings beside the records and both values, if they differ.
    """
    fields = options_lib.option_fields(type(config))
    names = {field.name for field in fields if field.metadata["role"] == "features"}
    names -= {*_NOT_COMPARED, *config.not_of_evaluation}
    for settings_file, noted in settings(file_pattern).items():
        noted = options_lib.from_kept(type(config), noted)
        if noted.get("tokenizer", "wordpiece") != "wordpiece":
            noted.pop("do_lower_case", None)  # Only WordPiece depends on this option.
        for name in sorted(names & noted.keys()):
            made, expected = noted[name], getattr(config, name)
            if made != expected:
                raise ValueError(
                    f"{settings_file}: the records were made with --{name}={as_flag(made)}, and "
                    f"the model's inputs with --{name}={as_flag(expected)}. Preprocess them alike; "
                    "where no run tells how the model was trained, give the flag."
                )
