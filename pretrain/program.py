"""The program behind `run_pretraining`, once its flags are parsed."""

import dataclasses
import json
import os
import typing

from etcmodel import checkpoints, finetuning, training
from etcmodel import options as options_lib
from etcmodel.checkpoints import processors
from etcmodel.finetuning import mode_program, model_folder, trained_run
from etcmodel.models import presets
from etcmodel.models.heads.of_etc import EtcForMaskedLM
from etcmodel.text import processor_files, vocabulary
from etcmodel.text.byte_bpe import ByteLevelTokenizer
from etcmodel.text.processor import EtcProcessor

from . import base_program, task
from . import config as config_lib
from . import model as model_lib
from .config import PretrainConfig
from .model import PretrainModel

__all__ = ["Program", "save"]

# Saves a pre-trained model as a folder that fine-tuning can start from.


def save(model, directory, tokenizer=None, *, do_lower_case=True, copy_local_to_global=True):
    """Writes a pre-trained model with `checkpoints.save_pretrained`, including its vocabulary.

    The folder's processor gives sentences the global token that they were pre-trained with.

    Args:
        model: `PretrainModel`, or the result of `model.make_text_model`.
        directory: str.
        tokenizer: tokenizer with the vocabulary, or None.
        do_lower_case: bool. Whether the text was lower-cased; WordPiece only.
        copy_local_to_global: bool. See `checkpoints.copy_local_to_global`; only for Longformer.
    """
    settings = {}
    if isinstance(model, PretrainModel):
        settings = _settings_of_sentences(model)
        masked_lm = EtcForMaskedLM(model.etc_model)
        masked_lm.language_model.set_weights(model.mlm_head.get_weights())
    else:
        masked_lm = model_lib.plain_masked_lm(model)
    if copy_local_to_global and masked_lm.encoder.config.model_type == "longformer":
        checkpoints.copy_local_to_global(masked_lm)
    checkpoints.save_pretrained(masked_lm, directory, _files_of(tokenizer, do_lower_case, settings))


def _settings_of_sentences(model):
    """The processor's settings, where they do not follow from the config: dict, else empty.

    The config of a model that began as a BERT, or as a ModernBERT, has [CLS] for global tokens.
    """
    usual = processors.trained_settings(model.etc_model.config)
    trained = {**usual, "global_token_id": model.sentence_global_token_id}
    return trained if trained != usual else {}


def _files_of(tokenizer, do_lower_case, processor_settings):
    """The writer of the vocabulary's files and of the settings, or None."""
    if tokenizer is None:
        return None
    if isinstance(tokenizer, ByteLevelTokenizer):
        return EtcProcessor(tokenizer, **processor_settings) if processor_settings else tokenizer
    name = processor_files.SENTENCE_PIECES if tokenizer.sp_model else processor_files.WORD_PIECES
    settings = {
        "do_lower_case": do_lower_case or bool(tokenizer.sp_model),
        "split_punctuation": tokenizer.split_punctuation,
    }
    files = {
        name: vocabulary.file_content(tokenizer.source_file),
        processor_files.TOKENIZER_CONFIG: json.dumps(settings).encode(),
    }
    if processor_settings:
        of_processor = json.dumps({**settings, **processor_settings}, indent=2)
        files[processors.PROCESSOR_FILE] = of_processor.encode()
    return processors.VocabularyFiles(files)


# The program.


_LOWER_CASE = "do_lower_case"


