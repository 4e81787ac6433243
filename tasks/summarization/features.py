"""Converts typed examples to features: token ids of the document and of the summary."""

from etcmodel import preprocessing
from etcmodel.preprocessing import raw_files
from etcmodel.preprocessing.padding import Repeated, padded
from etcmodel.text.seq2seq_tokenizer import Seq2SeqTokenizer

from . import config, examples
from .config import check_punctuation

__all__ = ["ConverterFactory", "make_features", "make_input", "make_labels"]

PADDING_LABEL = -100  # As in `models.seq2seq.inputs.IGNORED_LABEL`.


def make_input(example, config, tokenizer):
    """The features for a prediction.

    Args:
        example: `SummaryExample`.
        config: `SummarizationInputConfig`.
        tokenizer: `Seq2SeqTokenizer`.
    Returns:
        dict of `example_id`, [1] str; `input_ids`, list of int; `tokens_left_out`, [1] int.
    """
    ids, left_out = tokenizer.encode(example.text, config.long_seq_length)
    return {"example_id": [example.example_id], "input_ids": ids, "tokens_left_out": [left_out]}


def make_labels(example, config, tokenizer):
    """The ids of a summary, whose lines are joined by spaces.

    Args: see `make_input`.
    Returns:
        (list of int; int, the number of tokens left out).
    """
    return tokenizer.encode(" ".join(example.summary.split("\n")), config.target_length)


def make_features(example, config, tokenizer):
    """The features of a record.

    Args: see `make_input`; the example has a summary.
    Returns:
        (dict; int, the number of tokens of the summary left out). In addition to those of
        `make_input`, with padded ids: `attention_mask`, 1 for tokens, [long_seq_length]; `labels`,
        -100 for padding, [target_length]; `summary`, [1] str.
    """
    features = make_input(example, config, tokenizer)
    ids = features["input_ids"]
    labels, left_out = make_labels(example, config, tokenizer)
    return {
        **features,
        "input_ids": padded(ids, config.long_seq_length, tokenizer.pad_id),
        "attention_mask": padded(Repeated(1, len(ids)), config.long_seq_length),
        "labels": padded(labels, config.target_length, PADDING_LABEL),
        "summary": [example.summary],
    }, left_out


# Summarization's converter: what a preprocessing worker does with one raw example.


class ConverterFactory(preprocessing.ConverterFactory):
    """Makes the converter; `fields` are arguments of `SummarizationInputConfig`."""

    task = "summarization"
    input_class = config.SummarizationInputConfig
    read = staticmethod(raw_files.read_text_rows)

    def tokenizer(self):
        check_punctuation(self)
        offset = self.fields["piece_id_offset"]
        return Seq2SeqTokenizer(self.vocab_file, self.spm_model_file, offset)

    def settings(self):
        kind = "sentencepiece" if self.spm_model_file else "byte_level_bpe"
        return {**super().settings(), "tokenizer": kind}

    def convert(self, row, config, tokenizer):
        try:
            example = examples.parse_row(row, config)
            features, left_out = make_features(example, config, tokenizer)
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
