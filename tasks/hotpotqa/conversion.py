"""HotpotQA's part of the preprocessing: what a worker does to one raw example."""

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
        converted = examples.make_features(examples.parse_example(raw), config, tokenizer)
        counts = {f"dropped_{reason}": 0 for reason in examples.DROP_REASONS}
        counts["examples_truncated"] = int(converted.num_left_out > 0)
        counts["unmatched_supporting_facts"] = converted.num_unmatched_facts
        if converted.drop_reason:
            counts[f"dropped_{converted.drop_reason}"] += 1
        return preprocessing.Converted(
            features=[] if converted.features is None else [converted.features],
            counts=counts,
            lengths={
                "long_tokens": converted.num_long_tokens,
                "global_tokens": converted.num_global_tokens,
            },
        )
