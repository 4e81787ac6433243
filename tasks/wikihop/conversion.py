"""WikiHop's converter: what a preprocessing worker does with one raw example."""

from etcmodel import preprocessing

from . import examples
from .config import WikiHopInputConfig

__all__ = ["ConverterFactory"]


class ConverterFactory(preprocessing.ConverterFactory):
    """Makes the converter; `fields` are arguments of `WikiHopInputConfig`."""

    task = "wikihop"

    def input_config(self, tokenizer):
        config = WikiHopInputConfig(**self.fields)
        config.check_tokenizer(tokenizer)
        return config

    def convert(self, raw, config, tokenizer):
        example = examples.parse_example(raw, config.is_training)
        converted = examples.make_features(example, config, tokenizer)
        return preprocessing.Converted(
            features=[converted.features],
            counts={
                "examples_truncated": int(converted.num_sentences_left_out > 0),
                "examples_without_mention": int(converted.num_mentions == 0),
            },
            lengths={
                "long_tokens": converted.num_long_tokens,
                "global_tokens": converted.num_global_tokens,
                "mentions": converted.num_mentions,
                "sentences_left_out": converted.num_sentences_left_out,
            },
        )
