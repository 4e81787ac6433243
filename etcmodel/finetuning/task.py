"""What the tasks' classes for `etcmodel.training` have in common."""

import abc
import functools

from etcmodel import atomic_files, training
from etcmodel.finetuning import records, trained_run
from etcmodel.models import initialization

__all__ = ["FinetuningTask"]


class FinetuningTask(training.Task):
    """Trains, evaluates and decodes; the work is done by the modules of the task's folder.

    A subclass names itself in `name` (for files) and `title` (for people), has its `config_class`
    and `best_metric`, and fills in the abstract methods: thin calls of its modules. It says whether
    `decode` needs the vocabulary (`decoding_needs_vocabulary`) and the raw examples of `gold_file`
    (`decoding_needs_examples`), and whether `evaluate` needs that file (`needs_gold`).

    Args:
        config: the task's `FinetuningConfig`.
    """

    name = None
    title = None
    config_class = None
    decoding_needs_vocabulary = True
    decoding_needs_examples = True
    needs_gold = True

    def __init__(self, config):
        self.config = config

    @abc.abstractmethod
    def make_model(self):
        """tf_keras.Model, not yet built, with an `EtcModel` in `etc_model`."""

    @abc.abstractmethod
    def read_examples(self, path, check=None):
        """Iterator over the good examples of a raw file, as `decode` and the predictor take them.

        Args:
            path: str.
            check: function of an example that raises a ValueError for one that cannot be used; see
                `preprocessing.raw_files.example_reader`. None: the examples need only be parsed.
        """

    @abc.abstractmethod
    def decode(self, outputs, examples):
        """Predictions in the official format.

        Args:
            outputs: iterator, one dict of NumPy arrays per record: its features and the model's
                outputs. There may be several records to an example, one after the other.
            examples: list of examples.
        """

    @abc.abstractmethod
    def metrics(self, examples, predictions):
        """The official metrics of what `decode` returns: dict of float."""

    def write_predictions(self, path, predictions):
        """Writes what `decode` returns: as JSON, if a subclass does nothing else."""
        atomic_files.write_json(path, predictions)

    def num_predictions(self, predictions):
        """Number of examples in what `decode` returns: int."""
        return len(predictions)

    @functools.cached_property
    def tokenizer(self):
        """The `FullTokenizer` of the configuration's vocabulary."""
        return self.config.tokenizer()

    @functools.cached_property
    def num_train_examples(self):
        """Number of training records."""
        return self.config.num_train_examples or training.count_examples(self.config.train_pattern)

    def build_model(self):
        model = self.make_model()
        model.build()
        if self.config.initialization == "mimetic":
            initialization.mimetic_initialization(model.etc_model)
        return model

    def train_dataset(self, request):
        config = self.config.records()
        records.check_records(self.config.train_pattern, config, need_labels=True)
        records.check_punctuation(self.config.train_pattern, self.config.split_punctuation)
        if self.config.has_vocabulary():
            records.check_vocabulary(self.config.train_pattern, self.tokenizer)
        return records.make_train_dataset(self.config.train_pattern, config, request)

    def eval_dataset(self, batch_size):
        if not self.config.eval_pattern:
            return None
        config = self.config.records()
        records.check_records(self.config.eval_pattern, config, need_labels=False)
        records.check_punctuation(self.config.eval_pattern, self.config.split_punctuation)
        if self.config.has_vocabulary():
            records.check_vocabulary(self.config.eval_pattern, self.tokenizer)
        return records.make_eval_dataset(self.config.eval_pattern, config, batch_size)

    def evaluate(self, predictions):
        gold = list(self.read_examples(self.config.gold_file))
        predicted = self.decode(predictions, gold)
        if self.config.predictions_file:
            self.write_predictions(self.config.predictions_file, predicted)
        return self.metrics(gold, predicted)

    def predict(self, outputs):
        """Predictions in the official format for the evaluation's records; needs no answers.

        Args:
            outputs: as in `decode`.
        """
        needs_examples = self.decoding_needs_examples
        examples = list(self.read_examples(self.config.gold_file)) if needs_examples else None
        return self.decode(outputs, examples)

    def check_run(self, output_dir):
        """Compares the vocabularies with that of a run's training records, as far as it is known.

        Raises:
            ValueError: naming the file, if that of the configuration or of the evaluation's records
                is another one.
        """
        run = trained_run.TrainedRun.find(output_dir)
        if run is None:
            return
        if self.config.has_vocabulary():
            found = {self.tokenizer.source_file: self.tokenizer.source_sha256()}
        else:
            found = records.vocabularies(self.config.eval_pattern)
        run.check_vocabularies(found)

    def run_config(self):
        known = set(records.vocabularies(self.config.train_pattern).values())
        if not known and self.config.has_vocabulary():
            known = {self.tokenizer.source_sha256()}
        return {**trained_run.run_options(self.config), "vocab_sha256": sorted(known)}

    def run_config_defaults(self):
        return trained_run.run_option_defaults(self.config_class)

    def run_notes(self):
        return trained_run.run_notes(self.config)
