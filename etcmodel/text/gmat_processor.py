"""Turns texts, or a question and documents, into batches for GMAT: ids, types, memory."""

import dataclasses

import numpy as np

from etcmodel import bounded_json, shown_values
from etcmodel.text import row_processor
from etcmodel.text.explanation import GmatExplanation

__all__ = ["GmatBatch", "GmatProcessor"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class GmatProcessorConfig(row_processor.RowConfig):
    """Settings of `GmatProcessor`, saved in `processor_config.json`.

    Attributes:
        question_separators: int. How many separators end a question that a text follows: 1 as in
            BERT, 2 as in RoBERTa.
        has_types: bool. Whether documents after a question have token type 1. False for models with
            one type, such as those initialized from RoBERTa.
        question_memory: int or None. A number, the model's `num_memory_tokens`, uses that many
            first tokens of the question as the memory. None: the model's learned memory.
        others: see `row_processor.RowConfig`.
    Raises:
        ValueError: naming the setting and its value.
    """

    question_separators: int = 1
    has_types: bool = True
    question_memory: int | None = None

    def __post_init__(self):
        super().__post_init__()
        size = self.question_memory
        if size is not None and (type(size) is not int or not 1 <= size <= bounded_json.MAX_INT):
            raise ValueError(
                "`question_memory` must be an int of at least 1. Received: "
                f"{shown_values.shown(size)}"
            )

    def arranged(self):
        return {**super().arranged(), "question_separators": self.question_separators}


class GmatBatch(row_processor.RowBatch):
    """A batch for GMAT: int32 `input_ids` and `attention_mask` [batch, length], and optional ones.

    `token_type_ids` [batch, length] with `has_types`; `memory_ids` and `memory_mask`
    [batch, question_memory] with `question_memory`. The model splits a text into chunks itself:
    nothing is padded to a multiple of their size.

    Attributes: see `ProcessedBatch`, so that `text.answers.best_answer` finds answers in it.
    """


class GmatProcessor(row_processor.RowProcessor):
    """Processor for GMAT: turns texts into batches for `GmatModel` and its heads.

    A text becomes `[CLS] A [SEP]`, a question with documents `[CLS] Q [SEP] D1 D2 … [SEP]`, as in
    BERT; with byte-level BPE `<s> A </s>`. Source of the question as memory: Gupta and Berant 2020
    (arXiv:2006.03274), section 4.4.

    Args:
        vocab: str, the path of a vocabulary of word pieces, or of byte-level BPE; or a tokenizer,
            or an object with a `tokenizer`; another `GmatProcessor` also passes on its settings.
        **settings: fields of `GmatProcessorConfig`.
    Raises:
        ValueError: if a setting is invalid, or a file is damaged.

    >>> processor = etcmodel.GmatProcessor("vocab.txt", max_length=64, question_memory=2)
    >>> batch = processor(question="Who wrote Emma?", documents=["Emma is by Jane Austen."])
    >>> {name: array.shape for name, array in batch.items()}
    {'input_ids': (1, 13), 'attention_mask': (1, 13), 'token_type_ids': (1, 13), 'memory_ids':
    (1, 2), 'memory_mask': (1, 2)}
    """

    config_class = GmatProcessorConfig
    batch_class = GmatBatch
    explanation_class = GmatExplanation

    def __init__(self, vocab, **settings):
        if isinstance(vocab, GmatProcessor):
            settings = {**dataclasses.asdict(vocab.config), **settings}
        super().__init__(vocab, **settings)

    @classmethod
    def foreign_settings(cls, folder):
        of_bytes = {"question_separators": 2, "has_types": False}
        return super().foreign_settings(folder) or of_bytes

    @classmethod
    def of_model(cls, folder, config):
        """See `RowProcessor`."""
        types = row_processor.types_for(config)
        return cls.from_pretrained(folder, max_length=config.max_length, **types)

    def further_features(self, batch):
        features = {}
        if self.config.has_types:
            features["token_type_ids"] = batch["segment_ids"]
        size = self.config.question_memory
        if size is None:
            return features
        ids, mask = (np.zeros([len(batch["token_ids"]), size], np.int32) for _ in range(2))
        for encoding in batch.encodings:
            source = encoding.source
            if not source.num_question_pieces:
                raise ValueError(
                    f"`examples[{encoding.example}]` has no question, of which `question_memory` "
                    "makes the memory."
                )
            first = source.ids[: min(size, source.num_question_pieces)]
            ids[encoding.row, : len(first)] = first
            mask[encoding.row, : len(first)] = 1
        return {**features, "memory_ids": ids, "memory_mask": mask}
