"""Tasks that are configured by a dataclass of options."""

import abc
import functools

from etcmodel import training
from etcmodel.checkpoints import names as names_lib
from etcmodel.finetuning import trained_run
from etcmodel.models import initialization

__all__ = ["OptionsTask", "RecordsTask"]


class OptionsTask(training.Task):
    """A task with a `config`, which is stored with its runs.

    A subclass has `config_class`, a dataclass of options with an `encoder_config`.

    Args:
        config: a `config_class`.
    """

    config_class = None

    def __init__(self, config):
        self.config = config
        self.kept_files = {}  # See `run_files`.

    def run_config(self):
        return trained_run.run_options(self.config)

    def run_config_defaults(self):
        return trained_run.run_option_defaults(self.config_class)

    def run_notes(self):
        return trained_run.run_notes(self.config)

    def run_files(self):
        return self.kept_files


class RecordsTask(OptionsTask):
    """An `OptionsTask` trained on TFRecords; its config has the `DataOptions`."""

    @abc.abstractmethod
    def make_model(self):
        """Makes a new tf_keras.Model, maybe not yet built, that contains an `Encoder`."""

    @functools.cached_property
    def num_train_examples(self):
        """Number of training records: int."""
        return self.config.num_train_examples or training.count_examples(self.config.train_data)

    def build_model(self):
        model = self.make_model()
        model.build()
        if self.config.initialization == "mimetic":
            initialization.mimetic_initialization(names_lib.encoder_of(model))
        return model
