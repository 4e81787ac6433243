"""OpenKP's part of the preprocessing: what a worker does to one line."""

from etcmodel import preprocessing

from . import examples, layout
from .config import OpenKpInputConfig

__all__ = ["ConverterFactory"]


class ConverterFactory(preprocessing.ConverterFactory):
    """Makes the converter; `fields` are arguments of `OpenKpInputConfig`."""

    task = "openkp"
    format_version = 2  # 1: words were split at any white space, font sizes not rounded.

    def input_config(self, tokenizer):
        config = OpenKpInputConfig(**self.fields)
        config.check_vocabulary(tokenizer)
        return config

    def __call__(self):
        tokenizer = self.tokenizer()
        config = self.input_config(tokenizer)
        tokenize_word = layout.WordTokenizer(tokenizer)
        return lambda raw: self.convert(raw, config, tokenize_word)

    def convert(self, raw, config, tokenize_word):
        example = examples.parse_line(raw)
        try:
            converted = examples.make_features(example, config, tokenize_word)
        except ValueError as error:
            raise ValueError(f"line {raw['line_number']}: {error}") from error
        counts = {f"dropped_{reason}": 0 for reason in examples.DROP_REASONS}
        counts["examples_truncated"] = int(converted.num_words_left_out > 0)
        counts["key_phrases_not_found"] = converted.num_phrases_not_found
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
