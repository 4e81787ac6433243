"""Rejects options that contradict those of the records, the run or the export."""

from etcmodel import options as options_lib
from etcmodel.models import encoders
from etcmodel.shown_values import as_flag
from etcmodel.text import vocabulary_files

__all__ = [
    "NOT_OF_THE_RESULT",
    "check_encoder_config",
    "check_export",
    "check_given",
    "comparable",
    "options_of_records",
    "proposed",
]

NOT_OF_THE_RESULT = "grad_checkpointing_period"  # Affects only memory and time.


def proposed(config_class):
    """Options for which records, and then the run, only give defaults: set of field names."""
    fields = options_lib.option_fields(config_class)
    of_inference = {field.name for field in fields if field.metadata["role"] == "inference"}
    return of_inference.union(config_class.proposed_by_records)


def options_of_records(config_class, flag_values, settings):
    """The feature options, and the proposed ones, that the training records were made with.

    Args:
        config_class: dataclass of options.
        flag_values: parsed `flags.FlagValues`.
        settings: dict from a settings file to its content.
    Returns:
        dict of field name to value.
    Raises:
        ValueError: if an entry is invalid for its option, a flag contradicts the features of the
            records, or the settings of several records contradict each other.
    """
    given = options_lib.values_from_flags(config_class, flag_values, only_given=True)
    fields = options_lib.option_fields(config_class)
    are_proposed = proposed(config_class)
    of_features = {field.name for field in fields if field.metadata["role"] == "features"}
    asked = {field.name: field for field in fields if field.name in of_features | are_proposed}
    found, files = {}, {}
    for file, noted in settings.items():
        noted = options_lib.from_kept(config_class, noted)
        is_irrelevant = noted.get("tokenizer", "wordpiece") != "wordpiece"
        if is_irrelevant:
            noted["do_lower_case"] = True  # Only WordPiece depends on this option.
        for name in [name for name in asked if name in noted]:
            value = options_lib.checked(asked[name], noted[name], name, file)
            if name in are_proposed:
                value = given.get(name, value)
            elif not (is_irrelevant and name == "do_lower_case"):
                check_given(name, given.get(name, value), value, f"the data of {file}")
            if found.setdefault(name, value) != value:
                advice = "Preprocess them alike."
                if name in are_proposed:
                    advice = f"Give --{name}, or preprocess them alike."
                raise ValueError(
                    f"{file}: the records were made with --{name}={as_flag(value)}, those of "
                    f"{files[name]} with --{name}={as_flag(found[name])}. {advice}"
                )
            files[name] = file
    return found


def check_export(config, flag_values, source):
    """Rejects flags on the command line that contradict the options of an exported model.

    Args:
        config: `FinetuningConfig` of the export.
        flag_values: parsed `flags.FlagValues`.
        source: str. The export, for error messages.
    Raises:
        ValueError: naming the flag and both values.
    """
    given = options_lib.values_from_flags(
        type(config), flag_values, only_given=True, roles=("model", "features")
    )
    for name, value in given.items():
        check_given(name, value, getattr(config, name), source)
    if path := flag_values["model_config_file"].value:
        given_config = encoders.read_config(path)
        check_encoder_config(given_config, config.encoder_config, source)
    for name in vocabulary_files.FIELDS:
        path = flag_values[name].value
        kept = getattr(config, name)
        if path and kept and vocabulary_files.sha256(path) != vocabulary_files.sha256(kept):
            raise ValueError(
                f"--{name}={path}: {source} has another vocabulary, and takes that. Leave the flag "
                "out."
            )


def check_given(flag, given, trained, source):
    """Compares the value given for an option with that of a run, records or an export.

    Raises:
        ValueError: naming the flag, both values and `source`, if the values differ.
    """
    if given != trained:
        raise ValueError(
            f"--{flag}={as_flag(given)}: {source} was made with --{flag}={as_flag(trained)}. "
            "Leave the flag out, or give that value."
        )


def check_encoder_config(given, made, source):
    """Compares a given `EncoderConfig` with that of `source`.

    Raises:
        ValueError: naming the entries that differ.
    """
    given, made = map(comparable, (given, made))
    differences = [
        f"{name} is {given.get(name)!r}, and there {made.get(name)!r}"
        for name in {**made, **given}
        if given.get(name) != made.get(name)
    ]
    if differences:
        raise ValueError(
            f"--model_config_file: {source} was made with another config: "
            f"{', '.join(differences)}. Leave the flag out, or give that config."
        )


def comparable(encoder_config):
    """The entries of an `EncoderConfig` that determine results: dict."""
    entries = encoder_config.to_dict()
    entries.pop(NOT_OF_THE_RESULT, None)  # Some configs omit entries with default values.
    return entries
