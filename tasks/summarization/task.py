"""Summarization as a task for `etcmodel.training`."""

import os

import numpy as np

from etcmodel import finetuning, serving
from etcmodel.checkpoints import seq2seq, sources
from etcmodel.models.seq2seq import generation_config, labels

from . import evaluate, examples, generating, model
from .run_config import SummarizationConfig

__all__ = ["SummarizationConfig", "SummarizationTask"]


class SummarizationTask(finetuning.MeasuredLineTask):
    """Trains, evaluates and decodes; the work is done by the modules beside this one.

    Predictions are dicts of `id`, `summary`, `tokens_left_out` (of the document, since it was too
    long) and, of records, `reference`.

    Args:
        config: `SummarizationConfig`.
    """

    name = "summarization"
    title = "summarization"
    config_class = SummarizationConfig
    best_metric = "rouge2"

    def __init__(self, config):
        super().__init__(config)
        self.generation_config = None  # From the run's initial checkpoint.

    def make_model(self):
        return model.Summarizer(self.config.model_config(), self._settings)

    def _settings(self):
        config = self.config
        return generating.settings(
            config.generation(), config.target_length, config.model_config(), self.generation_config
        )

    def initialize(self, model, init_checkpoint):
        source = sources.open_source(init_checkpoint)
        if source.format == sources.SAFETENSORS:
            seq2seq.load_weights(model.generator, source)
        else:
            super().initialize(model, source)
        folder = os.path.dirname(source.path)
        self.generation_config = generation_config.read(folder, self.config.encoder_config)

    def run_files(self):
        self._settings()  # Rejects invalid settings before training.
        if self.generation_config is None:
            return super().run_files()
        text = self.generation_config.to_json_string()
        return {**super().run_files(), generation_config.FILE_NAME: text}

    def check_run(self, output_dir):
        super().check_run(output_dir)
        if output_dir:
            found = generation_config.read_file(
                os.path.join(output_dir, generation_config.FILE_NAME)
            )
            self.generation_config = found or self.generation_config

    def loss(self, outputs, features):
        smoothing = self.config.label_smoothing
        return {"loss": labels.loss(outputs["logits"], features["labels"], smoothing)}

    def read_examples(self, path, check=None):
        table = self.config.table()
        return examples.example_reader(self.config, with_summary=False, table=table)(path, check)

    def source(self):
        return {"generation": self.config.generation()}

    def line(self, output):
        told = {
            "id": finetuning.text_of(output["example_id"]),
            "summary": self.tokenizer.decode(output["sequences"]),
            "tokens_left_out": int(np.ravel(output["tokens_left_out"])[0]),
        }
        if "summary" in output:
            told["reference"] = finetuning.text_of(output["summary"])
        return told

    def metrics_of(self, lines):
        return evaluate.rouge((line["summary"], line["reference"]) for line in lines)

    def write_export(self, model, directory, assets):
        settings = vars(self._settings())  # None overrides the value of the model's config.
        given = {name: value for name, value in settings.items() if value is not None}
        text = generation_config.GenerationConfig(given).to_json_string()
        assets = {**assets, generation_config.FILE_NAME: text.encode()}
        return serving.export_generation(model.generator, directory, assets=assets, **settings)
