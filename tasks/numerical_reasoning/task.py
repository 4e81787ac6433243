"""Numerical reasoning as a task for `etcmodel.training`."""

from etcmodel import checkpoints, finetuning
from etcmodel.models.gmat import GmatSeq2SeqConfig
from etcmodel.text import number_pieces

from . import evaluate, examples, model
from .run_config import NumericalConfig

__all__ = ["NumericalConfig", "NumericalTask"]


class NumericalTask(finetuning.KeyedLineTask):
    """Trains, evaluates and decodes; the work is done by the modules beside this one.

    Args:
        config: `NumericalConfig`.
    """

    name = "numerical_reasoning"
    title = "numerical reasoning"
    config_class = NumericalConfig
    best_metric = "exact_match"

    def make_model(self):
        start, end = number_pieces.start_and_end(self.tokenizer)
        config = GmatSeq2SeqConfig.of_encoder(
            self.config.model_config(), decoder_start_token_id=start, eos_token_id=end
        )
        return model.AnswerModel(
            config, self.config.max_answer_length, skip_padding=self.config.skip_padding
        )

    def initialize(self, model, init_checkpoint):
        """See `training.Task`; a `GmatModel` initializes both the encoder and the decoder."""
        checkpoints.initialize(model.generator.encoder.gmat, init_checkpoint)

    def loss(self, outputs, features):
        return model.loss(outputs, features)

    def read_examples(self, path, check=None):
        return examples.read_examples(path, check)

    def line(self, output):
        return evaluate.prediction(output, self.tokenizer)

    def metrics(self, examples, predictions):
        return evaluate.metrics(examples, predictions)
