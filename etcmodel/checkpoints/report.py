"""The report of loading a checkpoint."""

import dataclasses
from collections.abc import Mapping

__all__ = ["LoadReport"]


@dataclasses.dataclass(frozen=True)
class LoadReport:
    """The report of loading a checkpoint.

    Attributes:
        checkpoint: path of the checkpoint.
        loaded: the model's variables that got the checkpoint's values.
        not_in_checkpoint: variables of the model that kept their initial values.
        unused: entries of the checkpoint that the model does not use.
        training_state: unused entries that are expected: optimizer slots and `global_step`.
        origins: for each variable in `loaded` whose entry has another name, that entry.
        notes: further information, such as tables of which only some rows were loaded.
        warnings: possible problems. Excluded is what is always missing when such a checkpoint is
            loaded into such a model, such as heads of a new task or relative labels, which BERT
            lacks.

    >>> from etcmodel import checkpoints
    >>> model = etcmodel.from_pretrained("my_model")
    >>> print(checkpoints.initialize(model, "my_model/model.safetensors"))
    my_model/model.safetensors: 32 variables loaded, 0 left at their initial values, 0 entries
    not used, 0 entries of training state skipped
    """

    checkpoint: str
    loaded: tuple[str, ...]
    not_in_checkpoint: tuple[str, ...]
    unused: tuple[str, ...]
    training_state: tuple[str, ...]
    origins: Mapping[str, str] = dataclasses.field(default_factory=dict)
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def __str__(self):
        lines = [
            f"{self.checkpoint}: {len(self.loaded)} variables loaded, "
            f"{len(self.not_in_checkpoint)} left at their initial values, "
            f"{len(self.unused)} entries not used, "
            f"{len(self.training_state)} entries of training state skipped"
        ]
        lines += [f"  warning: {warning}" for warning in self.warnings]
        lines += [f"  note: {note}" for note in self.notes]
        lines += [f"  initial value: {name}" for name in self.not_in_checkpoint]
        lines += [f"  not used: {name}" for name in self.unused]
        return "\n".join(lines)

    def table(self):
        """A table of what was loaded; per line the checkpoint's entry and the model's variable."""
        rows = [(self.origins.get(name, name), name) for name in self.loaded]
        rows += [("(initial value)", name) for name in self.not_in_checkpoint]
        rows += [(name, "(not used)") for name in self.unused]
        rows += [(name, "(training state, not used)") for name in self.training_state]
        width = max(len(origin) for origin, _ in rows)
        lines = [f"{origin:<{width}} -> {name}" for origin, name in rows]
        lines += [f"warning: {warning}" for warning in self.warnings]
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])
