"""Classification's converter: what a preprocessing worker does with one raw example."""

from etcmodel import preprocessing

from . import examples
from .config import ClassificationInputConfig

__all__ = ["ConverterFactory"]


class ConverterFactory(preprocessing.ProcessorConverterFactory):
    """Makes the converter; `fields` are arguments of `ClassificationInputConfig`."""

    task = "classification"

    def input_config(self, tokenizer):
        config = ClassificationInputConfig(**self.fields)
        config.check_labels()
        config.make_processor(tokenizer)  # Raises an error if the vocabulary does not fit.
        return config

    def convert(self, row, config, processor):
        example = examples.parse_row(row, config, needs_labels=True)
        features, encoding = examples.make_features(example, config, processor)
        return preprocessing.Converted(
            features=[features],
            counts={"examples_truncated": int(bool(encoding.cut))},
            lengths={
                "long_tokens": len(encoding.token_ids),
                "global_tokens": len(encoding.global_ids),
                "tokens_left_out": encoding.cut.num_tokens,
            },
        )
