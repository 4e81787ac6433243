"""The base class of all fine-tuning tasks."""

import abc
import contextlib
import functools
import importlib
import importlib.util

from etcmodel import atomic_files, file_systems, serving, training
from etcmodel.finetuning import layer_rates, options_task, records, trained_run
from etcmodel.reports import results

__all__ = ["FinetuningTask"]


class FinetuningTask(options_task.RecordsTask):
    """A task with records, predictions and official metrics.

    A subclass sets `name` (for files), `title` (for people), `config_class` and `best_metric`, and
    implements the abstract methods by calling the modules of its folder. It also says whether
    `decode` needs the vocabulary (`decoding_needs_vocabulary`) and the raw examples of `eval_gold`
    (`decoding_needs_examples`), whether `evaluate` needs that file (`needs_gold`), and whether
    predictions are identified by `example_id`, which must then be unique (`predicts_by_id`).

    Args:
        config: the task's `FinetuningConfig`.

    >>> from etcmodel.tasks.classification.task import ClassificationConfig, ClassificationTask
    >>> config = ClassificationConfig(encoder_config=etcmodel.EtcConfig(128), labels=("neg", "pos"))
    >>> task = ClassificationTask(config)
    >>> task.name, task.best_metric, task.higher_is_better
    ('classification', 'accuracy', True)
    """

    name = None
    title = None
    decoding_needs_vocabulary = True
    decoding_needs_examples = True
    needs_gold = True
    predicts_by_id = False

    @abc.abstractmethod
    def read_examples(self, path, check=None):
        """Iterator over the valid examples of a raw file, for `decode` and the predictor.

        Args:
            path: str.
            check: function that raises a ValueError for an example that cannot be used; see
                `preprocessing.raw_files.example_reader`. None: only parsing errors count.
        """

    @abc.abstractmethod
    def decode(self, outputs, examples):
        """Predictions in the official format.

        Args:
            outputs: iterator with one dict of NumPy arrays per record: its features and the model's
                outputs. The records of an example are consecutive.
            examples: list of examples.
        """

    @abc.abstractmethod
    def metrics(self, examples, predictions):
        """The official metrics of the predictions: dict of float."""

    def write_predictions(self, path, predictions):
        """Writes the predictions that `decode` returns; by default as JSON."""
        atomic_files.write_json(path, predictions)

    def num_predictions(self, predictions):
        """Number of examples in the predictions that `decode` returns: int."""
        return len(predictions)

    def write_export(self, model, directory, assets):
        """Writes a trained model as a SavedModel, which by default takes features.

        Args:
            model: the result of `build_model`.
            directory: str. Must not exist.
            assets: dict of file name to path.
        Returns:
            `directory`.
        """
        config = self.config.records()
        return serving.export_saved_model(
            model,
            directory,
            features=config.model_features(),
            padding=config.padding,
            axes=config.model_axes(),
            checks=config.checks(),
            assets=assets,
        )

    def evaluate_checkpoint(self, config, checkpoint=None):
        """The official metrics of a checkpoint: see `training.evaluate`.

        Args:
            config: `TrainingConfig`.
            checkpoint: str. Path prefix. None: the best one.
        """
        return training.evaluate(self, config, checkpoint)

    def predict_records(self, config, checkpoint, path):
        """Writes a checkpoint's predictions for the evaluation's records, without metrics.

        Args:
            config, checkpoint: as in `evaluate_checkpoint`.
            path: str.
        Returns:
            int. Number of predictions.
        """
        with contextlib.closing(training.predict(self, config, checkpoint)) as outputs:
            predictions = self.predict(outputs)
        self.write_predictions(path, predictions)
        return self.num_predictions(predictions)

    @functools.cached_property
    def tokenizer(self):
        """The `FullTokenizer` for the configuration's vocabulary."""
        return self.config.tokenizer()

    def trained_variables(self, model):
        variables = super().trained_variables(model)
        return layer_rates.trained(model, variables, self.config.num_frozen_layers)

    def learning_rate_shares(self, model):
        return layer_rates.learning_rate_shares(model, self.config.layer_decay)

    def train_dataset(self, request):
        config = self.config.records()
        records.check_records(self.config.train_data, config, need_labels=True)
        records.check_punctuation(self.config.train_data, self.config.split_punctuation)
        if self.config.has_vocabulary():
            records.check_vocabulary(self.config.train_data, self.tokenizer)
        return records.make_train_dataset(self.config.train_data, config, request)

    def eval_dataset(self, batch_size):
        if not self.config.eval_data:
            return None
        config = self.config.records()
        records.check_records(self.config.eval_data, config, need_labels=False)
        records.check_punctuation(self.config.eval_data, self.config.split_punctuation)
        records.check_evaluation(self.config.eval_data, self.config)
        if self.config.has_vocabulary():
            records.check_vocabulary(self.config.eval_data, self.tokenizer)
        return records.make_eval_dataset(self.config.eval_data, config, batch_size)

    def evaluate(self, predictions):
        gold = list(self.read_examples(self.config.eval_gold))
        predicted = self.decode(predictions, gold)
        if self.config.predictions_file:
            self.write_predictions(self.config.predictions_file, predicted)
        return self.metrics(gold, predicted)

    def text_samples(self, number):
        """See `Task`; made from the predictions file by the task's `report` module."""
        path, gold = self.config.predictions_file, self.config.eval_gold
        report = type(self).__module__.rpartition(".")[0] + ".report"
        if not (
            path and gold and file_systems.gfile().exists(path) and importlib.util.find_spec(report)
        ):
            return []
        given = results.Given(path, gold, trained_run.run_options(self.config))
        items = importlib.import_module(report).read_results(given).items
        return [(item.question, item.prediction, item.gold) for item in items[:number]]

    def check_data(self):
        config = self.config.records()
        patterns = {self.config.train_data: True, self.config.eval_data: False}
        for pattern, need_labels in patterns.items():
            if pattern:
                records.find_bad_record(pattern, config, need_labels=need_labels)

    def predict(self, outputs):
        """Predictions in the official format for the evaluation's records, without metrics.

        Args:
            outputs: as in `decode`.
        """
        needs_examples = self.decoding_needs_examples
        examples = list(self.read_examples(self.config.eval_gold)) if needs_examples else None
        return self.decode(outputs, examples)

    def check_run(self, output_dir):
        """Compares vocabularies with that of a run's training records, if it is known.

        Raises:
            ValueError: naming the file, if the vocabulary of the configuration or of the
                evaluation's records differs.
        """
        run = trained_run.TrainedRun.find(output_dir)
        if run is None:
            return
        if self.config.has_vocabulary():
            found = {self.tokenizer.source_file: self.tokenizer.source_sha256()}
        else:
            found = records.vocabularies(self.config.eval_data)
        run.check_vocabularies(found)

    def run_config(self):
        known = set(records.vocabularies(self.config.train_data).values())
        if not known and self.config.has_vocabulary():
            known = {self.tokenizer.source_sha256()}
        return {**trained_run.run_options(self.config), "vocab_sha256": sorted(known)}
