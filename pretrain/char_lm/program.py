"""The program behind `run_char_lm`, once its flags are parsed."""

import dataclasses
import os
import sys
import typing

from etcmodel import options as options_lib
from etcmodel import training
from etcmodel.finetuning import mode_program, trained_run
from etcmodel.models.longformer_char_lm import CharLmConfig
from etcmodel.models.longformer_char_lm import config as presets
from etcmodel.pretrain import base_program
from etcmodel.training import run_directory

from . import config, text
from . import task as task_lib
from .config import CharLmOptions

__all__ = ["Phase", "Program", "last_begun", "last_trained", "phases"]

# Phases of staged training: separate runs, each starting from the weights of the previous one.
#
# Source: Beltagy et al. 2020, section 4.2.1 and table 12: from phase to phase windows and sequences
# double, and the learning rate is halved. Each phase restarts the optimizer, with a new warm-up.


@dataclasses.dataclass(frozen=True)
class Phase:
    """A phase.

    Attributes:
        number: int, from 1.
        config: `CharLmOptions`.
        training_config: `TrainingConfig`, whose `output_dir` is the phase's.
        before: str or None. Directory of the previous phase.
    """

    number: int
    config: CharLmOptions
    training_config: training.TrainingConfig
    before: str | None

    @property
    def num_steps(self):
        """int."""
        return self.config.steps_per_phase[0]

    def of_phase(self, values):
        """Converts values of training options from the first phase to this one: dict."""
        scaled = dict(values)
        if "learning_rate" in scaled:
            scaled["learning_rate"] /= 2 ** (self.number - 1)
        return scaled

    def continued(self):
        """The `Phase` with the options that were changed in previous phases.

        An option that was changed in a later phase, and is given with that value, keeps its value
        here.
        """
        changed, root = {}, os.path.dirname(self.training_config.output_dir)
        for number in range(1, self.number):
            changed |= self.of_phase(_changes(root, number))
        run = training.read_run_config(self.training_config.output_dir) or {}
        begun = {**run.get("notes", {}), **run.get("training", {})}
        number = self.number + 1
        while training.read_run_config(_directory(root, number)) is not None:
            for name, new in self.of_phase(_changes(root, number)).items():
                if getattr(self.training_config, name) == new and name in begun:
                    changed[name] = begun[name]
            number += 1
        return dataclasses.replace(
            self, training_config=dataclasses.replace(self.training_config, **changed)
        )

    def __str__(self):
        windows = sorted(set(self.config.encoder_config.windows))
        return (
            f"phase {self.number}: {self.num_steps} steps, sequences of {self.config.seq_length} "
            f"characters, windows of {windows[0]} to {windows[-1]}, learning rate "
            f"{self.training_config.learning_rate:.3g}"
        )


def phases(config, training_config):
    """All `Phase`s of a run: list.

    Args:
        config: `CharLmOptions` of the whole run.
        training_config: `TrainingConfig` of the whole run; its learning rate is that of the first
            phase.
    """
    return [_phase(config, training_config, index) for index in range(len(config.steps_per_phase))]


def _phase(config, training_config, index):
    length = config.seq_length * 2**index
    if config.max_seq_length is not None:
        length = min(length, config.max_seq_length)
    of_phase = dataclasses.replace(
        config,
        encoder_config=presets.phase_config(config.encoder_config, index),
        seq_length=length,
        steps_per_phase=config.steps_per_phase[index : index + 1],
    )
    of_training = dataclasses.replace(
        training_config,
        output_dir=_directory(training_config.output_dir, index + 1),
        learning_rate=training_config.learning_rate / 2**index,
    )
    before = _directory(training_config.output_dir, index) if index else None
    return Phase(index + 1, of_phase, of_training, before)


def last_begun(all_phases):
    """The number of the last phase that has begun; 1 if there is none."""
    directories = {phase.number: phase.training_config.output_dir for phase in all_phases}
    begun = [x for x, path in directories.items() if training.read_run_config(path) is not None]
    return max(begun, default=1)


def last_trained(output_dir):
    """The directory of the last phase that has a checkpoint.

    Raises:
        ValueError: if there is none.
    """
    found, number = None, 1
    while training.read_run_config(folder := _directory(output_dir, number)) is not None:
        try:
            training.best_checkpoint(folder)
        except ValueError:  # It has only just begun.
            break
        found, number = folder, number + 1
    if found is None:
        raise ValueError(f"--output_dir={output_dir}: there is no phase with a checkpoint.")
    return found


def _changes(output_dir, number):
    """The changes in a phase: dict from option to value, as given for the first phase."""
    made = run_directory.changes_in_force(
        run_directory.read_changes(_directory(output_dir, number))
    )
    changed = {name: change.new for name, change in made.items()}
    if "learning_rate" in changed:
        changed["learning_rate"] *= 2 ** (number - 1)
    return changed


def _directory(output_dir, number):
    return os.path.join(output_dir, f"phase_{number}")


# The program.


@dataclasses.dataclass(frozen=True)
class Program(base_program.BaseProgram):
    """The program; see the base class."""

    needed: typing.ClassVar[dict] = {"train": ("text_file",)}

    def option_flags(self):
        return config.option_flags(self.flag_values)

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
        training_config, changes = self._training_config(), self.changes()
        for name, default in (("num_train_epochs", 1), ("stop_at_step", None)):
            if getattr(training_config, name) != default:
                raise ValueError(f"--{name}: --steps_per_phase says how long it is. Leave it.")
            if name in changes:
                raise ValueError(f"--change={name}: --steps_per_phase says how long it is.")
        values = self.option_flags().values("task")
        config = CharLmOptions(encoder_config=self._encoder_config(), **values)
        options_lib.check_files(config)
        whole = text.read_text(config.text_file, config.dev_bytes, config.test_bytes)
        all_phases = phases(config, training_config)
        options_text = self._options_text(config, training_config)
        tasks = [_task(phase, whole, options_text) for phase in all_phases]
        strategy = training.build_strategy(training_config)
        last = last_begun(all_phases)  # Later phases inherit its changes.
        for phase, task in zip(all_phases, tasks, strict=True):
            phase = phase.continued()
            given = phase.of_phase(changes) if phase.number == last else {}
            print(phase, file=sys.stderr, flush=True)
            ending = mode_program.Ending(task, phase.training_config.output_dir)
            metrics = _train_phase(phase, task, strategy, given, ending)
        training.show_metrics(metrics)
        folder, phase_folder = self._flag("output_dir"), phase.training_config.output_dir
        page = os.path.join(folder, "report.html")
        ending.tell(
            mode_program.command_of_program("evaluate", output_dir=folder, eval_split="test"),
            mode_program.command("report", run=phase_folder, output=page),
        )

    def _evaluate(self):
        directory = last_trained(self._flag("output_dir"))
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
