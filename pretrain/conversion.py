"""Pre-training's part of the preprocessing: what a worker does to one group of documents."""

from etcmodel import preprocessing
from etcmodel.text import sentence_splitting

from . import examples, text_windows, words
from .config import TEXT, PretrainInputConfig

__all__ = ["ConverterFactory"]


class ConverterFactory(preprocessing.ConverterFactory):
    """Makes the converter; `fields` are arguments of `PretrainInputConfig`."""

    task = "pretrain"

    def input_config(self, tokenizer):
        config = PretrainInputConfig(**self.fields)
        word_pieces = getattr(tokenizer, "wordpiece_tokenizer", None)
        if word_pieces is not None:
            tokenizer.require_tokens([word_pieces.unk_token])
        if config.windows == TEXT:
            words.end_token_ids(tokenizer)  # Raises an error if the vocabulary has none.
        return config

    def convert(self, raw, config, tokenizer):
        if "error" in raw:
            raise ValueError(raw["error"])
        documents = raw["documents"]
        if config.windows == TEXT:
            windows = text_windows.make_text_windows(documents, config, tokenizer)
        else:
            split_sentences = sentence_splitting.sentence_splitter(config.sentence_splitter)
            windows = examples.make_windows(documents, config, tokenizer, split_sentences)
        return preprocessing.Converted(features=windows.features, counts=windows.counts)
