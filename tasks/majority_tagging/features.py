"""Converts sequences to features, in plain Python."""

from etcmodel import preprocessing
from etcmodel.preprocessing import raw_files
from etcmodel.preprocessing.padding import Repeated, padded

from . import examples
from .config import InputConfig

__all__ = [
    "PADDING_TAG",
    "ConverterFactory",
    "make_features",
]

PADDING_TAG = -1


def make_features(example, config, tokenizer):
    """The features of a sequence, as in a record.

    Args:
        example: `Example`.
        config: `InputConfig`.
        tokenizer: `FullTokenizer`, whose pieces are the numbers.
    Returns:
        dict of feature name to list, of `long_seq_length` each: `input_ids`, `attention_mask`, 1
        for tokens, and with tags `labels`, from 0, -1 for padding; and `example_id`.
    Raises:
        ValueError: naming the example, if it is too long, a number is out of range or not in the
            vocabulary, or in training the tags are missing.
    """
    _check_numbers(example, config, tokenizer)
    length = config.long_seq_length
    ids = tokenizer.convert_tokens_to_ids(list(map(str, example.tokens)))
    features = {
        "example_id": [example.example_id],
        "input_ids": padded(ids, length),
        "attention_mask": padded(Repeated(1, len(ids)), length),
    }
    if example.tags is not None:
        features["labels"] = padded([tag - 1 for tag in example.tags], length, PADDING_TAG)
    elif config.is_training:
        raise ValueError(
            f"example {example.example_id!r}: field `tags` is missing, and training needs it; "
            "elsewhere give --is_training=false"
        )
    return features


def _check_numbers(example, config, tokenizer):
    name = f"example {example.example_id!r}"
    if (length := len(example.tokens)) > config.long_seq_length:
        raise ValueError(
            f"{name} has {length} tokens, more than --long_seq_length={config.long_seq_length}: "
            "without the rest nothing tells the majority"
        )
    for field, numbers in (("tokens", example.tokens), ("tags", example.tags or (1,))):
        if max(numbers) > config.num_tags:
            raise ValueError(
                f"{name}: field `{field}` has {max(numbers)}, above twice --pairs={config.pairs}"
            )
    if unknown := sorted(x for x in set(example.tokens) if str(x) not in tokenizer.vocab):
        raise ValueError(f"{name}: {tokenizer.source_file} has no line '{unknown[0]}'")


class ConverterFactory(preprocessing.ConverterFactory):
    """Makes the converter; `fields` are arguments of `InputConfig`."""

    task = "majority_tagging"
    input_class = InputConfig
    read = staticmethod(raw_files.read_json_values)

    def convert(self, raw, config, tokenizer):
        example = examples.parse_example(raw, config.is_training)
        features = make_features(example, config, tokenizer)
        return preprocessing.Converted(features=[features], lengths={"tokens": len(example.tokens)})
