"""What `run_pretraining` does once its flags are parsed."""

import dataclasses
import os

from absl import flags

from etcmodel import atomic_files, finetuning, program_end, quiet, training
from etcmodel import options as options_lib
from etcmodel.finetuning import contradictions, trained_run
from etcmodel.models import encoders, presets

from . import run_config
from . import task as task_lib
from .run_config import PretrainConfig

__all__ = ["Program"]


@dataclasses.dataclass(frozen=True)
class Program:
    """The program.

    Attributes:
        flag_values: `flags.FlagValues` to define and read.
    """

    flag_values: flags.FlagValues = flags.FLAGS

    @property
    def _options(self):
        return run_config.option_flags(self.flag_values)

    def define_flags(self):
        """Defines all flags."""
        self._options.define()

    def main(self, unused_argv):
        """Does what the parsed flags say; prints errors as one line and exits with 1."""
        quiet.show_own_messages()
        modes = {"train": self._train, "evaluate": self._evaluate}
        with program_end.ends_in_one_line():
            self._options.resolve_aliases()
            self._options.read_config()
            mode = self._flag("run_mode")
            if mode not in modes:
                raise ValueError(f"--run_mode must be one of {', '.join(modes)}. Received: {mode}")
            modes[mode]()

    def _train(self):
        training_config = self._training_config()
        task = self._make_task("train_data")
        strategy = training.build_strategy(training_config)
        self._check_devices(task.config, training_config, strategy)
        sections = {"program": self._options.values("program"), "training": training_config}
        text = options_lib.dump({**sections, "task": task.config})
        task.kept_files = {"options.yaml": text}
        metrics = training.train(task, training_config, strategy)
        self._write_config(task.config.encoder_config)
        if metrics:
            training.show_metrics(metrics)

    def _evaluate(self):
        run = trained_run.TrainedRun.find(self._flag("output_dir"))
        task = self._make_task("eval_data", run)
        if run:
            run.check_vocabularies({task.config.tokenizer.source_file: task.vocab_sha256})
            training_config = run.training_config(self.flag_values)
        else:
            training_config = self._training_config()
        training.show_metrics(training.evaluate(task, training_config))

    def _make_task(self, needed, run=None):
        """The task that the flags describe, and after training the run.

        Args:
            needed: str. The field of the records that it needs.
            run: `TrainedRun` or None.
        """
        config_class = PretrainConfig
        for name in ("output_dir", needed):
            if not self._flag(name):
                raise ValueError(f"--run_mode={self._flag('run_mode')} also needs --{name}.")
        if run:
            is_given = self._flag("preset") or self._flag("model_config_file")
            encoder_config = run.encoder_config(self._encoder_config() if is_given else None)
            values = run.values(config_class, self.flag_values)
            if not (values["vocab_file"] or values["spm_model_file"]):
                values |= run.vocabulary()
        else:
            encoder_config = self._encoder_config()
            values = self._options.values("task")
        if needed == "train_data":
            settings = finetuning.settings(values["train_data"])
            values |= contradictions.features_of_records(config_class, self.flag_values, settings)
        config = config_class(encoder_config=encoder_config, **values)
        options_lib.check_files(config)
        _ = config.masking  # Refuses shares and vocabularies before anything is read.
        return task_lib.PretrainTask(config)

    def _encoder_config(self):
        preset, path = self._flag("preset"), self._flag("model_config_file")
        if bool(preset) == bool(path):
            raise ValueError("Either --preset or --model_config_file must be given, and not both.")
        if preset:
            # The paper's default for global tokens (section 4.2).
            config = presets.preset(preset, use_hard_g2l_mask=True)
        else:
            config = encoders.read_config(path)
        if self._flag("grad_checkpointing_period") is not None:
            period = self._flag("grad_checkpointing_period")
            config = encoders.replace(config, grad_checkpointing_period=period)
        return config

    def _check_devices(self, config, training_config, strategy):
        """Devices cannot talk to each other from within a loop or XLA's own function."""
        is_nested = training_config.gradient_accumulation_steps > 1 or training_config.jit_compile
        if config.gather_negatives and is_nested and strategy.num_replicas_in_sync > 1:
            raise ValueError(
                "--gradient_accumulation_steps and --jit_compile need --nogather_negatives on "
                f"several devices; there are {strategy.num_replicas_in_sync}."
            )

    def _write_config(self, encoder_config):
        name = encoders.encoder_type(encoder_config.model_type).config_file
        path = os.path.join(self._flag("output_dir"), name)
        atomic_files.write_text(path, [encoder_config.to_json_string()])

    def _training_config(self):
        return training.TrainingConfig(**self._options.values("training"))

    def _flag(self, name):
        return self.flag_values[name].value
