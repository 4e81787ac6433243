"""From texts, or a question and documents, to a batch for Longformer: ids, and what is global."""

import contextlib
import dataclasses
import os

import numpy as np

from etcmodel import atomic_files, bounded_json
from etcmodel.text import processor_files, vocabulary
from etcmodel.text.encoding import ProcessedBatch
from etcmodel.text.longformer_explanation import LongformerExplanation
from etcmodel.text.processor import EtcProcessor
from etcmodel.text.processor_config import CONFIG_FILENAME

__all__ = ["LongformerBatch", "LongformerProcessor"]

GLOBAL_TOKENS = ("question", "first", "none", "model")
_FIELDS = ("text", "question", "documents")


@dataclasses.dataclass(frozen=True, kw_only=True)
class LongformerProcessorConfig:
    """Settings, kept in `processor_config.json`.

    Attributes:
        max_length: int or None. No row has more tokens; what does not fit is cut at the end of the
            documents, never of the question.
        stride: int or None. With a number, what does not fit goes into further rows, which repeat
            about as many tokens; nothing is cut.
        global_tokens: str. "question": all before the first separator, or the first token of a text
            without a question, as `LongformerForQuestionAnswering` and
            `LongformerForSequenceClassification` have it; "first": the first token; "none"; or
            "model": what the model's class, or an LED's config, has where a batch does not say it.
        pad_to_multiple_of: int. The length of a batch is rounded up to it.

    Raises:
        ValueError: naming the setting and its value.
    """

    max_length: int | None = None
    stride: int | None = None
    global_tokens: str = "question"
    pad_to_multiple_of: int = 1

    def __post_init__(self):
        if self.global_tokens not in GLOBAL_TOKENS:
            raise ValueError(
                f"`global_tokens` must be one of {GLOBAL_TOKENS}. Received: {self.global_tokens!r}"
            )
        if self.stride is not None and self.max_length is None:
            raise ValueError("`stride` needs `max_length`, the length of a window.")

    def arranged(self):
        """The settings of an `EtcProcessor` that makes the same rows."""
        return {
            "max_long_len": self.max_length,
            "stride": self.stride,
            "pad_to_multiple_of": self.pad_to_multiple_of,
            "question_separators": 2,
        }


class LongformerBatch(ProcessedBatch):
    """int32 `input_ids`, `attention_mask` and `global_attention_mask` [batch, length].

    The last one is not there if the model decides (`global_tokens="model"`).

    Attributes: as of `ProcessedBatch`, so that `text.answers.best_answer` finds answers in it.
    """

    @property
    def long_shape(self):
        return self["input_ids"].shape


