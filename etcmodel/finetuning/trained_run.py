"""What a run was trained with: it decides, not the flags, once the weights are there."""

import dataclasses
import os

import tensorflow as tf

from etcmodel import training
from etcmodel.models import modeling, tokenization
from etcmodel.preprocessing import options as options_lib

__all__ = [
    "TrainedRun",
    "check_export",
    "features_of_records",
    "run_notes",
    "run_option_defaults",
    "run_options",
]

_ROLES = ("model", "training", "features")
_RELEASE_COMPATIBLE = "release_compatible"  # Kept whatever its role: it is the default afterwards.
_VOCABULARY_FIELDS = ("vocab_file", "spm_model_file")
_NOT_OF_THE_RESULT = "grad_checkpointing_period"


def run_options(config):
    """dict that JSON can hold: what of a configuration decides a run's weights and features."""
    kept = options_lib.select(config, *_ROLES)
    if hasattr(config, _RELEASE_COMPATIBLE):
        kept[_RELEASE_COMPATIBLE] = config.release_compatible
    return {"etc_config": _comparable(config.etc_config), **kept}


def run_option_defaults(config_class):
    """What entries of `run_options` mean where an older version did not write them: a dict.

    It wrote all options that decided the weights, so one that it lacks is at its default. It did
    not write what only the features depend on.
    """
    defaults = {
        field.name: training.UNKNOWN
        if field.metadata["role"] == "features" or field.name == _RELEASE_COMPATIBLE
        else field.default
        for field in options_lib.option_fields(config_class)
        if field.metadata["role"] in _ROLES or field.name == _RELEASE_COMPATIBLE
    }
    etc_config = _comparable(modeling.EtcConfig(vocab_size=1))
    etc_config[_NOT_OF_THE_RESULT] = training.UNKNOWN
    return {
        **config_class.removed_options,
        **defaults,
        "etc_config": etc_config,
        "vocab_sha256": training.UNKNOWN,
    }


def run_notes(config):
    """Where a configuration's vocabulary is: a dict that JSON can hold."""
    paths = {name: getattr(config, name) for name in _VOCABULARY_FIELDS}
    return {name: _absolute(path) for name, path in paths.items() if path}


def features_of_records(config_class, flag_values, settings):
    """Options of the features as the training records were made with, where no flag says them.

    Args:
        config_class: dataclass of options.
        flag_values: parsed `flags.FlagValues`.
        settings: dict of a file to what `preprocess` noted there.
    Returns:
        dict of field name to value.
    Raises:
        ValueError: if a flag on the command line contradicts the records.
    """
    given = options_lib.values_from_flags(
        config_class, flag_values, only_given=True, roles=("features",)
    )
    fields = options_lib.option_fields(config_class)
    names = [field.name for field in fields if field.metadata["role"] == "features"]
    found = {}
    for file, noted in settings.items():
        if noted.get("tokenizer") == "sentencepiece":
            noted = {**noted, "do_lower_case": True}  # Its pieces do not depend on the option.
        for name in [name for name in names if name in noted]:
            found[name] = _from_json(noted[name])
            flag = options_lib.flag_name(config_class, name)
            _check_given(flag, given.get(name, found[name]), found[name], f"the data of {file}")
    return found


def check_export(config, flag_values, source):
    """Refuses flags on the command line that contradict what is kept with an exported model.

    Args:
        config: the exported configuration, a `FinetuningConfig`.
        flag_values: parsed `flags.FlagValues`.
        source: str. What to call the export.
    Raises:
        ValueError: naming the flag and both values.
    """
    given = options_lib.values_from_flags(
        type(config), flag_values, only_given=True, roles=("model", "features")
    )
    for name, value in given.items():
        flag = options_lib.flag_name(type(config), name)
        _check_given(flag, value, getattr(config, name), source)
    if path := flag_values["etc_config_file"].value:
        given_config = modeling.EtcConfig.from_json_file(path)
        _check_etc_config(given_config, config.etc_config, source)
    for name in _VOCABULARY_FIELDS:
        path = flag_values[options_lib.flag_name(type(config), name)].value
        kept = getattr(config, name)
        if path and kept and tokenization.file_sha256(path) != tokenization.file_sha256(kept):
            raise ValueError(
                f"--{options_lib.flag_name(type(config), name)}={path}: {source} has another "
                "vocabulary, and takes that. Leave the flag out."
            )


def _check_given(flag, given, trained, source):
    if given != trained:
        raise ValueError(
            f"--{flag}={_shown(given)}: {source} was made with --{flag}={_shown(trained)}. "
            "Leave the flag out, or give that value."
        )


def _check_etc_config(given, made, source):
    given, made = map(_comparable, (given, made))
    differences = [
        f"{name} is {given[name]!r}, and there {made[name]!r}"
        for name in made
        if given[name] != made[name]
    ]
    if differences:
        raise ValueError(
            f"--etc_config_file: {source} was made with another config: {', '.join(differences)}. "
            "Leave the flag out, or give that config."
        )


