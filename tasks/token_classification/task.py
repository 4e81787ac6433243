"""Token classification as a task for `etcmodel.training`, and the format of its records."""

import dataclasses
import itertools

import tensorflow as tf

from etcmodel import atomic_files, finetuning
from etcmodel.feature_checks import Range
from etcmodel.models import token_classifiers

from . import examples, metrics, model
from .config import TokenClassificationConfig
from .features import NOTHING

__all__ = ["RecordConfig", "TokenClassificationConfig", "TokenClassificationTask"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class RecordConfig(finetuning.ProcessedRecordConfig):
    """The format that the records must have.

    Attributes:
        labels: tuple of str.
    """

    labels: tuple = ()

    task = "token_classification"
    deciding_flags = ("labels_file",)

    def ranges(self):
        own = {
            "labels": Range(NOTHING, len(self.labels)),
            "word_ids": Range(NOTHING, None, "-1, or the number of a word"),
        }
        return {**super().ranges(), **own}

    def label_features(self):
        lengths = {"labels": finetuning.int_feature(self.long_seq_length)}
        return {**lengths, "tags": finetuning.string_feature()}

    def decoding_features(self):
        texts = ("example_id", "words", "tags")
        return {
            **{name: finetuning.string_feature() for name in texts},
            "word_ids": finetuning.int_feature(self.long_seq_length),
        }


class TokenClassificationTask(finetuning.KeyedLineTask):
    """Trains, evaluates and decodes; the work is done by the modules beside this one.

    Predictions are the dict of `metrics.combine`.

    Args:
        config: `TokenClassificationConfig`.
    """

    name = "token_classification"
    title = "token classification"
    config_class = TokenClassificationConfig
    saves_head = True
    decoding_needs_vocabulary = False
    needs_gold = False  # The records have the tags.

    def __init__(self, config):
        self.best_metric, *others = metrics.best_metrics(config.labels)
        self.other_metrics = dict.fromkeys(others, True)
        super().__init__(config)

    def make_model(self):
        self.config.check_labels()
        return token_classifiers.make_token_classifier(
            self.config.encoder_config,
            num_labels=len(self.config.labels),
            skip_padding=self.config.skip_padding,
        )

    loss = staticmethod(model.loss)

    def loss_weight(self, features):
        return tf.math.count_nonzero(tf.not_equal(features["labels"], NOTHING))

    def eval_dataset(self, batch_size):
        finetuning.check_labels(self.config.eval_data, self.config.labels)
        return super().eval_dataset(batch_size)

    def read_examples(self, path, check=None):
        return examples.example_reader(self.config, with_tags=False)(path, check)

    line = staticmethod(metrics.line)

    def combine(self, lines):
        return metrics.combine(lines, self.config.labels)

    def write_predictions(self, path, predictions):
        if path.endswith(".json"):
            super().write_predictions(path, predictions)
        else:
            nothing = "O" if metrics.are_entities(self.config.labels) else "-"
            lines = (_conll_lines(told, nothing) for told in predictions.values())
            atomic_files.write_text(path, itertools.chain(*lines))

    def metrics(self, examples, predictions):
        found = metrics.metrics(predictions.values(), self.config.labels)
        # 0 for a kind that is neither predicted nor given, if it chooses the checkpoint.
        return {self.best_metric: 0.0, **found}


def _conll_lines(told, nothing):
    """Lines of word, tag if known, and predicted tag or `nothing`; a blank one ends a sentence."""
    names = [name for name in ("words", "gold", "tags") if name in told]
    columns = (examples.sentences_of(told["words"], told[name]) for name in names)
    for sentence in zip(*columns, strict=True):
        for cells in zip(*sentence, strict=True):
            yield " ".join("_".join((cell or nothing).split()) for cell in cells) + "\n"
        yield "\n"
