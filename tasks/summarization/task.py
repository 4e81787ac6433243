"""Summarization as a task for `etcmodel.training`, and the format of its records."""

import dataclasses
import json
import os

import numpy as np
import tensorflow as tf

from etcmodel import finetuning, serving
from etcmodel.checkpoints import hugging_face, processors, sources
from etcmodel.feature_checks import Range
from etcmodel.finetuning import int_feature, string_feature
from etcmodel.models import systems
from etcmodel.models.seq2seq import generation_config, inputs
from etcmodel.text import processor_files, vocabulary_files

from . import examples, metrics, model
from .config import SummarizationConfig
from .features import PADDING_LABEL

__all__ = [
    "RecordConfig",
    "SummarizationConfig",
    "SummarizationTask",
    "generation_numbers",
    "generation_settings",
]

# The generation settings: from options, and from the initial checkpoint's folder.


# One summary per document, and the same one when a stopped prediction resumes.
_FIXED = {"do_sample": False, "num_return_sequences": 1}


def generation_settings(given, target_length, config, defaults):
    """The `GenerationSettings` of a run, which never samples.

    Args:
        given: dict of the given options.
        target_length: int. Maximum number of new tokens, unless set otherwise.
        config: the model's config.
        defaults: `GenerationConfig` or None.
    Raises:
        ValueError: naming the setting, if one is invalid.
    """
    entries = {**(defaults.entries if defaults else {}), **given}
    if all(entries.get(name) is None for name in ("max_length", "max_new_tokens")):
        given = {**given, "max_new_tokens": target_length}
    return generation_config.settings_of({**given, **_FIXED}, config, defaults)


def generation_numbers(runner, config):
    """The settings of an export that are inputs of its signature, by name.

    Args:
        runner: `serving.GenerationRunner`, of an export with a `generation_config.json`.
        config: `SummarizationConfig`, with the options that override those of the export.
    Raises:
        ValueError: naming an option that can only be changed by a new export.
    """
    exported = generation_config.read_file(runner.asset(generation_config.FILE_NAME))
    model_config, length = config.model_config(), config.target_length
    made = dataclasses.asdict(generation_settings({}, length, model_config, exported))
    wanted = dataclasses.asdict(
        generation_settings(config.generation(), length, model_config, exported)
    )
    for name, value in wanted.items():
        if name not in runner.numbers and value != made[name]:
            raise ValueError(
                f"`{name}` is {made[name]!r} in the export {runner.directory!r}, and cannot be "
                f"changed to {value!r} at prediction. Export with it."
            )
    return {name: wanted[name] for name in runner.numbers}


# The records, and the task.


@dataclasses.dataclass(frozen=True, kw_only=True)
class RecordConfig(finetuning.OneInputRecordConfig):
    """The format that the records must have.

    Attributes:
        target_length: int.
    """

    target_length: int

    task = "summarization"
    deciding_flags = ("summary_fields",)
    length_flags = ("long_seq_length", "target_length")

    def ranges(self):
        labels = Range(PADDING_LABEL, self.vocab_size, "-100, or an id of the model's vocabulary")
        return {**super().ranges(), "labels": labels}

    def label_features(self):
        return {"labels": int_feature(self.target_length)}

    def decoding_features(self):
        own = {"summary": string_feature(), "tokens_left_out": int_feature()}
        return {**super().decoding_features(), **own}


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
    other_metrics = dict.fromkeys(metrics.METRICS, True)
    training_needs_labels = True
    saves_head = True

    def __init__(self, config):
        super().__init__(config)
        self.generation_config = None  # From the run's initial checkpoint.

    def make_model(self):
        return model.Summarizer(self.config.model_config(), self._settings)

    def _settings(self):
        config = self.config
        return generation_settings(
            config.generation(), config.target_length, config.model_config(), self.generation_config
        )

    def initialize(self, model, init_checkpoint):
        source = sources.open_source(init_checkpoint)
        if source.format == sources.SAFETENSORS:
            hugging_face.load(model.generator, source)
        else:
            super().initialize(model, source)
        self.read_folder(os.path.dirname(source.path))

    def read_folder(self, folder):
        found = generation_config.read(folder, self.config.encoder_config)
        if found is None and (run := vocabulary_files.run_folder(folder)):
            found = generation_config.read(run, self.config.encoder_config)
        self.generation_config = found

    def run_files(self):
        # Rejects settings that are invalid, or beyond the model's positions, with the first steps.
        self.make_model().generator.generation_settings(**vars(self._settings()))
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
        return {"loss": inputs.loss(outputs["logits"], features["labels"], smoothing)}

    def loss_weight(self, features):
        return tf.math.count_nonzero(tf.not_equal(features["labels"], PADDING_LABEL))

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
        return metrics.rouge((line["summary"], line["reference"]) for line in lines)

    def pretrained_parts(self, model):
        made, config = model.generator, self.config
        made.generation_config = self._defaults_of_generate()
        if not config.spm_model_file:
            return made, self.tokenizer.own
        files = processors.files_of_vocabulary(config.spm_model_file, has_pieces=True)
        files[processor_files.TOKENIZER_CONFIG] = self._tokenizer_entries()
        return made, processors.VocabularyFiles(files)

    def _defaults_of_generate(self):
        """The `GenerationConfig` with which the model itself makes this run's summaries."""
        known = self.generation_config.entries if self.generation_config else {}
        entries = {**known, **self.config.generation(), **_FIXED}
        if all(entries.get(name) is None for name in ("max_length", "max_new_tokens")):
            entries["max_new_tokens"] = self.config.target_length
        return generation_config.GenerationConfig(entries)

    def _tokenizer_entries(self):
        """What stands beside the sentence pieces, with the offset of the run's ids: bytes."""
        entries = processor_files.foreign_entries(os.path.dirname(self.config.spm_model_file))
        own = systems.find(self.config.encoder_config.model_type).own_tokens
        if own and own[0] == "id_offset":
            entries = {**entries, own[1]: self.config.piece_id_offset}
        return json.dumps(entries, indent=2, sort_keys=True).encode()

    def write_export(self, model, directory, assets):
        settings = vars(self._settings())  # None overrides the value of the model's config.
        given = {name: value for name, value in settings.items() if value is not None}
        text = generation_config.GenerationConfig(given).to_json_string()
        assets = {**assets, generation_config.FILE_NAME: text.encode()}
        weights = self.config.export_weights
        return serving.export_generation(
            model.generator, directory, assets=assets, weights=weights, **settings
        )
