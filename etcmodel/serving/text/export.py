"""Writes a model and its processor as a SavedModel that takes strings."""

import dataclasses
import json

from etcmodel import format_versions
from etcmodel.serving import writing
from etcmodel.serving.saved_model import TEXT_FILE
from etcmodel.serving.text import attention, sentences, signatures

__all__ = ["METADATA_FILE", "TextOptions", "export_text_model"]

METADATA_FILE = TEXT_FILE


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextOptions:
    """Options of the answers of an exported text model.

    Attributes:
        labels: sequence of str. The names of a classifier's labels; by default those of the model,
            or their numbers.
        max_answer_tokens: int. Maximum length of an answer in tokens.
        whole_words: bool. Whether answers are extended to whole words: see `text.answers.widened`.
        num_phrases: int. Number of key phrases per text.
        attention_keys: int. Number of attended tokens that the signature `attention` returns for
            each token; 0 for an export without attention signatures.
        attention_layer: int or None. The layer of this attention, from 0; None for the last.
        examples: sequence of dict. Example requests offered on the server's page, such as
            {"question": "Where is it?", "documents": ["It is here."]} or {"text": "It is here."}:
            a str for each input, and a list for documents.

    Raises:
        ValueError: naming the option, if it is invalid.
    """

    labels: tuple = ()
    max_answer_tokens: int = 30
    whole_words: bool = True
    num_phrases: int = 5
    attention_keys: int = 8
    attention_layer: int | None = None
    examples: tuple = ()

    def __post_init__(self):
        object.__setattr__(self, "labels", tuple(self.labels or ()))
        if not isinstance(self.whole_words, bool):
            raise ValueError(f"`whole_words` must be a bool. Received: {self.whole_words!r}")
        if not all(isinstance(label, str) for label in self.labels):
            raise ValueError(f"`labels` must be strings. Received: {list(self.labels)}")
        object.__setattr__(self, "examples", tuple(map(_checked_example, self.examples or ())))
        least = {"max_answer_tokens": 1, "num_phrases": 1, "attention_keys": 0}
        if self.attention_layer is not None:
            least["attention_layer"] = 0
        for name, lowest in least.items():
            value = getattr(self, name)
            if type(value) is not int or value < lowest:
                raise ValueError(
                    f"`{name}` must be an int of at least {lowest}. Received: {value!r}"
                )


def _checked_example(example):
    def is_text(value):
        return isinstance(value, str)

    values = example.values() if isinstance(example, dict) else [None]
    if not all(is_text(x) or isinstance(x, list) and all(map(is_text, x)) for x in values):
        raise ValueError(
            "Each of `examples` must be a dict of str, or of list of str, by the name of an input. "
            f"Received: {example!r:.100}"
        )
    return example


def export_text_model(model, directory, processor=None, **options):
    """Writes a SavedModel whose signatures take strings; it needs TensorFlow and tensorflow-text.

    The signatures of each kind of head, and the rules for texts, are described in docs/serving.md.
    The graph produces the same ids as the processor, except that 'simple' splits sentences in place
    of 'punkt', and that examples never share a row.

    Args:
        model: `EtcForSequenceClassification`, `EtcForQuestionAnswering` or
            `EtcForKeyphraseExtraction`.
        directory: str. Where to write; must not exist. It appears only when it is complete.
        processor: `EtcProcessor`; by default the model's own.
        **options: fields of `TextOptions`.
    Returns:
        `directory`.
    Raises:
        ValueError: if there are no signatures for the model, a graph cannot reproduce the
            processor, an option is invalid, or the directory exists.

    >>> from etcmodel import serving
    >>> model = etcmodel.from_pretrained("my_model")
    >>> serving.export_text_model(model, "reviewer", labels=["neg", "pos"])
    'reviewer'
    >>> classify = tf.saved_model.load("reviewer").signatures["serving_default"]
    >>> classify(tf.constant(["Good!"]))["label"].numpy()
    array([b'pos'], dtype=object)
    """
    processor = processor or model.processor
    if processor is None:
        raise ValueError("`processor` must be given: the model has none of its own.")
    options = TextOptions(**{"labels": getattr(model, "labels", ()), **options})
    metadata = {
        format_versions.ENTRY: format_versions.EXPORT,
        "head_type": model.head_type,
        "sentence_splitter": sentences.splitter_of(processor.config),
        "options": dataclasses.asdict(options),
        "processor": dataclasses.asdict(processor.config),
        "attention": attention.AttentionReader.sizes(model, options),
    }
    content = json.dumps(metadata, indent=2, ensure_ascii=False) + "\n"
    return writing.write_saved_model(
        directory,
        {METADATA_FILE: content.encode()},
        lambda: signatures.make_module(model, processor, options),
    )