@dataclasses.dataclass(frozen=True)
class Program(base_program.BaseProgram):
    """The program; see the base class."""

    needed: typing.ClassVar[dict] = {
        "train": ("train_data",),
        "evaluate": ("eval_data",),
        "continuous_eval": ("eval_data",),
    }

    def option_flags(self):
        return config_lib.option_flags(self.flag_values)

    def modes(self):
        return {
            "train": self._train,
            "evaluate": self._evaluate,
            "continuous_eval": lambda: self.evaluate_continuously(self._evaluation),
            "save_pretrained": self._save_pretrained,
        }

    preset = staticmethod(presets.preset)

    def _train(self):
        task = self._make_task()
        changes = self.changes()
        training_config = self._training_config()
        resumed = training.resumed_config(training_config, changes)
        strategy = training.build_strategy(training_config)
        _check_devices(task.config, training_config, strategy)
        options_text = self._options_text(task.config, resumed)
        task.kept_files = base_program.kept_files(options_text, task.config.encoder_config)
        folder = training_config.output_dir
        ending = mode_program.Ending(task, folder)
        if metrics := training.train(
            task, training_config, strategy, changes=changes, callbacks=[ending]
        ):
            training.show_metrics(metrics)
        saved, given = self.pretrained_dir(), {"output_dir": folder}
        if self._flag("pretrained_dir"):
            given["pretrained_dir"] = saved
        ending.tell(
            mode_program.command("report", run=folder, output=os.path.join(folder, "report.html")),
            mode_program.command_of_program("save_pretrained", **given),
            mode_program.command(
                "train NAME", init_checkpoint=saved, train_data="RECORDS", output_dir="RUN"
            ),
        )

    def _evaluate(self):
        task, training_config, _ = self._evaluation()
        training.show_metrics(training.evaluate(task, training_config))

    def _evaluation(self):
        """The task, the `TrainingConfig`, and the last step or None, of the run or the flags."""
        run = trained_run.TrainedRun.find(self._flag("output_dir"))
        task = self._make_task(run)
        if run is None:
            return task, self._training_config(), None
        run.check_vocabularies({task.config.tokenizer.source_file: task.vocab_sha256})
        return task, self._training_config(run), run.last_step

    def _save_pretrained(self):
        task, training_config, _ = self._evaluation()
        model = training.load_model(task, training_config)
        directory = self.pretrained_dir()
        save(
            model,
            directory,
            task.config.tokenizer,
            do_lower_case=self._is_lower_case(task.config),
            copy_local_to_global=self._flag("copy_local_to_global"),
        )
        print(directory)

    def _is_lower_case(self, config):
        """Whether text is lower-cased, as in training: bool."""
        run, given = trained_run.TrainedRun.find(self._flag("output_dir")), self._flag(_LOWER_CASE)
        known = run.notes.get(_LOWER_CASE) if run else None
        if known is None:
            known = task.is_lower_case(config.train_data)
        if None not in (known, given):
            trained_run.check_given(_LOWER_CASE, given, known, "the data of the training")
        known = given if known is None else known
        is_byte_level = processor_files.is_byte_level(config.vocab_file)
        if known is None and not (config.spm_model_file or is_byte_level):
            raise ValueError(
                f"--{_LOWER_CASE}: neither the run nor settings beside its training records tell "
                "whether text was lower-cased. Give the flag as preprocess had it."
            )
        return known is not False  # Only WordPiece depends on it.

    def _make_task(self, run=None):
        """The task from the flags and, after training, from the `TrainedRun`."""
        if run is not None:
            given = self._encoder_config() if self._is_model_given() else None
            encoder_config = run.encoder_config(given)
            values = run.values(PretrainConfig, self.flag_values)
            if not (values["vocab_file"] or values["spm_model_file"]):
                values |= run.vocabulary()
        else:
            of_records = self._options_of_records()
            begun = trained_run.TrainedRun.find(self._flag("output_dir"))
            encoder_config = self._first_config(begun, of_records)
            defaults = config_lib.defaults_of(encoder_config.model_type)
            if begun and "whole_words" not in begun.options:
                defaults.pop("whole_words", None)  # Runs of earlier versions mask whole words.
            self.option_flags().set_defaults(defaults)
            values = self.option_flags().values("task")
            values |= {**self._vocabulary(begun, values), **of_records}
        config = PretrainConfig(encoder_config=encoder_config, **values)
        options_lib.check_files(config)
        _ = config.masking  # Rejects invalid fractions and vocabularies before anything is read.
        return task.PretrainTask(config)

    def _options_of_records(self):
        """In mode train, the options that the training records were made with: dict."""
        if self._flag("run_mode") != "train":
            return {}
        settings = finetuning.settings(self._flag("train_data"))
        return trained_run.options_of_records(PretrainConfig, self.flag_values, settings)

    def _first_config(self, begun, of_records):
        """The `EncoderConfig` of the flags, of the resumed run, or of --init_checkpoint."""
        folder = self._flag("init_checkpoint")
        if self._is_model_given() or not (begun or folder):
            return self._encoder_config()
        if begun:
            return self._with_period(begun.encoder_config())
        # Masked sentences are encoded by themselves, and may be longer than a window.
        names = ("long_seq_length", "max_cpc_sentence_length", "global_seq_length")
        *long, of_globals = (of_records.get(name, self._flag(name)) for name in names)
        return self._with_period(model_folder.encoder_config(folder, max(long), of_globals))

    def _vocabulary(self, begun, values):
        """The vocabulary options of the resumed run or of the folder: dict."""
        if begun:
            is_given = values["vocab_file"] or values["spm_model_file"]
            return {} if is_given else begun.vocabulary()
        given = options_lib.values_from_flags(PretrainConfig, self.flag_values, only_given=True)
        settings = finetuning.settings(self._flag("train_data"))
        found = model_folder.vocabulary(self._flag("init_checkpoint"), given, settings)
        return {name: found[name] for name in found if name in values}


def _check_devices(config, training_config, strategy):
    """Checks that devices need not communicate inside a loop or an XLA function."""
    gathers = config.use_cpc and config.gather_negatives
    is_nested = training_config.gradient_accumulation_steps > 1 or training_config.jit_compile
    if gathers and is_nested and strategy.num_replicas_in_sync > 1:
        raise ValueError(
            "--gradient_accumulation_steps and --jit_compile need --nogather_negatives on "
            f"several devices; there are {strategy.num_replicas_in_sync}."
        )
