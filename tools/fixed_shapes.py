"""The model's folder that a program exports, and a batch of the shapes of all inputs."""

import dataclasses

from etcmodel.options import Options, option

__all__ = ["FolderOptions", "model_and_batch"]

_TEXT = "A text."


@dataclasses.dataclass(frozen=True, kw_only=True)
class FolderOptions(Options):
    """The model's folder, and the shapes of what other runtimes compute with it."""

    model: str = option(
        "",
        "Folder of a model with its vocabulary, as `save_pretrained` writes it, or a name on the "
        "Hugging Face Hub.",
        is_needed=True,
    )
    max_length: int | None = option(
        None,
        "Tokens of each input, padding included; for ETC, of the long input. None: the most that "
        "the folder's processor makes.",
        lower_bound=1,
    )
    max_global_length: int | None = option(
        None,
        "For ETC: tokens of the global input. None: the most that the folder's processor makes.",
        lower_bound=1,
    )
    batch_size: int = option(1, "Examples of each batch.", lower_bound=1)


def model_and_batch(options):
    """The model of `FolderOptions`, and a batch of its shapes, which are printed.

    Raises:
        ValueError: if the folder has no processor, or a length is not known.
    """
    from etcmodel.checkpoints import pretrained

    model = pretrained.from_pretrained(options.model)
    if model.processor is None:
        raise ValueError(f"--model: {options.model!r} has no vocabulary, which the shapes need.")
    processor = _padding_to_the_end(model.processor, options)
    batch = processor([_TEXT] * options.batch_size)
    for name, value in batch.items():
        print(f"input {name}: {value.dtype} {list(value.shape)}", flush=True)
    return model, batch


def _padding_to_the_end(processor, options):
    """The processor, with the wanted lengths, which all of its batches have."""
    settings = dataclasses.asdict(processor.config)
    if "max_length" in settings:
        if options.max_global_length:
            raise ValueError("--max_global_length is of ETC; this model has one input. Leave it.")
        length = options.max_length or settings["max_length"]
        settings |= {"max_length": length, "pad_to_multiple_of": length}
        lengths = {"--max_length": length}
    else:
        length = options.max_length or settings["max_long_len"]
        global_length = options.max_global_length or settings["max_global_len"]
        settings |= {"max_long_len": length, "max_global_len": global_length, "pad_to": "max"}
        lengths = {"--max_length": length, "--max_global_length": global_length}
    for flag, value in lengths.items():
        if not value:
            raise ValueError(f"{flag} must be given: the folder's processor has no limit.")
    return type(processor)(processor.tokenizer, **settings)
