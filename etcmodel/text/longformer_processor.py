"""Turns texts, or a question and documents, into batches for Longformer: ids, global tokens."""

import dataclasses

import numpy as np

from etcmodel import shown_values
from etcmodel.text import row_processor
from etcmodel.text.explanation import LongformerExplanation

__all__ = ["LongformerBatch", "LongformerProcessor"]

GLOBAL_TOKENS = ("question", "first", "none", "model")


@dataclasses.dataclass(frozen=True, kw_only=True)
class LongformerProcessorConfig(row_processor.RowConfig):
    """Settings of `LongformerProcessor`, saved in `processor_config.json`.

    Attributes:
        global_tokens: str. "question": all tokens before the first separator, or the first token of
            a text without a question, as in `LongformerForQuestionAnswering` and
            `LongformerForSequenceClassification`; "first": the first token; "none"; or "model": the
            default of the model's class, or of an LED's config, for batches without global tokens.
        question_separators: int. How many separators end a question that a text follows: 2 as in
            RoBERTa, 1 as in BERT, whose tokenizer some folders name.
        has_types: bool. Whether batches have `token_type_ids`, 1 for documents after a question, as
            from BERT's tokenizer.
        others: see `row_processor.RowConfig`.

    Raises:
        ValueError: naming the setting and its value.
    """

    global_tokens: str = "question"
    question_separators: int = 2
    has_types: bool = False

    def __post_init__(self):
        super().__post_init__()
        if self.global_tokens not in GLOBAL_TOKENS:
            raise ValueError(
                f"`global_tokens` must be one of {GLOBAL_TOKENS}. Received: "
                f"{shown_values.shown(self.global_tokens)}"
            )

    def arranged(self):
        return {**super().arranged(), "question_separators": self.question_separators}


class LongformerBatch(row_processor.RowBatch):
    """A batch: int32 `input_ids`, `attention_mask` and `global_attention_mask` [batch, length].

    The last one is absent if the model decides (`global_tokens="model"`); with `has_types` there
    are also `token_type_ids`.

    Attributes: see `ProcessedBatch`, so that `text.answers.best_answer` finds answers in it.
    """


class LongformerProcessor(row_processor.RowProcessor):
    """Processor for Longformer: turns texts into batches for `LongformerModel` and its heads.

    A text becomes `<s> A </s>`, a question with documents `<s> Q </s></s> D1 D2 … </s>`: for one
    document the tokens are those of Hugging Face's tokenizer for the pair. The folder of a
    Longformer with BERT's tokenizer has one separator there, and token types. Source of the global
    tokens: Beltagy et al. 2020 (arXiv:2004.05150), section 3.1.

    Args:
        vocab: str, a `vocab.json` with `merges.txt` beside it or a `tokenizer.json`; or a
            `byte_bpe.ByteLevelTokenizer`, or an object with a `tokenizer`.
        **settings: fields of `LongformerProcessorConfig`.
    Raises:
        ValueError: if a setting is invalid, or a file is damaged.

    >>> processor = etcmodel.LongformerProcessor("vocab.json", max_length=4096)
    >>> batch = processor(question="Who?", documents=["By Jane."])
    >>> batch["global_attention_mask"]
    array([[1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]], dtype=int32)
    """

    config_class = LongformerProcessorConfig
    batch_class = LongformerBatch
    explanation_class = LongformerExplanation

    @classmethod
    def of_model(cls, folder, config):
        """See `RowProcessor`; global tokens are left to the model."""
        limit = getattr(config, "max_encoder_position_embeddings", None) or config.max_length
        types = row_processor.types_for(config)
        return cls.from_pretrained(folder, max_length=limit, global_tokens="model", **types)

    def further_features(self, batch):
        features = {"token_type_ids": batch["segment_ids"]} if self.config.has_types else {}
        if self.config.global_tokens == "model":
            return features
        mask = np.zeros_like(batch["token_ids"])
        for encoding in batch.encodings:
            mask[encoding.row, : self.num_global(encoding)] = 1
        return {**features, "global_attention_mask": mask}

    def num_global(self, encoding):
        """The number of a row's global tokens, its first ones, if the batch gives them."""
        if self.config.global_tokens in ("none", "model"):
            return 0
        is_question = self.config.global_tokens == "question" and encoding.source.num_questions
        return 1 + encoding.source.num_question_pieces if is_question else 1
