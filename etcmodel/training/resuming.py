"""The options of a resumed run: the ones it began with, and the changes since."""

import dataclasses

from etcmodel.training import history, run_directory

__all__ = ["begun_config", "made_changes", "resumed_config"]


def resumed_config(config, changes=None):
    """The options of a resumed or new run.

    An option that was changed earlier may be given with its first or its current value; the result
    has the current one.

    Args:
        config: `TrainingConfig` with an output_dir.
        changes: dict from an option to its new value.
    Returns:
        `TrainingConfig`.
    Raises:
        ValueError: if there are changes and no run; if a changed option is given with another
            value; if an option may not be changed.

    >>> from etcmodel import training
    >>> options = {"num_train_epochs": 1, "train_batch_size": 2}
    >>> config = training.TrainingConfig(output_dir="my_run", **options)
    >>> training.resumed_config(config, {"learning_rate": 3e-5}).learning_rate
    3e-05
    """
    changes = history.checked_changes(changes)
    return dataclasses.replace(begun_config(config, changes), **changes)


def begun_config(config, changes=None):
    """Like `resumed_config`, without the new changes: the options of the run until now.

    Args:
        config, changes: as in `resumed_config`. Options to change may be given with any value.
    """
    run = run_directory.read_run_config(config.output_dir)
    if run is None:
        if changes:
            raise ValueError(
                f"--change={next(iter(changes))}: there is no run in {config.output_dir} that "
                "could go on. Give the option itself."
            )
        return config
    kept = {**run.get("notes", {}), **run["training"]}  # Frequencies do not affect results.
    present = {name: kept[name] for name in changes or () if name in kept}
    made = history.read(config.output_dir)
    firsts = {change.option: change.old for change in reversed(made)}
    for name, change in history.in_force(made).items():
        given = getattr(config, name)
        # Other differences are reported when all options are compared.
        is_compared = name in config.result_fields()
        if name in (changes or ()) or given in (firsts[name], change.new):
            present[name] = change.new
        elif not is_compared:
            raise ValueError(
                f"--{name}={given}: the run in {config.output_dir} was changed to "
                f"--{name}={change.new}. Give that value, or --change={name}={given}."
            )
    return dataclasses.replace(config, **present)


def made_changes(before, after, *, step, num_train_steps):
    """The differences between two `TrainingConfig`s: list of `history.Change`.

    Args:
        before, after: `TrainingConfig`.
        step: int. Steps done.
        num_train_steps: int. The last step, after the change.
    """
    return [
        history.Change(
            step=step,
            option=name,
            old=getattr(before, name),
            new=getattr(after, name),
            num_train_steps=num_train_steps,
        )
        for name in history.CHANGEABLE
        if getattr(before, name) != getattr(after, name)
    ]
