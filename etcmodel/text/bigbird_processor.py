"""Turns texts, or a question and documents, into batches for BigBird."""

import dataclasses
import os

from etcmodel.text import processor_files, row_processor
from etcmodel.text.explanation import BigBirdExplanation

__all__ = ["BigBirdBatch", "BigBirdProcessor"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class BigBirdProcessorConfig(row_processor.RowConfig):
    """Settings of `BigBirdProcessor`, saved in `processor_config.json`.

    Attributes:
        has_types: bool. Whether batches have `token_type_ids`, 1 for documents after a question.
            Hugging Face's tokenizer of BigBird gives them on request alone. That of BERT always
            does, so that the folder of a BigBird that names it has them.
            `BigBirdForQuestionAnswering` finds them by itself.
        others: see `row_processor.RowConfig`.
    Raises:
        ValueError: naming the setting and its value.
    """

    has_types: bool = False


class BigBirdBatch(row_processor.RowBatch):
    """A batch: int32 `input_ids`, `attention_mask` [batch, length], and types with `has_types`.

    Attributes: see `ProcessedBatch`, so that `text.answers.best_answer` finds answers in it.
    """


class BigBirdProcessor(row_processor.RowProcessor):
    """Processor for BigBird: turns texts into batches for `BigBirdModel` and its heads.

    A text becomes `[CLS] A [SEP]`, a question with documents `[CLS] Q [SEP] D1 D2 … [SEP]`, of
    sentence pieces: for one document the tokens are those of Hugging Face's tokenizer for the pair.

    Args:
        vocab: str, the path of a SentencePiece model, or of another vocabulary as in
            `EtcProcessor`; or a tokenizer, or an object with a `tokenizer`.
        **settings: fields of `BigBirdProcessorConfig`.
    Raises:
        ValueError: if a setting is invalid, or the file is damaged.

    >>> processor = etcmodel.BigBirdProcessor("vocab.txt", max_length=4096, has_types=True)
    >>> batch = processor(question="Who wrote Emma?", documents=["Emma is by Jane Austen."])
    >>> {name: array.shape for name, array in batch.items()}
    {'input_ids': (1, 13), 'attention_mask': (1, 13), 'token_type_ids': (1, 13)}
    """

    config_class = BigBirdProcessorConfig
    batch_class = BigBirdBatch
    explanation_class = BigBirdExplanation

    @classmethod
    def vocabulary_file(cls, folder):
        if processor_files.is_there(folder, processor_files.SENTENCE_PIECES):
            return os.path.join(folder, processor_files.SENTENCE_PIECES)
        return super().vocabulary_file(folder)

    @classmethod
    def of_model(cls, folder, config):
        """See `RowProcessor`."""
        types = row_processor.types_for(config)
        return cls.from_pretrained(folder, max_length=config.max_length, **types)

    def further_features(self, batch):
        return {"token_type_ids": batch["segment_ids"]} if self.config.has_types else {}
