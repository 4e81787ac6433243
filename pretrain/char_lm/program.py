"""The program behind `run_char_lm`, once its flags are parsed."""

import dataclasses
import os
import sys
import typing

from etcmodel import options as options_lib
from etcmodel import training
from etcmodel.finetuning import closing, trained_run
from etcmodel.models.longformer_char_lm import CharLmConfig
from etcmodel.models.longformer_char_lm import config as presets
from etcmodel.pretrain import base_program

from . import phases, run_options, text
from . import task as task_lib
from .run_options import CharLmOptions

__all__ = ["Program"]


@dataclasses.dataclass(frozen=True)
class Program(base_program.BaseProgram):
    """The program; see the base class."""

    needed: typing.ClassVar[dict] = {"train": ("text_file",)}

    def option_flags(self):
        return run_options.option_flags(self.flag_values)

    def modes(self):
        return {"train": self._train, "evaluate": self._evaluate}

    def preset(self, name):
        return presets.PRESETS[name]

    def check_encoder_config(self, config, source):
        if not isinstance(config, CharLmConfig):
            raise ValueError(
                f"{source}: `model_type` must be {CharLmConfig.model_type!r}. "
                f"Received: {config.model_type!r}"
            )
        if config.vocab_size < 256:
            raise ValueError(
                f"{source}: `vocab_size` must be at least 256, for bytes. "
                f"Received: {config.vocab_size}"
            )

    def _train(self):
        if self._flag("eval_split") != "dev":
            raise ValueError(
                "--eval_split: training chooses checkpoints by the dev text. Leave it."
            )
        training_config = self._training_config()
        if training_config.num_train_epochs != 1:
            raise ValueError("--num_train_epochs: --steps_per_phase says how long it is. Leave it.")
        changes = self.changes()
        if "num_train_epochs" in changes:
            raise ValueError("--change=num_train_epochs: --steps_per_phase says how long it is.")
        values = self.option_flags().values("task")
        config = CharLmOptions(encoder_config=self._encoder_config(), **values)
        options_lib.check_files(config)
        whole = text.read_text(config.text_file, config.dev_bytes, config.test_bytes)
        all_phases = phases.phases(config, training_config)
        options_text = self._options_text(config, training_config)
        tasks = [_task(phase, whole, options_text) for phase in all_phases]
        strategy = training.build_strategy(training_config)
        last = phases.last_begun(all_phases)  # Later phases inherit its changes.
        for phase, task in zip(all_phases, tasks, strict=True):
            phase = phase.continued()
            given = phase.of_phase(changes) if phase.number == last else {}
            print(phase, file=sys.stderr, flush=True)
            ending = closing.Ending(task, phase.training_config.output_dir)
            metrics = _train_phase(phase, task, strategy, given, ending)
        training.show_metrics(metrics)
        folder, phase_folder = self._flag("output_dir"), phase.training_config.output_dir
        page = os.path.join(folder, "report.html")
        ending.tell(
            closing.command_of_program("evaluate", output_dir=folder, eval_split="test"),
            closing.command("report", run=phase_folder, output=page),
        )

    def _evaluate(self):
        directory = phases.last_trained(self._flag("output_dir"))
        run = trained_run.TrainedRun.find(directory)
        given = None
        if self._is_model_given():
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
        checkpoint = training.best_checkpoint(directory)
        print(f"evaluating {checkpoint} on the {config.eval_split} text", file=sys.stderr)
        training.show_metrics(training.evaluate(task, self._training_config(run), checkpoint))


def _task(phase, whole, options_text):
    """The `CharLmTask` of a phase, checked before any phase begins."""
    num_examples = phase.num_steps * phase.training_config.train_batch_size
    task = task_lib.CharLmTask(phase.config, whole, num_examples)
    task.check_lengths()
    directory = phase.training_config.output_dir
    begun = training.read_run_config(directory) or {}
    whole.check_same(begun.get("notes", {}), directory)
    task.kept_files = base_program.kept_files(options_text, phase.config.encoder_config)
    return task


def _train_phase(phase, task, strategy, changes, ending):
    """Trains or resumes a phase; returns its last evaluation's metrics."""
    config = phase.training_config
    if phase.before:
        # As it was when the phase began: the run's directory may be given differently now.
        begun = (training.read_run_config(config.output_dir) or {}).get("training", {})
        best = begun.get("init_checkpoint") or training.best_checkpoint(phase.before)
        config = dataclasses.replace(config, init_checkpoint=best)
    return training.train(task, config, strategy, changes=changes, callbacks=[ending])
