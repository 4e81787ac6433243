"""WikiHop as a task for `etcmodel.training`."""

from etcmodel import finetuning

from . import evaluate, examples, model
from .run_config import WikiHopConfig

__all__ = ["WikiHopConfig", "WikiHopTask"]


class WikiHopTask(finetuning.FinetuningTask):
    """Trains, evaluates and decodes; the work is done by the modules beside this one.

    Args:
        config: `WikiHopConfig`.
    """

    name = "wikihop"
    title = "WikiHop"
    config_class = WikiHopConfig
    best_metric = "accuracy"
    decoding_needs_vocabulary = False
    needs_gold = False  # The records contain the answers as well.

    def make_model(self):
        return model.WikiHopModel(
            self.config.model_config(),
            add_final_layer=self.config.add_final_layer,
            enable_l2g_linking=self.config.enable_l2g_linking,
            candidate_ignore_hard_g2l=self.config.candidate_ignore_hard_g2l,
            query_ignore_hard_g2l=self.config.query_ignore_hard_g2l,
            use_one_hot_embeddings=self.config.use_one_hot_embeddings,
            skip_padding=self.config.skip_padding,
        )

    def loss(self, outputs, features):
        return model.loss(outputs, features, label_smoothing=self.config.label_smoothing)

    def read_examples(self, path, check=None):
        return examples.read_examples(path, check)

    def decode(self, outputs, examples):
        return evaluate.predict(
            outputs, examples, release_compatible=self.config.release_compatible
        )

    def metrics(self, examples, predictions):
        return evaluate.metrics(examples, predictions)

    def evaluate(self, predictions):
        if self.config.eval_gold:
            return super().evaluate(predictions)
        return evaluate.record_metrics(predictions)  # There are no texts to predict.
