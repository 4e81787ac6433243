"""TriviaQA as a task for `etcmodel.training`, and the format of its records."""

import dataclasses
import json

from etcmodel import finetuning
from etcmodel.models import span_readers

from . import examples, metrics
from .config import TriviaQaConfig

__all__ = ["RecordConfig", "TriviaQaConfig", "TriviaQaTask"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class RecordConfig(finetuning.SpanRecordConfig):
    """The format that the records must have."""

    task = "triviaqa"
    texts = ("question_id", "document")


class TriviaQaTask(finetuning.KeyedLineTask):
    """Trains, evaluates and decodes, as a `TriviaQaConfig` says, by the modules beside this one."""

    name = "triviaqa"
    title = "TriviaQA"
    config_class = TriviaQaConfig
    best_metric = "f1"
    other_metrics = {"em": True}
    decoding_needs_vocabulary = False

    def make_model(self):
        return span_readers.make_span_reader(
            self.config.encoder_config, skip_padding=self.config.skip_padding
        )

    loss = staticmethod(span_readers.loss)
    read_examples = staticmethod(examples.read_examples)

    def line(self, output):
        return metrics.answers_of_window(output, self.config)

    def combine(self, lines):
        return metrics.combine(lines, self.config)

    def metrics(self, examples, predictions):
        return metrics.metrics(examples, _answers(predictions), self.config.by_document)

    def write_predictions(self, path, predictions):
        details = (json.dumps({"id": key, **told}) + "\n" for key, told in predictions.items())
        finetuning.write_text(f"{path.removesuffix('.json')}_details.jsonl", details)
        finetuning.write_json(path, _answers(predictions))


def _answers(predictions):
    return {key: told["answer"] for key, told in predictions.items()}
