"""The options that a run was trained with; later modes use them instead of flags."""

import dataclasses
import os

from etcmodel import options as options_lib
from etcmodel import training
from etcmodel.models import encoders, modeling
from etcmodel.shown_values import as_flag
from etcmodel.text import vocabulary_files
from etcmodel.training import run_directory

# Rejects options that contradict those of the records, the run or the export.


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


# The options that a run keeps, and a run that has kept them.


_ROLES = ("model", "training", "features", "inference")
_ENCODER_CONFIG = "etc_config"  # The entry's name in stored runs, older than other encoders.


def run_options(config):
    """The options that determine a run's weights and features: dict for JSON."""
    kept = options_lib.kept(config, *_ROLES)
    return {_ENCODER_CONFIG: comparable(config.encoder_config), **kept}


def run_option_defaults(config_class):
    """Values of `run_options` entries that older versions did not write: dict.

    Older versions wrote all options that determine the weights, so a missing one has its default.
    They did not write options that only affect the features.
    """
    defaults = {
        options_lib.kept_name(field): training.UNKNOWN
        if field.metadata["role"] in ("features", "inference")
        else field.default
        for field in options_lib.option_fields(config_class)
        if field.metadata["role"] in _ROLES
    }
    encoder_config = modeling.EtcConfig(vocab_size=1)  # Older versions had no other encoders.
    encoder_config = comparable(encoder_config)
    encoder_config[NOT_OF_THE_RESULT] = training.UNKNOWN
    return {
        **config_class.removed_options,
        **defaults,
        _ENCODER_CONFIG: encoder_config,
        "vocab_sha256": training.UNKNOWN,
    }


def run_notes(config):
    """The paths of a configuration's vocabulary: dict for JSON."""
    paths = {name: getattr(config, name) for name in vocabulary_files.FIELDS}
    return {name: _absolute(path) for name, path in paths.items() if path}


