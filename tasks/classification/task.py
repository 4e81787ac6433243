"""Classification as a task for `etcmodel.training`, and the format of its records."""

import dataclasses
import functools

import numpy as np
import tensorflow as tf

from etcmodel import finetuning, serving
from etcmodel.feature_checks import FLAG, Range
from etcmodel.models import heads, sequence_classifiers
from etcmodel.shown_values import as_flag

from . import examples, metrics, model
from .config import BALANCED, MULTI_LABEL, REGRESSION, SINGLE_LABEL, ClassificationConfig

__all__ = ["ClassificationConfig", "ClassificationTask", "RecordConfig"]


# What there is to learn of a text.
_KINDS = {
    SINGLE_LABEL: "one label each",
    MULTI_LABEL: "any number of labels each",
    REGRESSION: "a number each",
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class RecordConfig(finetuning.ProcessedRecordConfig):
    """The format that the records must have.

    Attributes:
        problem_type: str, one of `config.PROBLEM_TYPES`.
        labels: tuple of str.
    """

    problem_type: str
    labels: tuple = ()

    task = "classification"
    deciding_flags = ("problem_type", "labels_file")

    def ranges(self):
        if self.problem_type == REGRESSION:
            return super().ranges()
        is_multi_label = self.problem_type == MULTI_LABEL
        return {
            **super().ranges(),
            "labels": FLAG if is_multi_label else Range(0, len(self.labels)),
        }

    def problem_of_kind(self, name, kind, length):
        if name != "labels":
            return ""
        made = SINGLE_LABEL if length == 1 else MULTI_LABEL
        if self.problem_type == MULTI_LABEL and length == len(self.labels):
            made = MULTI_LABEL  # Which may be of one label.
        if kind == "float_list":
            made = REGRESSION
        if made != self.problem_type:
            return (
                f"the records have {_KINDS[made]} (--problem_type={made}), and the model is for "
                f"{_KINDS[self.problem_type]}. Preprocess again, with "
                f"--problem_type={self.problem_type}, or give a model for {_KINDS[made]}."
            )
        if made == MULTI_LABEL and length != len(self.labels):
            return (
                f"the records have {length} labels to choose from, and the model "
                f"{len(self.labels)}. Preprocess again, with --labels={as_flag(self.labels)}."
            )
        return ""

    def label_features(self):
        if self.problem_type == REGRESSION:
            return {"labels": tf.io.FixedLenFeature([], tf.float32)}
        shape = [len(self.labels)] if self.problem_type == MULTI_LABEL else []
        return {"labels": finetuning.int_feature(*shape)}

    def decoding_features(self):
        return {"example_id": finetuning.string_feature(), **self.label_features()}


_KEPT = ("example_id", "logits", "labels")  # Entries to keep of a record, to save memory.


class ClassificationTask(finetuning.LineTask):
    """Trains, evaluates and decodes; the work is done by the modules beside this one.

    Predictions are a list of dicts: see `metrics.prediction`.

    Args:
        config: `ClassificationConfig`.
    """

    name = "classification"
    title = "classification"
    config_class = ClassificationConfig
    saves_head = True
    decoding_needs_vocabulary = False
    needs_gold = False  # The records have the labels.

    def __init__(self, config):
        kind = config.problem_type
        by_label = dict.fromkeys(metrics.names_by_label(kind, config.labels), True)
        self.other_metrics = {**metrics.BEST_METRICS[kind], **by_label}
        self.best_metric, *_ = self.other_metrics
        self.higher_is_better = self.other_metrics[self.best_metric]
        super().__init__(config)

    @functools.cached_property
    def class_weights(self):
        """list of float, one per label; None for 1 each."""
        config = self.config
        if config.class_weights == BALANCED:
            return model.balanced_weights(config.train_data, config.labels, config.problem_type)
        return list(map(float, config.class_weights)) or None

    def make_model(self):
        self.config.check_labels()
        return sequence_classifiers.make_sequence_classifier(
            self.config.encoder_config,
            num_labels=len(self.config.labels) or 1,
            problem_type=self.config.problem_type,
            pooling=self.config.pooling,
            skip_padding=self.config.skip_padding,
        )

    def loss(self, outputs, features):
        return model.loss(outputs, features, self.config.problem_type, self.class_weights)

    def train_dataset(self, request):
        batches = super().train_dataset(request)
        _ = self.class_weights  # Computed here, since the loss is traced in a graph.
        return batches

    def eval_dataset(self, batch_size):
        finetuning.check_labels(self.config.eval_data, self.config.labels)
        return super().eval_dataset(batch_size)

    def read_examples(self, path, check=None):
        table = self.config.table()
        return examples.example_reader(self.config, with_label=False, table=table)(path, check)

    def line(self, output):
        return metrics.prediction(output, self.config.labels, self.config.problem_type)

    def evaluate(self, predictions):
        kept = [{name: prediction[name] for name in _KEPT} for prediction in predictions]
        if self.config.predictions_file:
            self.write_predictions(self.config.predictions_file, self.decode(kept, None))
        logits, labels = (np.stack([one[name] for one in kept]) for name in _KEPT[1:])
        kind = self.config.problem_type
        return {
            # 0 for a label that is neither predicted nor given, if it chooses the checkpoint.
            self.best_metric: 0.0,
            **metrics.metrics(logits, labels, kind),
            **metrics.by_label(logits, labels, kind, self.config.labels),
        }

    def write_export(self, model, directory, assets):
        config = self.config
        if not config.export_texts:
            return super().write_export(model, directory, assets)
        is_of_labels = config.problem_type != REGRESSION and not config.second_text_field
        if not is_of_labels or not isinstance(model, heads.EtcForSequenceClassification):
            raise ValueError(
                "--export_texts is for labels of single texts by an ETC. Leave the flag out: "
                "`etcmodel serve` and `etcmodel predict` take raw examples by the other export."
            )
        processor = config.features().make_processor(self.tokenizer, pad_to="longest")
        return serving.export_text_model(
            model, directory, processor, labels=config.labels, weights=config.export_weights
        )

    def metrics(self, examples, predictions):
        raise NotImplementedError("`evaluate` measures by the labels in the records.")
