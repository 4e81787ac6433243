"""What `run_char_lm` does once its flags are parsed."""

import dataclasses
import sys

from absl import flags

from etcmodel import options as options_lib
from etcmodel import program_end, quiet, training
from etcmodel.finetuning import trained_run
from etcmodel.models import encoders
from etcmodel.models.longformer_char_lm import CharLmConfig, presets

from . import phases, run_options, text
from . import task as task_lib
from .run_options import CharLmOptions

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
        return run_options.option_flags(self.flag_values)

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
            self._check_given("output_dir")
            modes[self._flag("run_mode")]()

    def _train(self):
        self._check_given("text_file")
        if self._flag("eval_split") != "dev":
            raise ValueError(
                "--eval_split: training chooses checkpoints by the dev text. Leave it."
            )
        training_config = training.TrainingConfig(**self._options.values("training"))
        if training_config.num_train_epochs != 1:
            raise ValueError("--num_train_epochs: --steps_per_phase says how long it is. Leave it.")
        values = self._options.values("task")
        config = CharLmOptions(encoder_config=self._encoder_config(), **values)
        options_lib.check_files(config)
        sections = {"program": self._options.values("program"), "training": training_config}
        options_file = options_lib.dump({**sections, "task": values})
        whole = text.read_text(config.text_file, config.dev_bytes, config.test_bytes)
        all_phases = phases.phases(config, training_config)
        tasks = [_task(phase, whole, options_file) for phase in all_phases]
        strategy = training.build_strategy(training_config)
        for phase, task in zip(all_phases, tasks, strict=True):
            print(phase, file=sys.stderr, flush=True)
            metrics = _train_phase(phase, task, strategy)
        training.show_metrics(metrics)

    def _evaluate(self):
        directory = phases.last_trained(self._flag("output_dir"))
        run = trained_run.TrainedRun.find(directory)
        given = None
        if self._flag("preset") or self._flag("model_config_file"):
            number = int(directory.rpartition("_")[2])
            given = presets.phase_config(self._encoder_config(), number - 1)
        encoder_config = run.encoder_config(given)
        values = run.values(CharLmOptions, self.flag_values)
        values["text_file"] = values["text_file"] or run.notes.get("text_file")
        config = CharLmOptions(encoder_config=encoder_config, **values)
        options_lib.check_files(config)
        whole = text.read_text(config.text_file, config.dev_bytes, config.test_bytes)
        whole.check_same(run.notes, directory)
        task = task_lib.CharLmTask(config, whole)
        task.check_lengths(for_training=False)
        training_config = run.training_config(self.flag_values)
        checkpoint = training.best_checkpoint(directory)
        print(f"evaluating {checkpoint} on the {config.eval_split} text", file=sys.stderr)
        training.show_metrics(training.evaluate(task, training_config, checkpoint))

    def _encoder_config(self):
        preset, path = self._flag("preset"), self._flag("model_config_file")
        if bool(preset) == bool(path):
            raise ValueError("Either --preset or --model_config_file must be given, and not both.")
        config = presets.PRESETS[preset] if preset else encoders.read_config(path)
        if not isinstance(config, CharLmConfig):
            raise ValueError(
                f"--model_config_file={path}: `model_type` must be {CharLmConfig.model_type!r}. "
                f"Received: {config.model_type!r}"
            )
        if config.vocab_size < 256:
            raise ValueError(
                f"--model_config_file={path}: `vocab_size` must be at least 256, for bytes. "
                f"Received: {config.vocab_size}"
            )
        if self._flag("grad_checkpointing_period") is not None:
            period = self._flag("grad_checkpointing_period")
            config = encoders.replace(config, grad_checkpointing_period=period)
        return config

    def _check_given(self, name):
        if not self._flag(name):
            raise ValueError(f"--run_mode={self._flag('run_mode')} also needs --{name}.")

    def _flag(self, name):
        return self.flag_values[name].value


def _task(phase, whole, options_file):
    """The `CharLmTask` of a phase, checked before any phase begins."""
    num_examples = phase.num_steps * phase.training_config.train_batch_size
    task = task_lib.CharLmTask(phase.config, whole, num_examples)
    task.check_lengths()
    directory = phase.training_config.output_dir
    begun = training.read_run_config(directory) or {}
    whole.check_same(begun.get("notes", {}), directory)
    encoder_config = phase.config.encoder_config
    name = encoders.encoder_type(encoder_config.model_type).config_file
    task.kept_files = {"options.yaml": options_file, name: encoder_config.to_json_string()}
    return task


def _train_phase(phase, task, strategy):
    """Trains a phase, or goes on with it; returns its last evaluation's metrics."""
    config = phase.training_config
    if phase.before:
        # As it was when the phase began: the run's directory may be told in another way since.
        begun = (training.read_run_config(config.output_dir) or {}).get("training", {})
        best = begun.get("init_checkpoint") or training.best_checkpoint(phase.before)
        config = dataclasses.replace(config, init_checkpoint=best)
    return training.train(task, config, strategy)
