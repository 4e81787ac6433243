"""Exports a trained task with all that prediction needs, and predicts from raw examples."""

import abc
import json
import numbers
import pathlib
import tempfile

from etcmodel import bounded_json, serving
from etcmodel import options as options_lib
from etcmodel.models import encoders
from etcmodel.text import vocabulary_files

__all__ = ["Predictor", "export"]

_SPM_MODEL = "spiece.model"


def export(model, task, directory):
    """Writes a trained model as a SavedModel, with its vocabulary and options.

    Args:
        model: of `task.build_model`.
        task: `FinetuningTask`.
        directory: str. Where to write; must not exist.
    Returns:
        `directory`.
    Raises:
        ValueError: if `directory` exists, or the vocabulary is missing or does not fit the model.
    """
    config = task.config
    encoder_type = encoders.encoder_type(config.encoder_config.model_type)
    _ = task.tokenizer  # Raises an error if the vocabulary does not fit.
    texts = {
        encoder_type.config_file: config.encoder_config.to_json_string(),
        _config_name(task): json.dumps(config.exported_options()),
    }
    records = config.records()
    with tempfile.TemporaryDirectory() as folder:
        files = {name: pathlib.Path(folder, name) for name in texts}
        for name, path in files.items():
            path.write_text(texts[name], encoding="utf-8")
        return serving.export_saved_model(
            model,
            directory,
            features=records.model_features(),
            padding=records.padding,
            axes=records.model_axes(),
            checks=records.checks(),
            assets={
                **_vocabulary(task, pathlib.Path(folder, "vocabulary")),
                **{name: str(path) for name, path in files.items()},
            },
        )


def _vocabulary(task, folder):
    """The files of the vocabulary by name; of byte-level BPE copies in a folder."""
    config = task.config
    if config.spm_model_file:
        return {_SPM_MODEL: config.spm_model_file}
    if not vocabulary_files.is_of_bytes(config.vocab_file):
        return {vocabulary_files.NAMES[0]: config.vocab_file}
    task.tokenizer.save_pretrained(str(folder))
    return {path.name: str(path) for path in folder.iterdir()}


def _config_name(task):
    return f"{task.name}_config.json"


class Predictor(abc.ABC):
    """Predicts from raw examples with an exported model.

    A subclass sets `task_class` and implements `parse_example` and `make_features`. They may use
    `config` (the task's `FinetuningConfig` with the options of the export), `task` and `tokenizer`.

    Args:
        directory: str. An export, or a directory of numbered exports, whose highest is used.
        **options: replace options of the export, by the names of their fields.
    Raises:
        ValueError: if there is no export with the files of this task.
    """

    task_class = None

    def __init__(self, directory, **options):
        self._runner = serving.SavedModelRunner(directory)
        options_file = self._runner.asset(_config_name(self.task_class))
        if not (options_file and (config_file := self._config_file())):
            raise ValueError(f"{directory!r} is no export of a {self.task_class.title} model.")
        options_kept = bounded_json.read_object(options_file, "Export again.")
        kept = options_lib.load_kept(self.task_class.config_class, options_kept, options_file)
        self.config = self.task_class.config_class(
            encoder_config=encoders.read_config(config_file),
            vocab_file=next(filter(None, map(self._runner.asset, vocabulary_files.NAMES)), None),
            spm_model_file=self._runner.asset(_SPM_MODEL),
            **{**kept, **options},
        )
        self.task = self.task_class(self.config)
        self.tokenizer = self.task.tokenizer

    def _config_file(self):
        """Path of the encoder's config, or None."""
        names = (known.config_file for known in encoders.registered_types())
        return next(filter(None, map(self._runner.asset, names)), None)

    def read_examples(self, path):
        """Iterates over the examples of a raw file; logs those that `predict` cannot take."""
        return self.task.read_examples(path, lambda example: list(self.make_features(example)))

    @abc.abstractmethod
    def parse_example(self, raw):
        """Converts a dict in the data set's format to an example.

        Raises:
            ValueError: naming the example, if it is malformed.
        """

    @abc.abstractmethod
    def make_features(self, example):
        """Iterable of feature dicts, one per record, as in preprocessing."""

    def predict(self, examples, batch_size=8):
        """Predictions in the official format.

        Args:
            examples: iterable of examples (`read_examples`), or of dicts in the data set's
                format; answers are not needed.
            batch_size: int. Records per step.
        Raises:
            ValueError: naming the example, if one is malformed.
        """
        examples = list(self.parsed(examples))
        return self.task.decode(self.outputs(examples, batch_size), examples)

    def parsed(self, examples):
        """Iterates over the examples, parsed for `make_features`.

        Args:
            examples: as in `predict`.
        Raises:
            ValueError: if one is neither an example nor a dict; naming the example, if one is
                malformed.
        """
        if isinstance(examples, dict | str | bytes):
            raise ValueError(f"`examples` must be a list of examples. Received: {_shown(examples)}")
        for example in examples:
            if isinstance(example, dict):
                example = self.parse_example(example)
            elif example is None or isinstance(example, str | bytes | numbers.Number | list):
                raise ValueError(
                    "an example must be a dict in the data set's format, or one of "
                    f"`read_examples`. Received: {_shown(example)}"
                )
            yield example

    def outputs(self, examples, batch_size=8):
        """Iterates over the model's outputs: one dict per record, with the features.

        Examples are read one at a time, so that memory does not grow with their number.
        """
        features = (record for example in examples for record in self.make_features(example))
        return self._runner(features, batch_size)


def _shown(value):
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
