"""Pre-training's part of the preprocessing: what a worker does to one group of documents."""

from etcmodel import preprocessing
from etcmodel.text import sentence_splitting

from . import examples
from .config import PretrainInputConfig

__all__ = ["ConverterFactory"]


class ConverterFactory(preprocessing.ConverterFactory):
    """Makes the converter; `fields` are arguments of `PretrainInputConfig`."""

    task = "pretrain"

    def input_config(self, tokenizer):
        return PretrainInputConfig(**self.fields)

    def convert(self, raw, config, tokenizer):
        if "error" in raw:
            raise ValueError(raw["error"])
        split_sentences = sentence_splitting.sentence_splitter(config.sentence_splitter)
        windows = examples.make_windows(raw["documents"], config, tokenizer, split_sentences)
        return preprocessing.Converted(features=windows.features, counts=windows.counts)