@dataclasses.dataclass(frozen=True)
class TrainedRun:
    """A run that was begun, as its directory tells.

    Attributes:
        directory: str.
        options: dict. Its `run_options`, perhaps of an older version.
        training: dict. Its `TrainingConfig.result_fields`, likewise.
        notes: dict. Its `run_notes`, and "num_train_steps" if it is known.
    """

    directory: str
    options: dict
    training: dict
    notes: dict

    @classmethod
    def find(cls, output_dir, checkpoint=None):
        """The run of a checkpoint, else that in `output_dir`; None if there is neither.

        Args:
            output_dir: str or None.
            checkpoint: str or None. A checkpoint's path prefix.
        Raises:
            ValueError: if the file that tells of the run is damaged.
        """
        directories = [output_dir]
        if checkpoint:
            folder = os.path.dirname(checkpoint)
            # The best checkpoint has a folder of its own within the run's.
            directories = [folder, os.path.dirname(folder), output_dir]
        for directory in filter(None, directories):
            if (run := training.read_run_config(directory)) is not None:
                return cls(
                    directory, *(run.get(part, {}) for part in ("task", "training", "notes"))
                )
        return None

    @property
    def source(self):
        """What to call it in a message: str."""
        return f"the run in {self.directory}"

    @property
    def num_train_steps(self):
        """The run's last step: int; None if its training records must tell and are not there."""
        if (known := self.notes.get("num_train_steps")) is not None:
            return known
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

    def etc_config(self, given=None):
        """The run's `EtcConfig`.

        Args:
            given: `EtcConfig` or None. What the flags say, which must be the same.
        Raises:
            ValueError: naming what differs, if it does; if the run has none.
        """
        if "etc_config" not in self.options:
            raise ValueError(f"{self.source} is none of this program.")
        config = modeling.EtcConfig.from_dict(self.options["etc_config"])
        if given is not None:
            _check_etc_config(given, config, self.source)
        return config

    def values(self, config_class, flag_values):
        """What the fields of a configuration are: the flags, but as the run has it what it decides.

        Args:
            config_class: dataclass of options.
            flag_values: parsed `flags.FlagValues`.
        Returns:
            dict of field name to value.
        Raises:
            ValueError: if a flag on the command line contradicts the run, or the run has an option
                that the class does not know.
        """
        values = options_lib.values_from_flags(config_class, flag_values)
        given = options_lib.values_from_flags(config_class, flag_values, only_given=True)
        defaults = run_option_defaults(config_class)
        self._check_known(config_class, defaults)
        for field in options_lib.option_fields(config_class):
            trained = _from_json(self.options.get(field.name, defaults.get(field.name)))
            if field.name not in defaults or trained is training.UNKNOWN:
                continue
            if field.metadata["role"] in _ROLES:
                flag = options_lib.flag_name(config_class, field.name)
                _check_given(flag, given.get(field.name, trained), trained, self.source)
            elif field.name in given:
                continue  # An option of decoding: the run's value is but the default.
            values[field.name] = trained
        return values

    def _check_known(self, config_class, defaults):
        for name, value in self.options.items():
            is_known = name in defaults and name not in config_class.removed_options
            if not is_known and value != config_class.removed_options.get(name, training.UNKNOWN):
                raise ValueError(
                    f"{self.directory} was trained with {name}={_shown(value)}, an option that "
                    "this program does not have: it is a run of another task or version."
                )

    def training_config(self, flag_values):
        """The `TrainingConfig` of the flags, but as the run has it what decides results.

        Raises:
            ValueError: if a flag on the command line contradicts the run.
        """
        config = training.training_config_from_flags(flag_values)
        defaults, trained = training.TrainingConfig().result_fields(), {}
        for name, value in config.result_fields().items():
            trained[name] = self.training.get(name, defaults[name])
            if flag_values[name].present:
                _check_given(name, value, trained[name], self.source)
        return dataclasses.replace(config, **trained)

    def vocabulary(self):
        """The run's vocabulary, if it is where it was, unchanged.

        Returns:
            dict of `vocab_file` or `spm_model_file` to its path; empty if the run names none.
        Raises:
            ValueError: if the file is gone, or is another one now.
        """
        paths = {name: self.notes[name] for name in _VOCABULARY_FIELDS if self.notes.get(name)}
        for name in ("spm_model_file", "vocab_file"):  # The first wins, as in a configuration.
            if name in paths:
                self._check_vocabulary(paths[name])
                return {name: paths[name]}
        return {}

    def check_vocabularies(self, found):
        """Compares vocabularies with that of the run's training records, as far as it is known.

        Args:
            found: dict of a file to its vocabulary's digest.
        Raises:
            ValueError: naming the file whose vocabulary is another one.
        """
        known = self.options.get("vocab_sha256")
        for file, sha256 in found.items():
            if known and sha256 not in known:
                raise ValueError(
                    f"{self.directory}: the model was trained with another vocabulary than "
                    f"{str(file)!r}. Give the one it was trained with."
                )

    def _check_vocabulary(self, path):
        known = self.options.get("vocab_sha256")
        if not tf.io.gfile.exists(path):
            problem = "is not there any more"
        elif known and tokenization.file_sha256(path) not in known:
            problem = "is another one now"
        else:
            return
        raise ValueError(
            f"{self.directory}: the vocabulary of the run, {path!r}, {problem}. Give its place by "
            "the flag of the vocabulary."
        )


def _comparable(etc_config):
    entries = etc_config.to_dict()
    del entries[_NOT_OF_THE_RESULT]  # Of memory and time alone.
    return entries


def _from_json(value):
    return tuple(value) if isinstance(value, list) else value


def _shown(value):
    return ",".join(value) if isinstance(value, tuple) else str(value)


def _absolute(path):
    return path if "://" in path else os.path.abspath(path)
