"""Exports a trained task with everything that prediction needs, and predicts raw examples."""

import abc
import contextlib
import json
import numbers
import pathlib
import tempfile

from absl import logging

from etcmodel import (
    bounded_json,
    extras,
    feature_checks,
    file_systems,
    format_versions,
    serving,
    shown_values,
)
from etcmodel import options as options_lib
from etcmodel.models import encoders
from etcmodel.preprocessing import raw_files
from etcmodel.preprocessing.json_fields import require_object
from etcmodel.text import processor_files

_SPM_MODEL = processor_files.SENTENCE_PIECES
_VOCABS = (processor_files.WORD_PIECES, *processor_files.BYTE_LEVEL)
_VERSION = {format_versions.ENTRY: format_versions.EXPORT}


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

    >>> from etcmodel import finetuning
    >>> from etcmodel.tasks.classification.task import ClassificationConfig, ClassificationTask
    >>> config = etcmodel.EtcConfig(128, hidden_size=12, num_hidden_layers=1)
    >>> options = {"encoder_config": config, "labels": ("neg", "pos"), "vocab_file": "vocab.txt"}
    >>> task = ClassificationTask(ClassificationConfig(**options))
    >>> finetuning.export(task.build_model(), task, "classifier")
    'classifier'
    """
    config = task.config
    encoder_type = encoders.encoder_type(config.encoder_config.model_type)
    _ = task.tokenizer  # Raises an error if the vocabulary does not fit.
    vocabulary = processor_files.vocabulary_files(config.vocab_file, config.spm_model_file)
    texts = {
        encoder_type.config_file: config.encoder_config.to_json_string(),
        _config_name(task): json.dumps({**_VERSION, **config.exported_options()}),
    }
    with tempfile.TemporaryDirectory() as folder:
        files = {name: pathlib.Path(folder, name) for name in texts}
        for name, path in files.items():
            path.write_text(texts[name], encoding="utf-8")
        assets = {**vocabulary, **{name: str(path) for name, path in files.items()}}
        return task.write_export(model, directory, assets)


def _config_name(task):
    return f"{task.name}_config.json"


class Predictor(abc.ABC):
    """Predicts from raw examples with an exported model.

    A subclass sets `task_class` and implements `parse_example` and `make_features`. They may use
    `config` (the task's `FinetuningConfig` with the options of the export), `task` and `tokenizer`.
    If the export does not take features, it also sets `runner_class`. For servers of raw examples
    it may set `id_fields`, the names under which an example has its id; `page_fields`, the `fields`
    of `serving.rest.RawExamples`; and `served_options`, which replace options of the export there.

    Args:
        directory: str. An export, or a directory of numbered exports; the highest number is used.
        loaded: the SavedModel, if it is loaded already; None: it is loaded here.
        **options: override options of the export, by field name.
    Raises:
        ValueError: if there is no export of this task, or a later version wrote it.

    >>> from etcmodel.tasks.classification.predict import ClassificationPredictor
    >>> predictor = ClassificationPredictor("my_classifier")
    >>> predictor.predict_file("reviews.csv", "predictions.json")
    4
    """

    task_class = None
    runner_class = serving.SavedModelRunner
    id_fields = ("id",)
    page_fields = {}
    served_options = {}

    def __init__(self, directory, *, loaded=None, **options):
        self._runner = self.runner_class(directory, *([] if loaded is None else [loaded]))
        self._count = None  # Counts records while a file is predicted.
        options_file = self._runner.asset(_config_name(self.task_class))
        if not (options_file and (config_file := self._config_file())):
            raise ValueError(f"{directory!r} is no export of a {self.task_class.title} model.")
        options_kept = bounded_json.read_object(options_file, "Export again.")
        format_versions.check(options_kept, format_versions.EXPORT, options_file)
        options_kept.pop(format_versions.ENTRY, None)
        kept = options_lib.load_kept(self.task_class.config_class, options_kept, options_file)
        self.config = self.task_class.config_class(
            encoder_config=encoders.read_config(config_file),
            vocab_file=next(filter(None, map(self._runner.asset, _VOCABS)), None),
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
        """Iterates over the examples of a raw file; logs those that `predict` cannot use."""
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
                format; answers are not needed. They are taken one at a time if the task's decoding
                does not need them.
            batch_size: int. Records per step.
        Raises:
            ValueError: naming the example, if one is malformed.
        """
        examples = self.parsed(examples)
        if not self.task.decoding_needs_examples:
            return self.task.decode(self.outputs(examples, batch_size), None)
        examples = list(examples)
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
            raise ValueError(
                f"`examples` must be a list of examples. Received: {shown_values.shown(examples)}"
            )
        for example in examples:
            if isinstance(example, dict):
                example = self.parse_example(example)
            elif example is None or isinstance(example, str | bytes | numbers.Number | list):
                raise ValueError(
                    "an example must be a dict in the data set's format, or one of "
                    f"`read_examples`. Received: {shown_values.shown(example)}"
                )
            yield example

    def prepare(self, raw, default_id):
        """Converts a raw example for a server, which runs its records together with others.

        Args:
            raw: dict in the data set's format; answers are not needed.
            default_id: int. The id of an example without one.
        Returns:
            (list of feature dicts, function from the `outputs` for them to `prediction`'s result).
        Raises:
            ValueError: naming the field, if the example is malformed.
        """
        if all(raw.get(name) in (None, "") for name in self.id_fields):
            raw = {**raw, self.id_fields[0]: default_id}
        example = self.parse_example(raw)
        return list(self.make_features(example)), lambda outputs: self.prediction(example, outputs)

    def prediction(self, example, outputs):
        """The prediction of one example in the task's format, without its id: a value for JSON.

        Args:
            example: of `parse_example`.
            outputs: list of dicts, the `outputs` for its records.
        Raises:
            ValueError: naming an output that is NaN.
        """
        for output in outputs:
            feature_checks.check_outputs(output)
        decoded = self.task.decode(iter(outputs), [example])
        (one,) = decoded.values() if isinstance(decoded, dict) else decoded
        if isinstance(one, dict):
            return {name: x for name, x in one.items() if name not in ("id", *self.id_fields)}
        return one

    def read_raw_examples(self, path):
        """Iterates over the raw examples of a file that `prepare` takes; warns about the others.

        Args:
            path: str.
        Yields:
            dicts.
        Raises:
            ValueError: naming the file, if it has no such example.
        """

        def taken(raw):
            require_object(raw)
            self.prepare(raw, 0)
            return raw

        return raw_files.example_reader(self.read_rows, taken)(path)

    def read_rows(self, path):
        """Iterates over (place, raw example) of a raw file."""
        return raw_files.read_json_elements(path)

    def predict_file(self, input_file, predictions_file, batch_size=8):
        """Writes the predictions for a raw file; a terminal shows how many records are done.

        Args:
            input_file: str.
            predictions_file: str.
            batch_size: int. Records per step.
        Returns:
            int. Number of predictions.
        Raises:
            ValueError: as `read_examples`.
        """
        with self._counted():
            predictions = self.predict(self.read_examples(input_file), batch_size)
        if file_systems.gfile().exists(predictions_file):
            logging.warning(
                "%s had predictions, such as the evaluation's; those for %s replace them.",
                predictions_file,
                input_file,
            )
        self.task.write_predictions(predictions_file, predictions)
        return self.task.num_predictions(predictions)

    def outputs(self, examples, batch_size=8):
        """Iterates over the model's outputs: one dict per record, with the features.

        Examples are read one at a time, so that memory does not grow with their number.
        """
        return self.run(self.records(examples), batch_size)

    def records(self, examples):
        """Iterates over the feature dicts of all examples."""
        if self.task.predicts_by_id:
            examples = raw_files.with_ids_of_their_own(examples)
        return (record for example in examples for record in self.make_features(example))

    def run(self, records, batch_size):
        """Iterates over the `outputs` for the feature dicts of `records`."""
        for output in self._runner(records, batch_size, **self.runner_options()):
            feature_checks.check_outputs(output)
            if self._count:
                self._count(1)
            yield output

    def runner_options(self):
        """Further arguments of the `runner_class` for each call: dict."""
        return {}

    @contextlib.contextmanager
    def _counted(self):
        try:
            from etcmodel import progress_bar
        except extras.MissingExtraError:  # Predictions do not need it.
            shown = contextlib.nullcontext()
        else:
            shown = progress_bar.counted("predicting", unit="records")
        with shown as self._count:
            try:
                yield
            finally:
                self._count = None
