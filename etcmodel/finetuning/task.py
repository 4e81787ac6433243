"""What the tasks' classes for `etcmodel.training` have in common."""

import abc
import functools

from etcmodel import atomic_files, training
from etcmodel.finetuning import records
from etcmodel.models import initialization

__all__ = ["FinetuningTask"]


class FinetuningTask(training.Task):
    """Trains, evaluates and decodes; the work is done by the modules of the task's folder.

    A subclass names itself in `name` (for files) and `title` (for people), has its `config_class`
    and `best_metric`, and fills in the abstract methods: thin calls of its modules.

    Args:
        config: the task's `FinetuningConfig`.
    """

    name = None
    title = None
    config_class = None

    def __init__(self, config):
        self.config = config

    @abc.abstractmethod
    def make_model(self):
        """tf_keras.Model, not yet built, with an `EtcModel` in `etc_model`."""

    @abc.abstractmethod
    def read_examples(self, path):
        """Iterator over the examples of a raw file, as `decode` and the predictor take them."""

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
        records.check_vocabulary(self.config.eval_pattern, self.tokenizer)
        return records.make_eval_dataset(self.config.eval_pattern, config, batch_size)

    def evaluate(self, predictions):
        gold = list(self.read_examples(self.config.gold_file))
        predicted = self.decode(predictions, gold)
        if self.config.predictions_file:
            self.write_predictions(self.config.predictions_file, predicted)
        return self.metrics(gold, predicted)

    def check_run(self, output_dir):
        """Compares the vocabulary with that of a run's training records, as far as it is known.

        Raises:
            ValueError: if they differ.
        """
        run = training.read_run_config(output_dir) or {}
        known = run.get("task", {}).get("vocab_sha256")
        if known and self.tokenizer.source_sha256() not in known:
            raise ValueError(
                f"{output_dir}: the model was trained with another vocabulary than "
                f"{str(self.tokenizer.source_file)!r}. Give that one."
            )

    def run_config(self):
        vocabularies = sorted(set(records.vocabularies(self.config.train_pattern).values()))
        return {**self.config.run_options(), "vocab_sha256": vocabularies}
