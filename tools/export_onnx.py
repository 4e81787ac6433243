"""Writes a model's folder as an ONNX file, for runtimes without TensorFlow.

    python -m etcmodel.tools.export_onnx --model=films --output=films.onnx --max_length=512

The file computes the outputs from what the folder's processor makes of texts, for batches of one
size and length. onnxruntime must give TensorFlow's outputs to 1e-4, otherwise nothing is written.
"""

import dataclasses

from etcmodel.options import Options, option, run_program

_TEXT = "A text."


@dataclasses.dataclass(frozen=True, kw_only=True)
class OnnxOptions(Options):
    """What becomes what, and its shapes."""

    model: str = option(
        "",
        "Folder of a model with its vocabulary, as `save_pretrained` writes it, or a name on the "
        "Hugging Face Hub.",
        is_needed=True,
    )
    output: str = option("", "The file to write, such as films.onnx.", is_needed=True)
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


def run(options):
    """Writes the file.

    Raises:
        ValueError: if the folder has no processor, a length is not known, or the export fails.
    """
    from etcmodel import serving  # TensorFlow takes seconds to import.
    from etcmodel.checkpoints import pretrained

    model = pretrained.from_pretrained(options.model)
    if model.processor is None:
        raise ValueError(f"--model: {options.model!r} has no vocabulary, which the shapes need.")
    processor = _padding_to_the_end(model.processor, options)
    batch = processor([_TEXT] * options.batch_size)
    difference = serving.export_onnx(model, options.output, batch)
    for name, value in batch.items():
        print(f"input {name}: {value.dtype} {list(value.shape)}")
    print(f"{options.output}: onnxruntime's outputs are TensorFlow's to {difference:.1e}")


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


if __name__ == "__main__":
    run_program(OnnxOptions, run, section="export_onnx")
