"""Turns texts, or a question and documents, into batches for ModernBERT."""

from etcmodel.text import processor_files, row_processor
from etcmodel.text.explanation import ModernBertExplanation

__all__ = ["ModernBertBatch", "ModernBertProcessor"]

_LONGEST = 10**9  # Hugging Face writes 10 ** 30 for tokenizers without a limit.


class ModernBertBatch(row_processor.RowBatch):
    """A batch: int32 `input_ids` and `attention_mask` [batch, length].

    Attributes: see `ProcessedBatch`, so that `text.answers.best_answer` finds answers in it.
    """


class ModernBertProcessor(row_processor.RowProcessor):
    """Processor for ModernBERT: turns texts into batches for `ModernBertModel` and its heads.

    A text becomes `[CLS] A [SEP]`, a question with documents `[CLS] Q [SEP] D1 D2 … [SEP]`: for one
    document the tokens are those of Hugging Face's tokenizer for the pair.

    Args:
        vocab: str, a `tokenizer.json`; or a `byte_bpe.ByteLevelTokenizer`, or an object with a
            `tokenizer`.
        **settings: fields of `row_processor.RowConfig`.
    Raises:
        ValueError: if a setting is invalid, or a file is damaged.

    >>> processor = etcmodel.ModernBertProcessor("vocab.json", max_length=8192)
    >>> batch = processor(["Who?", "By Jane."])
    >>> sorted(batch), batch["input_ids"].shape
    (['attention_mask', 'input_ids'], (2, 10))
    """

    batch_class = ModernBertBatch
    explanation_class = ModernBertExplanation

    @classmethod
    def of_model(cls, folder, config):
        """See `RowProcessor`; the longest text is the tokenizer's, if it has a limit.

        The `max_position_embeddings` of early files is not what the models were trained for.
        """
        limit = processor_files.foreign_entries(folder).get("model_max_length")
        is_limit = type(limit) in (int, float) and 0 < limit < _LONGEST
        length = int(limit) if is_limit else config.max_position_embeddings
        return cls.from_pretrained(folder, max_length=length)
