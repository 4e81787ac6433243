"""Writes an HTML page that shows which tokens a model's tokens attend to, for a given text.

    python -m etcmodel.tools.inspect_attention --checkpoint=etc_base_2x_pretrain \\
        --input=text.txt --output=attention.html --layers=0,5,11

The model folder's processor makes the input. A text gets a global token for each sentence, a web
page (`….html`) for each heading, paragraph and so on. Other inputs of a processor (documents,
sections, tables, graphs: docs/processor.md) are given as a JSON object (`….json`), or as a line of
a file of JSON lines (`….jsonl`):

    {"question": "Where does it rise?", "documents": ["The river rises on moors.", "It is long."]}

The page is self-contained and needs no network. For other inputs, task models, and how much tokens
contribute, see `etcmodel.inspection`.
"""

import dataclasses

from etcmodel import atomic_files, bounded_json, opener
from etcmodel.options import VocabularyOptions, check_files, option, run_program
from etcmodel.text import readers, vocabulary_files
from etcmodel.text.processor import EtcProcessor

_MEAN = -1  # `inspection.MEAN`
_LINES, _PAGES = (".jsonl", ".jsonl.gz"), (".html", ".htm")


@dataclasses.dataclass(frozen=True, kw_only=True)
class InspectOptions(VocabularyOptions):
    """The model, the input and the contents of the page."""

    checkpoint: str = option(
        "", "Folder of an ETC encoder, or of a model with a head on top of one.", is_needed=True
    )
    input: str = option(
        "",
        "Text file; or, by its extension, a .html, .json, .jsonl or .jsonl.gz file.",
        is_file=True,
        is_needed=True,
    )
    output: str = option("", "HTML file to write.", is_needed=True)
    example: int = option(0, "For JSON lines: index of the line to show, from 0.", lower_bound=0)
    do_lower_case: bool = option(
        True, "Whether the WordPiece vocabulary of --vocab_file is for lower-cased text."
    )
    max_tokens: int = option(
        1024, "Maximum number of tokens; the input is cut after them.", lower_bound=1
    )
    layers: tuple[int, ...] = option((), "Layers to show, from 0. None: all.")
    heads: tuple[int, ...] = option(
        (_MEAN,), f"Heads to show, from 0; {_MEAN}: the mean over all heads."
    )
    top: int = option(8, "Maximum number of keys to show per token and head.", lower_bound=1)

    def __post_init__(self):
        super().__post_init__()
        check_files(self)


def run(options):
    """Writes the page that `InspectOptions` describe.

    Raises:
        ValueError: in one line that names the file or the flag, if something cannot be read or
            shown.
    """
    # Imports TensorFlow, which takes seconds.
    from etcmodel import inspection
    from etcmodel.checkpoints import from_pretrained
    from etcmodel.models.modeling import EtcModel

    atomic_files.check_writable(options.output)
    example = read_example(options)
    model = from_pretrained(options.checkpoint)
    encoder = inspection.calls.encoder_of(model)
    if not isinstance(encoder, EtcModel):
        raise ValueError(
            f"{options.checkpoint}: holds a {encoder.name!r}. This program shows an `EtcModel`; "
            "for others call `etcmodel.inspection.attention`."
        )
    processor = make_processor(options, model)
    batch = make_batch(options, processor, example)
    attention = inspection.attention(
        encoder,
        encoder.structure(batch, processor.relation_names),
        layers=options.layers or None,
        heads=options.heads,
        top=options.top,
    )
    tokens, names = batch.encodings[0].tokens, processor.explain(batch).global_names
    inspection.write_page(options.output, attention, tokens, names, title=options.input)
    print(f"{len(tokens)} long and {len(names)} global tokens -> {options.output}")


def read_example(options):
    """The example of the input, in the form for a processor: dict of fields."""
    path = options.input
    if path.endswith(_LINES):
        for number, (_, example) in enumerate(readers.read_json_lines(path)):
            if number == options.example:
                return example
        raise ValueError(f"{path}: has no example {options.example}, counted from 0 (--example).")
    if path.endswith(".json"):
        return bounded_json.read_object(path)
    try:
        text = opener.read_text(path)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return {"html" if path.endswith(_PAGES) else "text": text}


def make_processor(options, model):
    """The model's `EtcProcessor`, or one for the given vocabulary."""
    # With TensorFlow.
    from etcmodel.checkpoints import processors
    from etcmodel.inspection import calls

    if options.has_vocabulary():
        tokenizer = vocabulary_files.open_tokenizer(
            options.vocab_file,
            options.spm_model_file,
            do_lower_case=options.do_lower_case,
            split_punctuation=options.split_punctuation,
        )
        processor = EtcProcessor(
            tokenizer,
            relation_names=getattr(model, "relation_names", ()),
            **processors.trained_settings(calls.encoder_of(model).config),
        )
        processors.check_processor(model, processor)
        return processor
    if not isinstance(model.processor, EtcProcessor):
        reason = getattr(model.processor, "reason", "It has no vocabulary.")
        raise ValueError(
            f"{options.checkpoint}: gives no processor: {reason} Give --vocab_file or "
            "--spm_model_file."
        )
    return model.processor


def make_batch(options, processor, example):
    """`ProcessedBatch` with only the example: one row, cut if it is too long."""
    length = min(options.max_tokens, processor.config.long_limit)
    settings = {"max_long_len": length, "truncation": "tokens", "stride": None, "pack": False}
    settings |= {"pad_to": "longest", "pad_to_multiple_of": 1}
    try:
        batch = processor([example], settings=settings)
    except ValueError as error:
        raise ValueError(f"{options.input}: {error}") from None
    if not (batch.encodings[0].pieces >= 0).any():
        raise ValueError(f"{options.input}: has no text.")
    return batch


if __name__ == "__main__":
    run_program(InspectOptions, run, section="inspect")
