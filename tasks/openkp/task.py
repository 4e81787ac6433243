"""OpenKP as a task for `etcmodel.training`."""

from etcmodel import finetuning

from . import decode, evaluate, examples, layout, loss, model
from .run_config import OpenKpConfig

__all__ = ["OpenKpConfig", "OpenKpTask"]


class OpenKpTask(finetuning.FinetuningTask):
    """Trains, evaluates and decodes; the work is done by the modules beside this one.

    Predictions are a dict from URL to list of phrases, best first.

    Args:
        config: `OpenKpConfig`.
    """

    name = "openkp"
    title = "OpenKP"
    config_class = OpenKpConfig
    best_metric = "f1@3"
    decoding_needs_vocabulary = False

    def make_model(self):
        return model.OpenKpModel(
            self.config.encoder_config,
            visual_config=self.config.visual(),
            kp_max_length=self.config.kp_max_length,
            max_position_predictions=self.config.max_position_predictions,
            skip_padding=self.config.skip_padding,
        )

    def loss(self, outputs, features):
        return loss.loss(
            outputs,
            features,
            label_occurrences=self.config.label_occurrences,
            additive_smoothing_mass=self.config.additive_smoothing_mass,
            release_compatible=self.config.release_compatible,
        )

    def read_examples(self, path, check=None):
        """By default, without pages that have no record; evaluation files need no VDOM."""
        return examples.read_examples(path, check or self._check_scored)

    def _check_scored(self, page):
        if page.vdom is not None:
            layout.check_page(page, self.config.features())

    def decode(self, outputs, examples):
        return decode.predictions(
            outputs,
            decode.words_by_url(examples),
            self.config.max_kp_predictions,
            release_compatible=self.config.release_compatible,
        )

    def metrics(self, examples, predictions):
        removed = self.config.eval_fraction_of_removed_examples
        return evaluate.metrics(map(evaluate.TextExample.of, examples), predictions, removed)

    def write_predictions(self, path, predictions):
        lines = (decode.submission_line(*item) + "\n" for item in predictions.items())
        finetuning.write_text(path, lines)
