"""The generation settings: from options, and from the initial checkpoint's folder."""

import dataclasses

from etcmodel.models.seq2seq import generation_config

__all__ = ["numbers", "settings"]


# One summary per document, and the same one when a stopped prediction resumes.
_FIXED = {"do_sample": False, "num_return_sequences": 1}


def settings(given, target_length, config, defaults):
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


def numbers(runner, config):
    """The settings of an export that are inputs of its signature, by name.

    Args:
        runner: `serving.GenerationRunner`, of an export with a `generation_config.json`.
        config: `SummarizationConfig`, with the options that override those of the export.
    Raises:
        ValueError: naming an option that can only be changed by a new export.
    """
    exported = generation_config.read_file(runner.asset(generation_config.FILE_NAME))
    model_config, length = config.model_config(), config.target_length
    made = dataclasses.asdict(settings({}, length, model_config, exported))
    wanted = dataclasses.asdict(settings(config.generation(), length, model_config, exported))
    for name, value in wanted.items():
        if name not in runner.numbers and value != made[name]:
            raise ValueError(
                f"`{name}` is {made[name]!r} in the export {runner.directory!r}, and cannot be "
                f"changed to {value!r} at prediction. Export with it."
            )
    return {name: wanted[name] for name in runner.numbers}
