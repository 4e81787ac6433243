"""Turns questions and passages into batches for GenBERT over a GMAT, and answers into texts."""

import dataclasses
import os

import numpy as np

from etcmodel import shown_values
from etcmodel.text import number_pieces, processor_files, row_processor
from etcmodel.text.explanation import GmatExplanation
from etcmodel.text.seq2seq_processor import IGNORED_LABEL, as_texts

__all__ = ["GmatSeq2SeqProcessor"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class GmatSeq2SeqProcessorConfig(row_processor.RowConfig):
    """Settings of `GmatSeq2SeqProcessor`, saved in `processor_config.json`.

    Attributes:
        do_lower_case: bool. Lower-case text and strip accents.
        others: see `row_processor.RowConfig`; there is no `stride`, as an answer belongs to one
            row.
    Raises:
        ValueError: naming the setting and its value.
    """

    do_lower_case: bool = True

    def __post_init__(self):
        super().__post_init__()
        if self.stride is not None:
            raise ValueError(
                "`stride` must be None: a text that is answered has one row. Received: "
                f"{shown_values.shown(self.stride)}"
            )

    def arranged(self):
        return {**super().arranged(), "do_lower_case": self.do_lower_case}


class GmatSeq2SeqProcessor(row_processor.RowProcessor):
    """Processor for `GmatForConditionalGeneration`: texts to batches, generated ids to texts.

    A question with a passage becomes `[CLS] Q [SEP] P [SEP]`, all of token type 0; a number is
    split into its digits, 407 into `4 ##0 ##7`. The labels of an answer are its pieces and `\\`,
    which ends it; the model begins with `@`. Source: Gupta and Berant 2020 (arXiv:2006.03274),
    section 3.2; Geva et al. 2020 (arXiv:2004.04487), section 3.1.

    Args:
        vocab: str, the path of a vocabulary of word pieces with all digits, `@` and `\\`; or its
            tokenizer, or an object with a `tokenizer`.
        **settings: fields of `GmatSeq2SeqProcessorConfig`.
    Raises:
        ValueError: if a setting is invalid, or the vocabulary lacks a token.

    >>> processor = etcmodel.GmatSeq2SeqProcessor("vocab.txt")
    >>> batch = processor(question="Who wrote it?", documents=["It was book 407."], targets="Jane")
    >>> processor.decode(batch["input_ids"][0]), batch["labels"].shape
    ('who wrote it ? it was book 407 .', (1, 2))
    """

    config_class = GmatSeq2SeqProcessorConfig
    explanation_class = GmatExplanation

    def __init__(self, vocab, **settings):
        if not isinstance(vocab, (str, os.PathLike)):
            tokenizer = getattr(vocab, "tokenizer", vocab)
            number_pieces.check_tokenizer(tokenizer)
            vocab = tokenizer.source_file
            settings = {"do_lower_case": tokenizer.basic_tokenizer.do_lower_case, **settings}
        is_lower = self.config_class(**settings).do_lower_case
        super().__init__(number_pieces.NumberTokenizer(os.fspath(vocab), is_lower), **settings)

    @classmethod
    def vocabulary_file(cls, folder):
        return row_processor.word_piece_file(folder) or super().vocabulary_file(folder)

    @classmethod
    def foreign_settings(cls, folder):
        return processor_files.foreign_case(folder, row_processor.word_piece_file(folder) or "")

    @classmethod
    def of_model(cls, folder, config):
        """See `RowProcessor`; the tokens around an answer must have the model's ids."""
        processor = super().of_model(folder, config)
        marks = (number_pieces.START, number_pieces.END)
        ids = number_pieces.start_and_end(processor.tokenizer)
        names = ("decoder_start_token_id", "eos_token_id")
        for mark, token_id, name in zip(marks, ids, names, strict=True):
            if getattr(config, name) not in (None, token_id):
                raise ValueError(
                    f"{mark!r} has the id {token_id} in its vocabulary, and the model's `{name}` "
                    f"is {getattr(config, name)}."
                )
        return processor

    def __call__(self, examples=None, targets=None, **fields):
        """Makes the batch of one or several examples.

        Args:
            examples, **fields: see `RowProcessor`.
            targets: list of str, one per example, or one str: the answers; None for no `labels`.
        Returns:
            `RowBatch` of int32 `input_ids` and `attention_mask` [batch, length], and with targets
            `labels` [batch, target], -100 behind the end of an answer.
        Raises:
            ValueError: naming the example or the target.

        >>> processor = etcmodel.GmatSeq2SeqProcessor("vocab.txt")
        >>> batch = processor(["Who wrote it?", "Who is it?"], targets=["Jane", "Jane Austen"])
        >>> batch["labels"].shape
        (2, 3)
        """
        batch = super().__call__(examples, **fields)
        if targets is not None:
            targets = as_texts("targets", targets)
            if len(targets) != len(batch["input_ids"]):
                raise ValueError(
                    f"There are {len(batch['input_ids'])} examples and {len(targets)} `targets`."
                )
            batch["labels"] = self._labels(targets)
        return batch

    def _labels(self, targets):
        found = []
        for place, target in enumerate(targets):
            pieces = self.tokenizer.tokenize(target)
            if number_pieces.END in pieces:
                raise ValueError(
                    f"`targets[{place}]` must not have {number_pieces.END!r}, which ends answers."
                )
            found.append(self.tokenizer.convert_tokens_to_ids([*pieces, number_pieces.END]))
        labels = np.full([len(found), max(map(len, found))], IGNORED_LABEL, np.int32)
        for row, ids in zip(labels, found, strict=True):
            row[: len(ids)] = ids
        return labels

    def decode(self, ids, keep_special_tokens=False):
        """Decodes ids to text; from `generate`'s sequences, the text between `@` and `\\`.

        Args: see `EtcProcessor.decode`.

        >>> processor = etcmodel.GmatSeq2SeqProcessor("vocab.txt")
        >>> labels = processor("Who wrote it?", targets="Jane Austen")["labels"]
        >>> processor.decode(labels[0])
        'jane austen'
        """
        start, end = number_pieces.start_and_end(self.tokenizer)
        ids = [int(x) for x in ids]
        if not keep_special_tokens:
            ids = ids[1:] if ids[:1] == [start] else ids
            ids = ids[: ids.index(end)] if end in ids else ids
        return super().decode(ids, keep_special_tokens)

    def explain(self, batch, example=0, config=None, *, tokens=None, blocks=None):
        """Explains the encoder's input: see `GmatProcessor.explain`; there is one window.

        Raises:
            ValueError: if there is no such example, token or block.

        >>> processor = etcmodel.GmatSeq2SeqProcessor("vocab.txt")
        >>> print(processor.explain(processor("Good. Bad.")).why(1, 3))
        1 'good' attends to 3 'bad': both are in chunk 0, of 512 tokens.
        """
        return super().explain(batch, example, 0, config, tokens=tokens, blocks=blocks)
