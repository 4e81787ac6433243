"""How two texts stand in one row, as the tokenizers of a family of models arrange them.

| format | row | token types |
| --- | --- | --- |
| `bert` | [CLS] first [SEP] second [SEP] | 1 for the second text and its [SEP], else 0 |
| `roberta` | <s> first </s></s> second </s> | 0 |
| `big_bird` | [CLS] first [SEP] second [SEP] | 0 |

A Longformer is trained with the second, and a BigBird with the third: Hugging Face's tokenizers
give types to neither, unless they are asked to.
"""

import types

BERT, ROBERTA, BIG_BIRD = "bert", "roberta", "big_bird"
# The settings of an `EtcProcessor`.
FORMATS = types.MappingProxyType(
    {
        BERT: {"question_separators": 1, "segment_id": None},
        ROBERTA: {"question_separators": 2, "segment_id": 0},
        BIG_BIRD: {"question_separators": 1, "segment_id": 0},
    }
)


def named(question_separators, has_types):
    """Returns the format with so many separators between the texts: str.

    Args:
        question_separators: int.
        has_types: bool. Whether the second text has a type of its own; no format has it beside two
            separators.
    """
    if question_separators > 1:
        return ROBERTA
    return BERT if has_types else BIG_BIRD


def of_processor(config):
    """Returns the format of a processor's pairs: str; None for one that takes no pairs.

    Args:
        config: the settings of an `EtcProcessor` or of a `RowProcessor`.
    """
    if hasattr(config, "question_separators") and hasattr(config, "segment_id"):
        return named(config.question_separators, config.segment_id != 0)
    if not hasattr(config, "arranged"):
        return None
    separators = config.arranged().get("question_separators", 1)
    return named(separators, getattr(config, "has_types", False))


def of_vocabulary(tokenizer):
    """Returns the format of the models that usually have a vocabulary of this kind: str.

    Args:
        tokenizer: `tokenization.FullTokenizer` or `byte_bpe.ByteLevelTokenizer`. Byte-level BPE, or
            pieces that fairseq has numbered, between <s> and </s> is RoBERTa's.
    """
    is_byte_level = hasattr(tokenizer, "around")  # Programs ask without waiting for its module.
    has_names = {"<s>", "</s>"} <= tokenizer.vocab.keys() and "[CLS]" not in tokenizer.vocab
    return ROBERTA if is_byte_level and has_names else BERT
