"""Turns texts, or a question and documents, into rows of ids: the base of encoders' processors."""

import contextlib
import dataclasses
import os

import numpy as np

from etcmodel import shown_values
from etcmodel.text import byte_bpe, processor_files, vocabulary
from etcmodel.text.encoding import ProcessedBatch
from etcmodel.text.examples import ReadsExamples
from etcmodel.text.explanation import PatternExplanation, encoding_of
from etcmodel.text.processor import EtcProcessor
from etcmodel.text.truncation import CutTotals

_FIELDS = ("text", "question", "documents", "id", "extra")


@dataclasses.dataclass(frozen=True, kw_only=True)
class RowConfig:
    """Settings shared by row processors, saved in `processor_config.json`.

    Attributes:
        max_length: int or None. The most tokens of a row; what does not fit is truncated at the end
            of the documents, never of the question.
        stride: int or None. With a number, what does not fit goes into further rows, which repeat
            about as many tokens; nothing is truncated.
        pad_to_multiple_of: int. The length of a batch is rounded up to it.
        do_lower_case: bool. For word pieces: lower-case text and strip accents.
    Raises:
        ValueError: naming the setting and its value.
    """

    max_length: int | None = None
    stride: int | None = None
    pad_to_multiple_of: int = 1
    do_lower_case: bool = True

    def __post_init__(self):
        if self.stride is not None and self.max_length is None:
            raise ValueError("`stride` needs `max_length`, the length of a window.")
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.type is bool and not isinstance(value, bool):
                raise ValueError(
                    f"`{field.name}` must be True or False. Received: {shown_values.shown(value)}"
                )

    def arranged(self):
        """Returns the settings of an `EtcProcessor` that makes the same rows."""
        return {
            "max_long_len": self.max_length,
            "stride": self.stride,
            "pad_to_multiple_of": self.pad_to_multiple_of,
            "do_lower_case": self.do_lower_case,
        }


class RowBatch(ProcessedBatch):
    """A batch: int32 arrays by a model's argument names, such as `input_ids` [batch, length].

    Attributes: see `ProcessedBatch`, so that `text.answers.best_answer` finds answers in it.
    """

    @property
    def long_shape(self):
        return self["input_ids"].shape


