"""NQ as a task for `etcmodel.training`, and the format of its records."""

import dataclasses
import logging

from etcmodel import finetuning
from etcmodel.feature_checks import FLAG, Range
from etcmodel.finetuning import int_feature

from . import examples, metrics, model
from .config import ANSWER_TYPES, NqConfig, special_token_ids
from .features import GLOBAL_FEATURES, LABELS, LONG_FEATURES, PADDING

__all__ = ["NqConfig", "NqTask", "RecordConfig"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class RecordConfig(finetuning.RecordConfig):
    """The format that the records must have."""

    task = "nq"
    token_id_features = ("token_ids", "global_token_ids")
    int64_features = ("unique_ids",)
    padding = PADDING
    deciding_flags = ("long_seq_length", "global_seq_length")

    def ranges(self):
        place = Range(-1, "token_ids", "-1, or the place of a long token")
        return {
            **super().ranges(),
            "sentence_ids": Range(-1, "global_token_ids", "-1, or the place of a global token"),
            "long_breakpoints": FLAG,
            "global_breakpoints": FLAG,
            **dict.fromkeys(LABELS, place),
            # The windows of a page without annotations, -1, would count as without an answer.
            "answer_type": Range(0, len(ANSWER_TYPES), "training needs annotations"),
        }

    def model_features(self):
        return {
            **{name: int_feature(self.long_seq_length) for name in LONG_FEATURES},
            **{name: int_feature(self.global_seq_length) for name in GLOBAL_FEATURES},
        }

    def label_features(self):
        return {name: int_feature() for name in LABELS}

    def decoding_features(self):
        return {
            "unique_ids": int_feature(),
            "token_pos": int_feature(self.long_seq_length),
        }


class NqTask(finetuning.FinetuningTask):
    """Trains, evaluates and decodes; the work is done by the modules beside this one.

    Args:
        config: `NqConfig`.
    """

    name = "nq"
    title = "Natural Questions"
    config_class = NqConfig
    best_metric = "mean-best-threshold-f1"
    other_metrics = {
        f"{kind}-{name}-f1": True
        for kind in ("long", "short")
        for name in ("best-threshold", "answer")
    }
    decoding_needs_vocabulary = False
    decoding_needs_examples = False
    predicts_by_id = True

    def make_model(self):
        config = self.config
        return model.NqModel(
            config.encoder_config,
            mask_long_output=config.mask_long_output,
            skip_padding=config.skip_padding,
            **(self._special_tokens() if config.mask_long_output else {}),
        )

    def _special_tokens(self):
        """The ids that the mask of the output depends on."""
        names = ("cls_token_id", "sep_token_id")
        ids = {name: getattr(self.config, name) for name in names}
        if None in ids.values():
            if not self.config.has_vocabulary():
                raise ValueError(
                    "--mask_long_output needs --cls_token_id and --sep_token_id (101 and 102 with "
                    "BERT's vocabulary), or --vocab_file or --spm_model_file, which tell them."
                )
            known = special_token_ids(self.tokenizer)
            ids = {name: known[name] if i is None else i for name, i in ids.items()}
        return ids

    loss = staticmethod(model.loss)
    read_examples = staticmethod(examples.read_examples)

    def eval_dataset(self, batch_size):
        for file, noted in finetuning.settings(self.config.eval_data or "").items():
            rate = noted.get("include_unknown_rate", 1.0)
            if noted.get("is_training") and rate < 1:
                raise ValueError(
                    f"{file}: the records are for training: by the annotations, a share of "
                    f"{1 - rate:g} of the windows without an answer was left out. Preprocess "
                    "again, with --is_training=false."
                )
        return super().eval_dataset(batch_size)

    def decode(self, outputs, examples):
        del examples  # Predictions only need the words' numbers.
        return metrics.generate_predictions(outputs, self.config.decoding())

    def metrics(self, examples, predictions):
        """`examples` are only the annotations, by example id: see `examples.read_gold`."""
        return metrics.metrics(examples, predictions)

    def evaluate(self, predictions):
        # Without the pages; malformed lines are skipped, as in preprocess.
        annotations = examples.read_gold(
            self.config.eval_gold, skip=lambda line: logging.warning("skipped %s", line)
        )
        predicted = self.decode(predictions, None)
        _warn_of_unpredicted(annotations, predicted)
        if self.config.predictions_file:
            self.write_predictions(self.config.predictions_file, predicted)
        if self.config.curve_plot_file:
            verdicts = metrics.verdicts(annotations, predicted)
            groups = [list(by_id.values()) for by_id in verdicts]
            metrics.plot_curves(*groups, self.config.curve_plot_file)
        return self.metrics(annotations, predicted)

    def num_predictions(self, predictions):
        return len(predictions["predictions"])


def _warn_of_unpredicted(annotations, predictions):
    missing = set(annotations) - {entry["example_id"] for entry in predictions["predictions"]}
    if missing:
        logging.warning(
            "%d of %d gold examples have no prediction and count as unanswered, such as %d.",
            len(missing),
            len(annotations),
            min(missing),
        )
