"""Exporting a trained task with all that prediction needs, and predicting from raw examples."""

import abc
import json
import pathlib
import tempfile

import tensorflow as tf

from etcmodel import serving
from etcmodel.models import modeling

__all__ = ["Predictor", "export"]

_VOCAB, _SPM_MODEL, _ETC_CONFIG = "vocab.txt", "spiece.model", "etc_config.json"


def export(model, task, directory):
    """Writes a trained model as a SavedModel, with its vocabulary and options.

    Args:
        model: of `task.build_model`.
        task: `FinetuningTask`.
        directory: where to write; must not exist.
    Returns:
        `directory`.
    Raises:
        ValueError: if there is something, or the vocabulary is missing or does not fit the model.
    """
    config = task.config
    _ = task.tokenizer  # Refuses a vocabulary that does not fit.
    vocabulary = (
        {_SPM_MODEL: config.spm_model_file}
        if config.spm_model_file
        else {_VOCAB: config.vocab_file}
    )
    texts = {
        _ETC_CONFIG: config.etc_config.to_json_string(),
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
            assets={**vocabulary, **{name: str(path) for name, path in files.items()}},
        )


def _config_name(task):
    return f"{task.name}_config.json"


class Predictor(abc.ABC):
    """Predicts with an exported model, from raw examples.

    A subclass names its `task_class` and fills in `parse_example` and `make_features`. They may
    use `config` (the task's `FinetuningConfig`, with the options kept with the model), `task` and
    `tokenizer`.

    Args:
        directory: of the export, or a directory of numbered exports (the highest is taken).
        **options: replace options kept with the model, by the name of their field.
    Raises:
        ValueError: if there is no export with the files of this task.
    """

    task_class = None

    def __init__(self, directory, **options):
        self._runner = serving.SavedModelRunner(directory)
        options_file = self._runner.asset(_config_name(self.task_class))
        etc_config_file = self._runner.asset(_ETC_CONFIG)
        if not (options_file and etc_config_file):
            raise ValueError(f"{directory!r} is no export of a {self.task_class.title} model.")
        with tf.io.gfile.GFile(options_file) as file:
            kept = {name: _from_json(value) for name, value in json.load(file).items()}
        self.config = self.task_class.config_class(
            etc_config=modeling.EtcConfig.from_json_file(etc_config_file),
            vocab_file=self._runner.asset(_VOCAB),
            spm_model_file=self._runner.asset(_SPM_MODEL),
            **{**kept, **options},
        )
        self.task = self.task_class(self.config)
        self.tokenizer = self.task.tokenizer

    def read_examples(self, path):
        """Iterator over the examples of a raw file that `predict` can take; names the others."""
        return self.task.read_examples(path, lambda example: list(self.make_features(example)))

    @abc.abstractmethod
    def parse_example(self, raw):
        """The example of a dict in the data set's format.

        Raises:
            ValueError: naming the example, if it is malformed.
        """

    @abc.abstractmethod
    def make_features(self, example):
        """Iterable of feature dicts, one a record, as preprocessing makes them."""

    def predict(self, examples, batch_size=8):
        """Predictions in the official format.

        Args:
            examples: iterable of examples (`read_examples`), or of dicts in the data set's
                format; answers are not needed.
            batch_size: int. Records of one step.
        Raises:
            ValueError: naming the example, if one is malformed.
        """
        examples = [
            self.parse_example(example) if isinstance(example, dict) else example
            for example in examples
        ]
        return self.task.decode(self.outputs(examples, batch_size), examples)

    def outputs(self, examples, batch_size=8):
        """Iterates over the model's outputs: a dict per record, with its features.

        Examples are taken one at a time: memory does not grow with their number.
        """
        features = (record for example in examples for record in self.make_features(example))
        return self._runner(features, batch_size)


def _from_json(value):
    return tuple(value) if isinstance(value, list) else value