class RowProcessor(ReadsExamples):
    """The base of processors that turn each text into one row of tokens.

    A subclass has its `config_class`, `batch_class` and `explanation_class`, finds its tokenizer in
    a folder, and adds the model's inputs besides ids and mask. Without an explanation of its own,
    `explain` asks the `reaches` of the model's config who attends to whom.

    Args:
        vocab: str, the path of a vocabulary as in `EtcProcessor`; or a tokenizer, or an object with
            a `tokenizer`.
        **settings: fields of the `config_class`.
    Raises:
        ValueError: if a setting is invalid, or a file is damaged.
    """

    config_class = RowConfig
    batch_class = RowBatch
    explanation_class = PatternExplanation

    def __init__(self, vocab, **settings):
        vocab = getattr(vocab, "tokenizer", vocab)
        if not isinstance(vocab, (str, os.PathLike)):
            of_tokenizer = processor_files.settings_of(vocab)["do_lower_case"]
            settings = {**settings, "do_lower_case": of_tokenizer}
        self.config = self.config_class(**settings)
        with self._own_names():
            self._arranging = EtcProcessor(vocab, **self.config.arranged())
        self.tokenizer = self._arranging.tokenizer

    @property
    def vocabulary(self):
        """tuple of str: the tokens by id."""
        return self._arranging.vocabulary

    def add_tokens(self, tokens, special_tokens=False):
        """Adds tokens to the vocabulary: see `EtcProcessor.add_tokens`.

        >>> processor = etcmodel.LongformerProcessor("vocab.json")
        >>> processor.add_tokens(["[question]", "[/question]"])
        2
        >>> processor("[question]Who?[/question]")["input_ids"].shape
        (1, 8)
        """
        return self._arranging.add_tokens(tokens, special_tokens)

    @classmethod
    def vocabulary_file(cls, folder):
        """Returns the path of the vocabulary in a folder.

        Raises:
            ValueError: naming the folder, if there is none.
        """
        return word_piece_file(folder) or processor_files.byte_level_file(folder)

    @classmethod
    def from_pretrained(cls, folder, **settings):
        """Loads a processor from `save_pretrained`'s folder, or one with just a vocabulary.

        Raises:
            ValueError: naming the folder or the file.

        >>> etcmodel.LongformerProcessor("vocab.json").save_pretrained("processor")
        >>> etcmodel.LongformerProcessor.from_pretrained("processor", max_length=512)
        LongformerProcessor(261 tokens, max_length=512)
        """
        return processor_files.of_folder(cls, folder, settings)

    @classmethod
    def of_model(cls, folder, config):
        """Creates a model's processor from its folder, with a vocabulary but no processor settings.

        Args:
            folder: str.
            config: the model's config.
        Raises:
            ValueError: see `from_pretrained`.
        """
        return cls.from_pretrained(folder, max_length=config.max_length)

    @classmethod
    def foreign_settings(cls, folder):
        """Returns the settings in another library's files: dict."""
        if not (path := word_piece_file(folder)):
            return {}
        known = {field.name for field in dataclasses.fields(cls.config_class)}
        of_pairs = {x: y for x, y in _of_bert(folder).items() if x in known}
        return {**processor_files.foreign_case(folder, path), **of_pairs}

    def save_pretrained(self, folder):
        """Saves the vocabulary and the settings to a folder, which is created if needed.

        >>> etcmodel.GmatProcessor("vocab.txt", max_length=512).save_pretrained("processor")
        >>> sorted(tf.io.gfile.listdir("processor"))
        ['processor_config.json', 'vocab.txt']
        """
        settings = dataclasses.asdict(self.config)
        processor_files.save_with_settings(folder, self.tokenizer, settings)

    def __call__(self, examples=None, **fields):
        """Makes the batch of one or several examples.

        Args:
            examples: a list of examples, or one: a text, or a dict of `text` or of `question` and
                `documents`, a list of str.
            **fields: the fields of one example, instead of `examples`.
        Returns:
            Batch of the `batch_class`. What was truncated is in its encodings, and is logged in one
            line.
        Raises:
            ValueError: naming the example and the field.
        """
        if (examples is None) == (not fields):
            raise ValueError("Give `examples`, or the fields of one example, one of the two.")
        if not isinstance(examples, (list, tuple)):
            examples = [fields or examples]
        totals = CutTotals()
        named = [(f"examples[{index}]", example) for index, example in enumerate(examples)]
        batch = self.make_batch(named, None, totals)
        totals.log()
        return batch

    def make_batch(self, named, settings, totals):
        if settings:
            raise ValueError(
                f"{type(self).__name__} takes no `settings` for a call. Received: "
                f"{shown_values.shown(settings)}"
            )
        with self._own_names():
            read = [(where, _read(example, where)) for where, example in named]
            batch = self._arranging.make_batch(read, None, totals)
        is_token = batch["example_ids"] > 0
        features = {
            "input_ids": batch["token_ids"],
            "attention_mask": is_token.astype(np.int32),
            **self.further_features(batch),
        }
        return self.batch_class(features, batch.encodings)

    @classmethod
    @contextlib.contextmanager
    def _own_names(cls):
        """Makes errors of the `EtcProcessor` name this class and its settings."""
        try:
            yield
        except ValueError as error:
            told = str(error).replace("`max_long_len`", "`max_length`")
            raise ValueError(told.replace("`EtcProcessor.", f"`{cls.__name__}.")) from None

    def further_features(self, batch):
        """Returns the model's inputs besides ids and mask: dict of int32 arrays.

        Args:
            batch: `ProcessedBatch` of an `EtcProcessor`.
        """
        return {}

    def explain(self, batch, example=0, window=0, config=None, *, tokens=None, blocks=None):
        """Explains what a model gets of an example: which tokens are global, which attend to which.

        Args:
            batch: batch of this processor.
            example: int. Index of the example among those given to the processor.
            window: int. Index of its window.
            config: the model's config, or the model; None for windows, or chunks, of 512.
            tokens: range or list of int. The tokens to show; None for all.
            blocks: range or list of int, instead of `tokens`: for a Longformer the texts to show,
                the question first; for a GMAT the chunks.
        Returns:
            `explanation.RowExplanation`: `print` it, call `why(3, 100)`, or `save` its picture.
        Raises:
            ValueError: if there is no such example, window, token or block, or the model decides
                which tokens are global.

        >>> processor = etcmodel.LongformerProcessor("vocab.json")
        >>> print(processor.explain(processor("A good book.")).why(3, 0))
        3 'g' attends to 0 '<s>': the key is global, the first token.
        """
        encoding = encoding_of(batch, example, window)
        return self.explanation_class(batch, encoding, config).zoomed(tokens, blocks)

    def decode(self, ids, keep_special_tokens=False):
        """Decodes token ids to text: see `EtcProcessor.decode`.

        >>> processor = etcmodel.LongformerProcessor("vocab.json")
        >>> processor.decode(processor("A good book.")["input_ids"][0])
        'A good book.'
        """
        return self._arranging.decode(ids, keep_special_tokens)


def word_piece_file(folder):
    """Returns the path of a folder's vocabulary of word pieces; None if it has none.

    Raises:
        ValueError: see `vocabulary.check_beside`.
    """
    if processor_files.is_there(folder, processor_files.WORD_PIECES):
        path = os.path.join(folder, processor_files.WORD_PIECES)
        vocabulary.check_beside(path)
        return path
    path = os.path.join(folder, vocabulary.TOKENIZER_FILE)
    return path if vocabulary.has_word_pieces(path) else None


def _of_bert(folder):
    """How BERT's tokenizer of Hugging Face's library arranges pairs; {} for a folder of another."""
    entries = processor_files.foreign_entries(folder)
    if byte_bpe.class_of(folder, entries)[0] != "BertTokenizer":
        return {}
    names = entries.get("model_input_names") or ["token_type_ids"]
    return {"question_separators": 1, "has_types": "token_type_ids" in names}


def types_for(config):
    """Returns the setting `has_types` that a model needs: False if it has one token type, or none.

    Args:
        config: the model's config.
    Returns:
        dict; empty if the folder decides.
    """
    return {} if getattr(config, "type_vocab_size", 1) > 1 else {"has_types": False}


def _read(example, where):
    """Reads an example for `EtcProcessor`: each text is one block, and so tokenized as a whole."""
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
    others = {name: example[name] for name in ("question", "id", "extra") if name in example}
    return {**others, "documents": documents}
