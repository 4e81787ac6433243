"""HotpotQA's converter: what a preprocessing worker does with one raw example."""

from etcmodel import preprocessing

from . import examples
from .config import HotpotQAInputConfig

__all__ = ["ConverterFactory"]


class ConverterFactory(preprocessing.ConverterFactory):
    """Makes the converter; `fields` are arguments of `HotpotQAInputConfig`."""

    task = "hotpotqa"

    def input_config(self, tokenizer):
        return HotpotQAInputConfig.for_tokenizer(tokenizer, **self.fields)

    def convert(self, raw, config, tokenizer):
        example = examples.parse_example(raw, config.is_training)
        converted = examples.make_features(example, config, tokenizer)
        return preprocessing.Converted.of_one(
            converted,
            drop_reasons=examples.DROP_REASONS,
            counts={
                "examples_truncated": int(converted.num_left_out > 0),
                "unmatched_supporting_facts": converted.num_unmatched_facts,
            },
        )
