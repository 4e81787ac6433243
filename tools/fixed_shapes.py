"""The model's folder that a program exports, and a batch of the shapes of all inputs."""

import copy
import dataclasses

import numpy as np

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
    target_length: int | None = option(
        None,
        "For encoder-decoders: tokens of each target, padding included. None: the most that the "
        "folder's processor makes.",
        lower_bound=1,
    )
    batch_size: int = option(1, "Examples of each batch.", lower_bound=1)


def model_and_batch(options, with_targets=True):
    """The model of `FolderOptions`, and a batch of its shapes, which are printed.

    The model's processor pads to these shapes.

    Args:
        options: `FolderOptions`.
        with_targets: bool. Whether an encoder-decoder gets `labels`.
    Raises:
        ValueError: if the folder has no processor, or a length is not known or of no use.
    """
    from etcmodel.checkpoints import pretrained
    from etcmodel.models.seq2seq import generating

    model = pretrained.from_pretrained(options.model)
    if model.processor is None:
        raise ValueError(f"--model: {options.model!r} has no vocabulary, which the shapes need.")
    model.processor = processor = _padding_to_the_end(model.processor, options)
    batch = {**processor([_TEXT] * options.batch_size)}
    if with_targets and isinstance(model, generating.Generating):
        batch["labels"] = _labels(model.config, processor, options)
    elif options.target_length:
        raise ValueError("--target_length: there are no targets in what is exported. Leave it.")
    for name, value in batch.items():
        print(f"input {name}: {value.dtype} {list(value.shape)}", flush=True)
    return model, batch


def _padding_to_the_end(processor, options):
    """The processor, with the wanted lengths, which all of its batches have."""
    from etcmodel.text.seq2seq_processor import Seq2SeqProcessor

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
    if isinstance(processor, Seq2SeqProcessor):  # It is made of a file, which may lack tokens.
        padding = copy.copy(processor)
        padding.config = type(processor.config)(**settings)
        return padding
    return type(processor)(processor.tokenizer, **settings)


def _labels(config, processor, options):
    """Labels of the wanted length: int32 [batch_size, target_length], half of them of no token."""
    length = options.target_length or getattr(processor.config, "max_target_length", None)
    if not length:
        raise ValueError("--target_length must be given: the folder's processor has no limit.")
    ids = np.arange(length, dtype=np.int32) % config.vocab_size
    return np.tile(np.where(ids < (length + 1) // 2, ids, np.int32(-100)), [options.batch_size, 1])