class LongformerProcessor:
    """Texts in, tensors out: a batch for `LongformerModel` and its heads.

        processor = LongformerProcessor("vocab.json", max_length=4096)
        batch = processor(question="Who wrote Emma?", documents=["Emma is a novel. …", "…"])

    A text is `<s> A </s>`, a question with documents `<s> Q </s></s> D1 D2 … </s>`: of one document
    the tokens are those of Hugging Face's tokenizer for the pair. Source of what is global: Beltagy
    et al. 2020 (arXiv:2004.05150), section 3.1.

    Args:
        vocab: str, a `vocab.json` with `merges.txt` beside it or a `tokenizer.json`; or a
            `byte_bpe.ByteLevelTokenizer`, or an object that has one as its `tokenizer`.
        **settings: fields of `LongformerProcessorConfig`.
    Raises:
        ValueError: if a setting cannot be, or a file is damaged.
    """

    def __init__(self, vocab, **settings):
        self.config = LongformerProcessorConfig(**settings)
        vocab = getattr(vocab, "tokenizer", vocab)
        with _own_names():
            self._arranging = EtcProcessor(vocab, **self.config.arranged())
        self.tokenizer = self._arranging.tokenizer

    @property
    def vocabulary(self):
        """tuple of str: the tokens by id."""
        return self._arranging.vocabulary

    @classmethod
    def from_pretrained(cls, folder, **settings):
        """Reads what `save_pretrained` wrote, or a folder with just a vocabulary.

        Raises:
            ValueError: naming the folder or the file.
        """
        path = os.path.join(folder, CONFIG_FILENAME)
        given = {}
        if processor_files.is_there(folder, CONFIG_FILENAME):
            given = bounded_json.load_object(vocabulary.read_bytes(path), path)
        known = {field.name for field in dataclasses.fields(LongformerProcessorConfig)}
        if unknown := sorted(set(given) - known):
            raise ValueError(f"{path}: unknown settings of a processor: {', '.join(unknown)}")
        vocab = processor_files.byte_level_file(folder)
        try:
            return cls(vocab, **{**given, **settings})
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None

    def save_pretrained(self, folder):
        """Writes the vocabulary and the settings into a folder, which is made if need be."""
        self.tokenizer.save_pretrained(folder)
        settings = dataclasses.asdict(self.config)
        atomic_files.write_json(os.path.join(folder, CONFIG_FILENAME), settings)

    def __call__(self, examples=None, **fields):
        """The batch of one or several examples.

        Args:
            examples: a list of examples, or one: a text, or a dict of `text` or of `question` and
                `documents`, a list of str.
            **fields: the fields of one example, instead of `examples`.
        Returns:
            `LongformerBatch`. What was cut is in its encodings, and is logged in one line.
        Raises:
            ValueError: naming the example and the field.
        """
        if (examples is None) == (not fields):
            raise ValueError("Give `examples`, or the fields of one example, one of the two.")
        if not isinstance(examples, (list, tuple)):
            examples = [fields or examples]
        read = [_read(example, f"examples[{i}]") for i, example in enumerate(examples)]
        with _own_names():
            batch = self._arranging(read)
        is_token = batch["example_ids"] > 0
        features = {
            "input_ids": batch["token_ids"],
            "attention_mask": is_token.astype(np.int32),
        }
        if self.config.global_tokens != "model":
            mask = features["global_attention_mask"] = np.zeros_like(batch["token_ids"])
            for encoding in batch.encodings:
                mask[encoding.row, : self.num_global(encoding)] = 1
        return LongformerBatch(features, batch.encodings)

    def num_global(self, encoding):
        """How many tokens of a row are global, as far as a batch says it: its first ones."""
        if self.config.global_tokens in ("none", "model"):
            return 0
        is_question = self.config.global_tokens == "question" and encoding.source.num_questions
        return 1 + encoding.source.num_question_pieces if is_question else 1

    def decode(self, ids, keep_special_tokens=False):
        """The text that token ids spell: see `EtcProcessor.decode`."""
        return self._arranging.decode(ids, keep_special_tokens)

    def explain(self, batch, example=0, window=0, config=None):
        """What a model is told of an example: which tokens are global and why, who sees whom.

        Args:
            batch: `LongformerBatch`.
            example: int. Which of the examples that the processor was given.
            window: int. Which of its windows.
            config: `LongformerConfig`, or a model with one; None for windows of 512.
        Returns:
            `LongformerExplanation`: `print` it, ask it `why(3, 100)`.
        Raises:
            ValueError: if there is no such example or window, or the model decides what is global.
        """
        if "global_attention_mask" not in batch:
            raise ValueError(
                "Which tokens are global is the model's to say (`global_tokens` is 'model'): "
                "explain a batch of a processor that says it."
            )
        for encoding in batch.encodings:
            if (encoding.example, encoding.window) == (example, window):
                return LongformerExplanation(batch, encoding, config)
        raise ValueError(f"The batch has no window {window} of an example {example}.")


@contextlib.contextmanager
def _own_names():
    """Errors of the `EtcProcessor` name the settings of a `LongformerProcessor`."""
    try:
        yield
    except ValueError as error:
        raise ValueError(str(error).replace("`max_long_len`", "`max_length`")) from None


def _read(example, where):
    """An example of `EtcProcessor`: each text is one block, so that it is tokenized as a whole."""
    if isinstance(example, str):
        example = {"text": example}
    if not isinstance(example, dict) or not set(example) <= set(_FIELDS):
        found = sorted(example) if isinstance(example, dict) else type(example).__name__
        raise ValueError(
            f"`{where}` must be a text or a dict of `text`, or of `question` and `documents`. "
            f"Received: {found}"
        )
    if ("text" in example) == ("documents" in example):
        raise ValueError(f"`{where}` must have `text` or `documents`, one of the two.")
    texts = [example["text"]] if "text" in example else example["documents"]
    if not isinstance(texts, (list, tuple)) or not all(isinstance(x, str) for x in texts):
        raise ValueError(f"`{where}`: `documents` must be a list of str, `text` a str.")
    documents = [{"sentences": [text]} for text in texts]
    question = {"question": example["question"]} if "question" in example else {}
    return {**question, "documents": documents}
