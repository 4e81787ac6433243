"""Converts examples to features, in plain Python."""

import dataclasses

from etcmodel import preprocessing
from etcmodel.preprocessing import raw_files
from etcmodel.preprocessing.padding import Repeated, padded
from etcmodel.text import number_pieces

from . import examples
from .config import InputConfig

__all__ = [
    "ConverterFactory",
    "Features",
    "make_features",
]

_IGNORED_LABEL = -100


@dataclasses.dataclass(frozen=True)
class Features:
    """The features of an example.

    Attributes:
        values: dict of feature name to list: `example_id`; of `long_seq_length` each `input_ids`
            and `attention_mask`, 1 for tokens; with an answer `labels`, `max_answer_length - 1` ids
            of it and its end, -100 for padding.
        num_tokens: int. Number of tokens of question and passage, including those that are cut off.
        is_cut: bool. Whether the end of the passage is cut off.
    """

    values: dict
    num_tokens: int
    is_cut: bool


def make_features(example, config, tokenizer):
    """The `Features` of an example: [CLS] question [SEP] passage [SEP], numbers in digits.

    Args:
        example: `Example`.
        config: `InputConfig`.
        tokenizer: `FullTokenizer` of word pieces, as of `number_pieces.check_tokenizer`.
    Raises:
        ValueError: naming the example, if its question leaves no room for the passage, or its
            answer is too long, contains the end piece, or is missing in training.
    """
    question = number_pieces.pieces_of(example.question, tokenizer)
    passage = number_pieces.pieces_of(example.passage, tokenizer)
    place = config.long_seq_length - len(question) - 3
    if place < 1:
        raise ValueError(
            f"example {example.example_id!r}: field `question` has {len(question)} tokens, which "
            f"with --long_seq_length={config.long_seq_length} leaves none for the passage"
        )
    tokens = ["[CLS]", *question, "[SEP]", *passage[:place], "[SEP]"]
    length = config.long_seq_length
    values = {
        "example_id": [example.example_id],
        "input_ids": padded(tokenizer.convert_tokens_to_ids(tokens), length),
        "attention_mask": padded(Repeated(1, len(tokens)), length),
    }
    if example.answer is not None:
        values["labels"] = _labels(example, config.max_answer_length - 1, tokenizer)
    elif config.is_training:
        raise ValueError(
            f"example {example.example_id!r}: field `answer` is missing, and training needs it; "
            "elsewhere give --is_training=false"
        )
    return Features(values, len(question) + len(passage) + 3, len(passage) > place)


def _labels(example, num_labels, tokenizer):
    answer = number_pieces.pieces_of(example.answer, tokenizer)
    name = f"example {example.example_id!r}: field `answer`"
    if number_pieces.END in answer:
        raise ValueError(f"{name} must not have {number_pieces.END!r}, which ends answers")
    if len(answer) >= num_labels:
        raise ValueError(
            f"{name} has {len(answer)} tokens; --max_answer_length={num_labels + 1} is for "
            f"{num_labels - 1}"
        )
    ids = tokenizer.convert_tokens_to_ids([*answer, number_pieces.END])
    return padded(ids, num_labels, _IGNORED_LABEL)


class ConverterFactory(preprocessing.ConverterFactory):
    """Makes the converter; `fields` are arguments of `InputConfig`."""

    task = "numerical_reasoning"
    input_class = InputConfig
    read = staticmethod(raw_files.read_json_values)

    def input_config(self, tokenizer):
        number_pieces.check_tokenizer(tokenizer)
        return super().input_config(tokenizer)

    def convert(self, raw, config, tokenizer):
        example = examples.parse_example(raw, config.is_training)
        found = make_features(example, config, tokenizer)
        return preprocessing.Converted(
            features=[found.values],
            counts={"passages_cut": int(found.is_cut)},
            lengths={"tokens": found.num_tokens},
        )
