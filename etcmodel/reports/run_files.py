"""Reads a run's directory: its options and its metrics by step."""

import dataclasses
import os
import re
from operator import itemgetter

from etcmodel import training
from etcmodel.training import progress, run_directory


@dataclasses.dataclass(frozen=True)
class RunFiles:
    """A run.

    Attributes:
        directory: str.
        training, options, notes: dicts: see `finetuning.TrainedRun`.
        train_rows, eval_rows: lists of dict, "step" and metrics.
        best_step: int or None. Step of the best checkpoint, or else of the last one.
    """

    directory: str
    training: dict
    options: dict
    notes: dict
    train_rows: list
    eval_rows: list
    best_step: int | None

    @classmethod
    def read(cls, directory):
        """Reads a run.

        Raises:
            ValueError: if there is no run, or one of its files is damaged; names the file.
        """
        config = training.read_run_config(directory)
        if config is None:
            raise ValueError(
                f"--run: {directory!r} holds no {training.RUN_CONFIG_FILE}: give the --output_dir "
                "of a training."
            )
        rows = [
            sorted(
                progress.MetricsLog(os.path.join(directory, name)).read(), key=itemgetter("step")
            )
            for name in ("train_metrics.jsonl", "eval_metrics.jsonl")
        ]
        parts = [config.get(name, {}) for name in ("training", "task", "notes")]
        return cls(directory, *parts, *rows, _best_step(directory))

    @property
    def last_step(self):
        """The step at which the run ends: int; None if it is not known."""
        planned = self.notes.get("num_train_steps")
        if not isinstance(planned, int):
            return None
        stop = {"stop_at_step": self.training.get("stop_at_step")}
        return training.TrainingConfig(**stop).last_step(planned)

    @property
    def best_row(self):
        """The metrics of the best checkpoint, or else of the last evaluation: dict, maybe empty."""
        found = [row for row in self.eval_rows if row["step"] == self.best_step]
        return (found or self.eval_rows or [{}])[-1]


def _best_step(directory):
    try:
        path = run_directory.best_checkpoint(directory)
    except ValueError:
        return None  # The checkpoints may have been moved.
    found = re.search(r"-(\d+)$", path)
    return int(found[1]) if found else None
