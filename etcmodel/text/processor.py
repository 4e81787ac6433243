"""Turns texts, tables, pages and graphs into batches for a model, and token ids into text."""

import functools
import os
from collections.abc import Iterable, Sequence
from typing import Any

from absl import logging
from typing_extensions import Self

from etcmodel import hub, shown_values
from etcmodel.text import arrangement, encoding, pieces, processor_files, readers, vocabulary
from etcmodel.text.alignment import sentencepiece_detokenize, wordpiece_tokens_to_normalized_text
from etcmodel.text.arrangement import SpecialIds
from etcmodel.text.byte_bpe import ByteLevelTokenizer
from etcmodel.text.documents import Document
from etcmodel.text.encoding import ProcessedBatch, TokenizedDocument
from etcmodel.text.examples import ReadsExamples
from etcmodel.text.explanation import Explanation, encoding_of
from etcmodel.text.processor_config import ProcessorConfig
from etcmodel.text.sentence_splitting import sentence_splitter
from etcmodel.text.truncation import CutTotals

__all__ = ["EtcProcessor"]

_Settings = dict[str, Any] | None

_SPECIAL = {
    "cls_token": ("[CLS]", "<s>", "<bos>", "</s>"),  # The last for T5's, which have no start token.
    "sep_token": ("[SEP]", "</s>", "<eos>"),
    "pad_token": ("[PAD]", "<pad>"),
}


