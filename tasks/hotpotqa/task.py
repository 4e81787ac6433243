"""HotpotQA as a task for `etcmodel.training`."""

from etcmodel import finetuning

from . import decode, evaluate, examples, model
from .run_config import HotpotQaConfig

__all__ = ["HotpotQaConfig", "HotpotQaTask"]


class HotpotQaTask(finetuning.FinetuningTask):
    """Trains, evaluates and decodes; the work is done by the modules beside this one.

    Args:
        config: `HotpotQaConfig`.
    """

    name = "hotpotqa"
    title = "HotpotQA"
    config_class = HotpotQaConfig
    best_metric = "joint_f1"

    def make_model(self):
        return model.HotpotQaModel(
            self.config.encoder_config,
            answer_encoding_method=self.config.answer_encoding_method,
            flat_sequence=self.config.flat_sequence,
            skip_padding=self.config.skip_padding,
        )

    def loss(self, outputs, features):
        return model.loss(outputs, features)

    def read_examples(self, path, check=None):
        return examples.read_examples(path, check)

    def decode(self, outputs, examples):
        return decode.generate_predictions(
            outputs, examples, self.tokenizer, self.config.decoding()
        )

    def metrics(self, examples, predictions):
        return {
            **evaluate.metrics(examples, predictions),
            **evaluate.exact_match_counts(examples, predictions),
        }

    def num_predictions(self, predictions):
        return len(predictions["answer"])
