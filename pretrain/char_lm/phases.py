"""Phases of staged training: separate runs, each starting from the weights of the previous one.

Source: Beltagy et al. 2020, section 4.2.1 and table 12: from phase to phase windows and sequences
double, and the learning rate is halved. Each phase restarts the optimizer, with a new warm-up.
"""

import dataclasses
import os

from etcmodel import training
from etcmodel.models.longformer_char_lm import config as presets
from etcmodel.training import history

from .run_options import CharLmOptions

__all__ = ["Phase", "last_begun", "last_trained", "phases"]


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
    made = history.in_force(history.read(_directory(output_dir, number)))
    changed = {name: change.new for name, change in made.items()}
    if "learning_rate" in changed:
        changed["learning_rate"] *= 2 ** (number - 1)
    return changed


def _directory(output_dir, number):
    return os.path.join(output_dir, f"phase_{number}")
