"""TriviaQA as a task for `etcmodel.training`."""

import json

from etcmodel import finetuning
from etcmodel.models import span_readers

from . import decode, evaluate, examples
from .run_config import TriviaQaConfig

__all__ = ["TriviaQaConfig", "TriviaQaTask"]


class TriviaQaTask(finetuning.KeyedLineTask):
    """Trains, evaluates and decodes, as a `TriviaQaConfig` says, by the modules beside this one."""

    name = "triviaqa"
    title = "TriviaQA"
    config_class = TriviaQaConfig
    best_metric = "f1"
    decoding_needs_vocabulary = False

    def make_model(self):
        return span_readers.make_span_reader(
            self.config.encoder_config, skip_padding=self.config.skip_padding
        )

    def loss(self, outputs, features):
        return span_readers.loss(outputs, features)

    def read_examples(self, path, check=None):
        return examples.read_examples(path, check)

    def line(self, output):
        return decode.answers_of_window(output, self.config)

    def combine(self, lines):
        return decode.combine(lines, self.config)

    def metrics(self, examples, predictions):
        return evaluate.metrics(examples, _answers(predictions), self.config.by_document)

    def write_predictions(self, path, predictions):
        details = (json.dumps({"id": key, **told}) + "\n" for key, told in predictions.items())
        finetuning.write_text(f"{path.removesuffix('.json')}_details.jsonl", details)
        finetuning.write_json(path, _answers(predictions))


def _answers(predictions):
    return {key: told["answer"] for key, told in predictions.items()}
