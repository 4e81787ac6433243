"""Summarization's converter: what a preprocessing worker does with one raw example."""

from etcmodel import preprocessing
from etcmodel.text.seq2seq_tokenizer import Seq2SeqTokenizer

from . import examples
from .config import check_punctuation

__all__ = ["ConverterFactory"]


class ConverterFactory(preprocessing.ConverterFactory):
    """Makes the converter; `fields` are arguments of `SummarizationInputConfig`."""

    task = "summarization"

    def tokenizer(self):
        check_punctuation(self)
        offset = self.fields["piece_id_offset"]
        return Seq2SeqTokenizer(self.vocab_file, self.spm_model_file, offset)

    def settings(self):
        kind = "sentencepiece" if self.spm_model_file else "byte_level_bpe"
        return {**super().settings(), "tokenizer": kind}

    def input_config(self, tokenizer):
        return examples.SummarizationInputConfig(**self.fields)

    def convert(self, row, config, tokenizer):
        try:
            example = examples.parse_row(row, config)
            features, left_out = examples.make_features(example, config, tokenizer)
        except ValueError as error:
            raise ValueError(f"{row['place']}: {error}") from error
        (tokens_left_out,) = features["tokens_left_out"]
        return preprocessing.Converted(
            features=[features],
            counts={
                "documents_truncated": int(tokens_left_out > 0),
                "summaries_truncated": int(left_out > 0),
            },
            lengths={
                "document_tokens": sum(features["attention_mask"]),
                "document_tokens_left_out": tokens_left_out,
                "summary_tokens": sum(label >= 0 for label in features["labels"]),
            },
        )
