"""Majority tagging as a task for `etcmodel.training`."""

from etcmodel import finetuning

from . import evaluate, examples, model
from .run_config import MajorityConfig

__all__ = ["MajorityConfig", "MajorityTask"]


class MajorityTask(finetuning.KeyedLineTask):
    """Trains, evaluates and decodes; the work is done by the modules beside this one.

    Args:
        config: `MajorityConfig`.
    """

    name = "majority_tagging"
    title = "majority tagging"
    config_class = MajorityConfig
    # Exact match stays 0 for a long time, and may be high by chance for a constant answer.
    best_metric = "tag_accuracy"
    decoding_needs_vocabulary = False

    def make_model(self):
        config = self.config
        return model.MajorityTagger(
            config.model_config(), num_labels=config.num_tags, skip_padding=config.skip_padding
        )

    def loss(self, outputs, features):
        return model.loss(outputs, features)

    def read_examples(self, path, check=None):
        return examples.read_examples(path, check)

    def line(self, output):
        return evaluate.prediction(output)

    def metrics(self, examples, predictions):
        return evaluate.metrics(examples, predictions)
