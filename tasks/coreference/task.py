"""Coreference as a task for `etcmodel.training`, and the format of its records."""

import dataclasses
import itertools

from etcmodel import atomic_files, finetuning
from etcmodel.checkpoints import names as names_lib
from etcmodel.feature_checks import Range

from . import examples, metrics, model
from .config import CoreferenceConfig
from .features import GENRES, NOTHING

__all__ = ["CoreferenceConfig", "CoreferenceTask", "RecordConfig"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class RecordConfig(finetuning.ProcessedRecordConfig):
    """The format that the records must have."""

    task = "coreference"
    padding = {**finetuning.ProcessedRecordConfig.padding, "word_ids": NOTHING}

    def ranges(self):
        slot = Range(NOTHING, "token_ids", "-1, or a word in the window")
        number = Range(NOTHING, None, "-1, or a number from 0")
        return {
            **super().ranges(),
            **dict.fromkeys(("word_ids", "mention_starts", "mention_ends"), slot),
            **dict.fromkeys(("mention_clusters", "words"), number),
            "speaker_ids": Range(0, None, "0, or the number of a speaker"),
            "genres": Range(0, len(GENRES), "the number of a genre"),
        }

    def model_features(self):
        own = dict.fromkeys(model.WORD_FEATURES, finetuning.int_feature(self.long_seq_length))
        return {**super().model_features(), **own, "genres": finetuning.int_feature(1)}

    def label_features(self):
        return dict.fromkeys(model.LABELS, finetuning.int_feature(self.long_seq_length))

    def decoding_features(self):
        return {
            **dict.fromkeys(("example_id", "document"), finetuning.string_feature()),
            "words": finetuning.int_feature(self.long_seq_length),
        }


class CoreferenceTask(finetuning.KeyedLineTask):
    """Trains, evaluates and decodes; the work is done by the modules beside this one.

    Predictions are the dict of `metrics.combine`.

    Args:
        config: `CoreferenceConfig`.
    """

    name = "coreference"
    title = "coreference"
    config_class = CoreferenceConfig
    best_metric = "f1"
    other_metrics = dict.fromkeys(metrics.NAMES, True)
    decoding_needs_vocabulary = False
    needs_gold = False  # The records have the clusters.

    def make_model(self):
        config = self.config
        return model.CoreferenceModel(
            config.encoder_config,
            max_span_width=config.max_span_width,
            top_span_ratio=config.top_span_ratio,
            max_top_antecedents=config.max_top_antecedents,
            coref_depth=config.coref_depth,
            ffnn_size=config.ffnn_size,
            feature_size=config.feature_size,
            dropout=config.head_dropout,
            skip_padding=config.skip_padding,
        )

    loss = staticmethod(model.loss)

    def learning_rate_shares(self, model):
        of_encoder = {id(x) for x in names_lib.encoder_variables(model).values()}
        others = [x for x in model.trainable_variables if id(x) not in of_encoder]
        factor = self.config.head_rate_factor
        own = [(x, factor) for x in others] if factor != 1.0 else []
        return [*super().learning_rate_shares(model), *own]

    def read_examples(self, path, check=None):
        return examples.example_reader(with_clusters=False)(path, check)

    line = staticmethod(metrics.line)
    combine = staticmethod(metrics.combine)

    def write_predictions(self, path, predictions):
        if path.endswith(".json"):
            super().write_predictions(path, predictions)
        else:
            names = ("sentences", "speakers", "clusters")
            lines = (
                examples.conll_lines(key, *(told[name] for name in names))
                for key, told in predictions.items()
            )
            atomic_files.write_text(path, itertools.chain.from_iterable(lines))

    def metrics(self, examples, predictions):
        return metrics.metrics(predictions.values())
