"""SQuAD as a task for `etcmodel.training`, and the format of its records."""

import dataclasses
import os

from etcmodel import finetuning
from etcmodel.feature_checks import FLAG
from etcmodel.models import span_readers

from . import examples, metrics
from .config import SquadConfig

__all__ = ["RecordConfig", "SquadConfig", "SquadTask"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class RecordConfig(finetuning.SpanRecordConfig):
    """The format that the records must have."""

    task = "squad"
    texts = ("example_id",)

    tag_facts: bool = False

    def ranges(self):
        return {**super().ranges(), "max_context": FLAG, "labels/facts": FLAG}

    def label_features(self):
        facts = {"labels/facts": finetuning.int_feature(self.long_seq_length)}
        return {**super().label_features(), **(facts if self.tag_facts else {})}

    def decoding_features(self):
        own = {"max_context": finetuning.int_feature(self.long_seq_length)}
        return {**super().decoding_features(), **own}


class SquadTask(finetuning.KeyedLineTask):
    """Trains, evaluates and decodes, as a `SquadConfig` says, by the modules beside this one."""

    name = "squad"
    title = "SQuAD"
    config_class = SquadConfig
    best_metric = "f1"
    decoding_needs_vocabulary = False

    def __init__(self, config):
        is_v2 = config.version_2_with_negative
        others = ("exact", "best_f1", "best_exact") if is_v2 else ("exact_match",)
        self.other_metrics = dict.fromkeys(others, True)
        super().__init__(config)

    def make_model(self):
        return span_readers.make_span_reader(
            self.config.encoder_config,
            skip_padding=self.config.skip_padding,
            tags_facts=self.config.tag_facts,
            question_as_memory=self.config.question_as_memory,
        )

    def loss(self, outputs, features):
        losses = span_readers.loss(outputs, features, first_is_null=True)
        if self.config.tag_facts:
            facts = span_readers.facts_loss(outputs, features)
            total = losses["loss"] + self.config.facts_loss_weight * facts
            losses |= {"loss": total, "facts_loss": facts}
        return losses

    read_examples = staticmethod(examples.read_examples)

    def line(self, output):
        return metrics.line(output, self.config)

    def combine(self, lines):
        return metrics.combine(lines, self.config)

    def metrics(self, examples, predictions):
        if not self.config.version_2_with_negative:
            return metrics.metrics(examples, _each(predictions, "answer"))
        best = {
            key: next((x["text"] for x in told["nbest"] if x["text"]), "")
            for key, told in predictions.items()
        }
        threshold = self.config.null_score_diff_threshold
        return metrics.metrics(examples, best, _each(predictions, "null_odds"), threshold)

    def write_predictions(self, path, predictions):
        folder, name = os.path.split(path)
        prefix = name.removesuffix(".json").removesuffix("predictions")
        prefix = os.path.join(folder, f"{prefix.removesuffix('_')}_" if prefix else "")
        finetuning.write_json(f"{prefix}nbest_predictions.json", _each(predictions, "nbest"))
        if self.config.version_2_with_negative:
            finetuning.write_json(f"{prefix}null_odds.json", _each(predictions, "null_odds"))
        finetuning.write_json(path, _each(predictions, "answer"))


def _each(predictions, name):
    return {key: told[name] for key, told in predictions.items()}