@dataclasses.dataclass(frozen=True)
class TrainedRun:
    """A run that has been started, as described by its directory.

    Attributes:
        directory: str.
        options: dict. Its `run_options`, possibly of an older version.
        training: dict. Its `TrainingConfig.result_fields`, likewise.
        notes: dict. Its `run_notes`, and "num_train_steps", those planned, if they are known.
    """

    directory: str
    options: dict
    training: dict
    notes: dict

    @classmethod
    def find(cls, output_dir, checkpoint=None):
        """The run of a checkpoint, or else the run in `output_dir`; None if neither exists.

        Args:
            output_dir: str or None.
            checkpoint: str or None. A checkpoint's path prefix.
        Raises:
            ValueError: if the file that describes the run is damaged.
        """
        directories = [output_dir]
        if checkpoint:
            folder = os.path.dirname(checkpoint)
            # The best checkpoint is in a subfolder of the run's folder.
            directories = [folder, os.path.dirname(folder), output_dir]
        for directory in filter(None, directories):
            if (run := training.read_run_config(directory)) is not None:
                return cls(
                    directory, *(run.get(part, {}) for part in ("task", "training", "notes"))
                )
        return None

    @property
    def source(self):
        """The run, for messages: str."""
        return f"the run in {self.directory}"

    @property
    def last_step(self):
        """The run's last step: int; None if it is not known and the records are missing."""
        if (known := self.notes.get("num_train_steps")) is not None:
            stop = {"stop_at_step": self.training.get("stop_at_step")}
            return training.TrainingConfig(**stop).last_step(known)
        pattern = self.options.get("train_pattern")
        try:
            num_examples = self.options.get("num_train_examples") or (
                pattern and training.count_examples(pattern)
            )
            names = ("train_batch_size", "num_train_epochs")
            options = {name: self.training[name] for name in names}
        except (ValueError, KeyError):
            return None
        config = training.TrainingConfig(**options)
        return config.num_train_steps(num_examples) if num_examples else None

    def encoder_config(self, given=None):
        """The run's `EncoderConfig`.

        Args:
            given: `EncoderConfig` of the flags, which must be the same, or None.
        Raises:
            ValueError: naming the entries that differ; or if the run has no such config.
        """
        if _ENCODER_CONFIG not in self.options:
            raise ValueError(f"{self.source} is none of this program.")
        config = encoders.config_from_dict(self.options[_ENCODER_CONFIG], self.source)
        if given is not None:
            check_encoder_config(given, config, self.source)
        return config

    def values(self, config_class, flag_values):
        """The values of a configuration's fields: from the run if it fixes them, else from flags.

        Args:
            config_class: dataclass of options.
            flag_values: parsed `flags.FlagValues`.
        Returns:
            dict of field name to value.
        Raises:
            ValueError: if a flag on the command line contradicts the run, or the run has an unknown
                option.
        """
        values = options_lib.values_from_flags(config_class, flag_values)
        given = options_lib.values_from_flags(config_class, flag_values, only_given=True)
        defaults = run_option_defaults(config_class)
        self._check_known(config_class, defaults)
        kept = options_lib.from_kept(config_class, self.options)
        for field in options_lib.option_fields(config_class):
            kept_name = options_lib.kept_name(field)
            trained = kept.get(field.name, defaults.get(kept_name))
            if kept_name in self.options:
                self._check_value(field, kept_name, self.options)
            if kept_name not in defaults or trained is training.UNKNOWN:
                continue
            if field.metadata["role"] != "inference":
                check_given(field.name, given.get(field.name, trained), trained, self.source)
            elif field.name in given:
                continue  # The run's value is only the default.
            values[field.name] = trained
        return values

    def proposed_values(self, config_class, flag_values):
        """The run's `proposed` options not given by flags: dict from name to value.

        A resumed run keeps its first values, whatever its records say.
        """
        kept = options_lib.from_kept(config_class, self.options)
        return {
            name: kept[name]
            for name in proposed(config_class) & kept.keys()
            if not flag_values[name].present
        }

    def _check_known(self, config_class, defaults):
        for name, value in self.options.items():
            is_known = name in defaults and name not in config_class.removed_options
            if not is_known and value != config_class.removed_options.get(name, training.UNKNOWN):
                raise ValueError(
                    f"{self.directory} was trained with {name}={as_flag(value)}, an "
                    "option that this program does not have: it is a run of another task or "
                    "version."
                )

    def training_config(self, flag_values):
        """The `TrainingConfig`: from the run for options that determine results, else from flags.

        A flag may have a value that the run had before a change.

        Raises:
            ValueError: if a flag on the command line contradicts the run.
        """
        config = training.TrainingConfig(
            **options_lib.values_from_flags(training.TrainingConfig, flag_values)
        )
        defaults, trained = training.TrainingConfig().result_fields(), {}
        known = {field.name: field for field in options_lib.option_fields(training.TrainingConfig)}
        former = run_directory.former_values_of(run_directory.read_changes(self.directory))
        for name, value in config.result_fields().items():
            trained[name] = self.training.get(name, defaults[name])
            if name in known:
                self._check_value(known[name], name, {name: trained[name]})
            # Precision that is chosen by the device is what it was for the run.
            is_open = (name, value) == ("mixed_precision", "auto")
            if flag_values[name].present and not is_open and value not in former.get(name, ()):
                check_given(name, value, trained[name], self.source)
        return dataclasses.replace(config, **trained)

    def _check_value(self, field, name, values):
        if (
            values[name] is not None
        ):  # Options without a value in older versions may have a default now.
            file = os.path.join(self.directory, training.RUN_CONFIG_FILE)
            options_lib.checked(field, values[name], name, file)

    def vocabulary(self):
        """The run's vocabulary, which must still be in place and unchanged.

        Returns:
            dict from `vocab_file` or `spm_model_file` to its path; empty if the run has none.
        Raises:
            ValueError: if the file is missing or has changed.
        """
        known = self.options.get("vocab_sha256")
        return vocabulary_files.of_notes(self.directory, self.notes, known)

    def check_vocabularies(self, found):
        """Compares vocabularies with that of the run's training records, if it is known.

        Args:
            found: dict from a file to its vocabulary's digest.
        Raises:
            ValueError: naming the file whose vocabulary differs.
        """
        known = self.options.get("vocab_sha256")
        for file, sha256 in found.items():
            if known and sha256 not in known:
                raise ValueError(
                    f"{self.directory}: the model was trained with another vocabulary than "
                    f"{str(file)!r}. Give the one it was trained with."
                )


def _absolute(path):
    return path if "://" in path else os.path.abspath(path)