class EtcProcessor(ReadsExamples):
    """Processor for ETC: turns structured text into batches, a `ProcessedBatch` of NumPy arrays.

    An example is a text, or a dict of fields with structured texts: see `readers.read`.
    Documentation and worked examples: docs/processor.md. Source of the input format: Ainslie et al.
    2020 (arXiv:2004.08483), section 3.

    Args:
        vocab: str, the path of a WordPiece vocabulary; if it ends in `.model`, of a SentencePiece
            model; or of the `vocab.json` (with `merges.txt`) or `tokenizer.json` of byte-level BPE.
            Or a `tokenization.FullTokenizer` or `byte_bpe.ByteLevelTokenizer`.
        **settings: fields of `ProcessorConfig`.

    Raises:
        ValueError: if a setting is invalid, or the vocabulary lacks a required token.

    >>> processor = etcmodel.EtcProcessor("vocab.txt", max_long_len=4096, max_global_len=256)
    >>> batch = processor(question="Who wrote Emma?", documents=["Emma is by Jane Austen."])
    >>> batch["token_ids"].shape, batch["global_token_ids"].shape
    ((1, 13), (1, 4))
    >>> processor.decode(batch["token_ids"][0])
    'who wrote emma ? emma is by jane austen .'
    """

    config_class = ProcessorConfig

    def __init__(self, vocab: Any, **settings: Any) -> None:
        if not isinstance(vocab, (str, os.PathLike)):
            settings = {**settings, **processor_files.settings_of(vocab)}
        self.config = ProcessorConfig(**settings)
        self._set_tokenizer(vocab)

    def _set_tokenizer(self, vocab: Any) -> None:
        if isinstance(vocab, (str, os.PathLike)):
            if os.path.isdir(vocab):
                raise ValueError(
                    f"`vocab` must be the path of a vocabulary. {os.fspath(vocab)!r} is a folder: "
                    "use `EtcProcessor.from_pretrained`."
                )
            vocab = processor_files.make_tokenizer(os.fspath(vocab), self.config)
        self._take(vocab)

    def _take(self, vocab: Any) -> None:
        self.tokenizer = vocab
        size = max(vocab.inv_vocab) + 1
        self.vocabulary = tuple(vocab.inv_vocab.get(index, "") for index in range(size))
        self._splitter = pieces.Splitter(vocab)
        self._special = self._special_ids()

    @classmethod
    def from_pretrained(cls, folder: str | os.PathLike[str], **settings: Any) -> Self:
        """Loads a processor from `save_pretrained`'s folder, or one with just a vocabulary.

        Args:
            folder: str. A folder, or `hf:NAME` (`hub.local_folder`), with `vocab.txt`,
                `spiece.model`, `tokenizer.json` or `vocab.json`; and optionally
                `processor_config.json` or `tokenizer_config.json`.
            **settings: fields of `ProcessorConfig` that replace those of the folder.
        Raises:
            ValueError: naming the folder or the file.

        >>> etcmodel.EtcProcessor.from_pretrained("my_model", max_long_len=512)
        EtcProcessor(105 tokens, max_long_len=512)
        """
        tokenizer, config = processor_files.load(
            hub.local_folder(os.fspath(folder), with_weights=False), settings
        )
        processor = cls.__new__(cls)
        processor.config = config
        processor._set_tokenizer(tokenizer)
        return processor

    def add_tokens(self, tokens: str | Sequence[str], special_tokens: bool = False) -> int:
        """Adds tokens to the vocabulary, such as `[question]`, which texts then have unsplit.

        They are saved with the processor, also for Hugging Face's library. A model needs a row of
        its table for each: see `resize_token_embeddings`.

        Args:
            tokens: list of str, or one str. A token that the vocabulary has keeps its id; it is not
                split any more. In texts that are turned into lower case, they may be written in
                any case, unless they are special.
            special_tokens: bool. Whether Hugging Face's library leaves them out when it decodes.
        Returns:
            int. How many of them the vocabulary did not have; their ids follow all others.
        Raises:
            ValueError: naming the token, if one is not a str or is blank.

        >>> processor = etcmodel.EtcProcessor("vocab.txt")
        >>> processor.add_tokens(["[ent]", "[/ent]"])
        2
        >>> processor("A [ent]good[/ent] book.").encodings[0].tokens
        ['[CLS]', 'a', '[ent]', 'good', '[/ent]', 'book', '.', '[SEP]']
        """
        added = self.tokenizer.add_tokens(tokens, special_tokens)
        self._take(self.tokenizer)
        return added

    @property
    def relation_names(self) -> tuple[str, ...]:
        """tuple of str: the relations of its batches, in the order of their labels."""
        return self.config.relation_names

    def save_pretrained(self, folder: str | os.PathLike[str]) -> None:
        """Saves the vocabulary and the settings to a folder, which is created if needed.

        >>> etcmodel.EtcProcessor("vocab.txt", max_long_len=512).save_pretrained("processor")
        >>> etcmodel.EtcProcessor.from_pretrained("processor").config.max_long_len
        512
        """
        processor_files.save(os.fspath(folder), self.tokenizer, self.config)

    def __call__(
        self, examples: Any = None, *, settings: _Settings = None, **fields: Any
    ) -> ProcessedBatch:
        """Makes the batch of one or several examples.

        Args:
            examples: a list of examples, or one: a text, a dict of fields, a `Document`.
            settings: dict. Fields of `ProcessorConfig` that override the processor's.
            **fields: the fields of one example, instead of `examples`.
        Returns:
            `ProcessedBatch`. What was truncated is in its encodings, and is logged in one line.
        Raises:
            ValueError: naming the example and the field.

        >>> processor = etcmodel.EtcProcessor("vocab.txt")
        >>> batch = processor(["Good!", "It is a bad book."])
        >>> batch["token_ids"].shape
        (2, 8)
        >>> batch.encodings[1].tokens
        ['[CLS]', 'it', 'is', 'a', 'bad', 'book', '.', '[SEP]']
        """
        if (examples is None) == (not fields):
            raise ValueError("Give `examples`, or the fields of one example, one of the two.")
        if fields or not isinstance(examples, (list, tuple)):
            named = [("example", fields or examples)]
        else:
            named = [(f"examples[{index}]", example) for index, example in enumerate(examples)]
        if not named:
            raise ValueError("`examples` must hold at least one example. Received: none")
        totals = CutTotals()
        batch = self.make_batch(named, settings, totals)
        totals.log()
        return batch

    def batch_of(
        self, example: Any, where: str = "example", settings: _Settings = None
    ) -> ProcessedBatch:
        """Makes the batch of one example like `__call__`, without logging truncation.

        Args:
            example: a text, a dict of fields, or a `Document`.
            where: str. The example's name in errors.
            settings: dict. As in `__call__`.

        >>> processor = etcmodel.EtcProcessor("vocab.txt")
        >>> processor.batch_of("It is good.")["token_ids"].shape
        (1, 6)
        """
        return self.make_batch([(where, example)], settings, CutTotals())

    def make_batch(
        self, named: Iterable[tuple[str, Any]], settings: _Settings, totals: CutTotals
    ) -> ProcessedBatch:
        config, encodings = self.config.with_call_settings(settings or {}), []
        for number, (where, example) in enumerate(named):
            source = self.tokenize(example, where, config)
            encodings += arrangement.encode(
                source, config, self._special, self.vocabulary, number, where
            )
        totals.add(encodings)
        _log_left_out(encodings, config)
        return encoding.make_batch(encodings, config, self._special.pad)

    def read(self, example: Any, where: str = "example") -> Document:
        """Reads an example into a `documents.Document`.

        >>> document = etcmodel.EtcProcessor("vocab.txt").read("It is good. It was bad.")
        >>> [document.block_text(block) for block in document.blocks]
        ['It is good.', 'It was bad.']
        """
        return self._read(example, where, self.config)

    @staticmethod
    def _read(example: Any, where: str, config: ProcessorConfig) -> Document:
        splitter = sentence_splitter(config.sentence_splitter)
        return readers.read(example, splitter, where, config.main_only)

    def tokenize(
        self, example: Any, where: str = "example", config: ProcessorConfig | None = None
    ) -> TokenizedDocument:
        """Tokenizes an example: an `encoding.TokenizedDocument` of all its pieces, with offsets.

        >>> source = etcmodel.EtcProcessor("vocab.txt").tokenize("It is good.")
        >>> source.ids
        array([96, 97, 91, 43], dtype=int32)
        """
        document = self._read(example, where, config or self.config)
        return TokenizedDocument.of(document, self._splitter)

    def decode(self, ids: Iterable[int], keep_special_tokens: bool = False) -> str:
        """Decodes token ids to text, in the vocabulary's normalized form.

        Args:
            ids: sequence of int.
            keep_special_tokens: bool. Whether to keep [CLS], [SEP] and padding.
        Raises:
            ValueError: if an id is negative. Ids beyond the vocabulary, which a model may have, are
                ignored: see `vocabulary.known_ids`.

        >>> processor = etcmodel.EtcProcessor("vocab.txt")
        >>> processor.decode(processor("It's a good book!")["token_ids"][0])
        "it ' s a good book !"
        """
        special = (self._special.cls, self._special.sep, self._special.pad)
        known = vocabulary.known_ids(ids, self.tokenizer.inv_vocab)
        kept = [x for x in known if keep_special_tokens or x not in special]
        tokens = [self.vocabulary[x] for x in kept]
        if isinstance(self.tokenizer, ByteLevelTokenizer):
            return self.tokenizer.decode(self.tokenizer.convert_tokens_to_ids(tokens))
        if self.tokenizer.sp_model:
            return sentencepiece_detokenize(tokens)
        return wordpiece_tokens_to_normalized_text(tokens)

    def explain(
        self,
        batch: ProcessedBatch,
        example: int = 0,
        window: int = 0,
        config: Any = None,
        *,
        tokens: Sequence[int] | None = None,
        blocks: Sequence[int] | None = None,
    ) -> Explanation:
        """Explains what a model gets of an example: a table, reasons, and a picture.

        Args:
            batch: `ProcessedBatch`.
            example: int. Index of the example among those given to the processor.
            window: int. Index of its window.
            config: a model, or its config, such as `EtcConfig`; None for the default radius of 84,
                maximal distance of 12 and no hard masks.
            tokens: range or list of int. The long tokens to show; None for all.
            blocks: range or list of int, instead of `tokens`: the global tokens to show, with the
                long tokens linked to them.
        Returns:
            `explanation.Explanation`: `print` it, call `why("l3", "g1")`, or `save` its picture.
        Raises:
            ValueError: if there is no such example, window, token or block, or the model has other
                relations than the batch, or too few labels.

        >>> processor = etcmodel.EtcProcessor("vocab.txt")
        >>> explained = processor.explain(processor("A good book. The river was good."))
        >>> print(explained.why("l1", "g1"))
        l1 'a' attends to g1 '[CLS]': linked, its own sentence.
        """
        encoding = encoding_of(batch, example, window)
        return Explanation(batch, encoding, config).zoomed(tokens, blocks)

    def _special_ids(self) -> SpecialIds:
        ids, told = {}, {}
        if isinstance(self.tokenizer, ByteLevelTokenizer):
            told = dict(zip(("cls_token", "sep_token"), self.tokenizer.around(), strict=True))
        for name, usual in _SPECIAL.items():
            chosen = getattr(self.config, name)
            if chosen is None and len(told.get(name, ())) == 1:
                ids[name.removesuffix("_token")] = told[name][0]
                continue
            candidates = usual if chosen is None else (chosen,)
            found = [token for token in candidates if token in self.tokenizer.vocab]
            if not found:
                lacking = shown_values.shown(candidates[0])
                raise ValueError(
                    f"The vocabulary {str(self.tokenizer.source_file)!r} lacks {lacking}. "
                    f"Name its own token in `{name}`."
                )
            ids[name.removesuffix("_token")] = self.tokenizer.vocab[found[0]]
        word_pieces = getattr(self.tokenizer, "wordpiece_tokenizer", None)
        unknown = [] if word_pieces is None else [word_pieces.unk_token]
        self.tokenizer.require_tokens([*unknown, *self.config.global_tokens.values()])
        by_kind = {
            kind: self.tokenizer.vocab[token] for kind, token in self.config.global_tokens.items()
        }
        return SpecialIds(**ids, block=self._block_id(ids["cls"]), by_kind=by_kind)

    def _block_id(self, cls_id: int) -> int:
        block_id = self.config.global_token_id
        if block_id is not None and block_id not in self.tokenizer.inv_vocab:
            raise ValueError(
                f"`global_token_id` must be an id of the vocabulary "
                f"{str(self.tokenizer.source_file)!r}. Received: {block_id}"
            )
        return cls_id if block_id is None else block_id


@functools.lru_cache(maxsize=4)
def ends_of(tokenizer: Any) -> tuple[int, int]:
    """Returns the ids of a vocabulary's [CLS] and [SEP], whatever their names.

    Args:
        tokenizer: `tokenization.FullTokenizer` or `byte_bpe.ByteLevelTokenizer`.
    Raises:
        ValueError: naming the vocabulary, if it has none.

    >>> from etcmodel.text import processor, tokenization
    >>> processor.ends_of(tokenization.FullTokenizer("vocab.txt"))
    (2, 3)
    """
    special = EtcProcessor(tokenizer)._special
    return special.cls, special.sep


def _log_left_out(encodings: Iterable[Any], config: ProcessorConfig) -> None:
    documents = [x.document for x in encodings if x.window == 0]
    found = {name for x in documents for name in (*x.edges, *x.mentions)}
    if any(x.cells for x in documents):
        found |= {"row", "column", "header"}
    if left_out := sorted(found - set(config.relation_names)):
        logging.log_first_n(
            logging.WARNING,
            "Relations that `relation_names` does not name are left out: %s.",
            1,
            ", ".join(left_out),
        )
