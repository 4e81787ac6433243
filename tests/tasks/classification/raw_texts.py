"""Invented texts and options for the tests of classification."""

from etcmodel.tasks.classification import config
from etcmodel.text import tokenization
from tests import vocabularies

VOCAB = ["[PAD]", "[unused0]", "[UNK]", "[CLS]", "[SEP]", ".", "good", "bad", "it", "is", "very"]


def write_vocab(folder):
    return vocabularies.write(folder, VOCAB)


def tokenizer(folder):
    return tokenization.FullTokenizer(write_vocab(folder))


def input_config(**fields):
    lengths = {"long_seq_length": 12, "global_seq_length": 4}
    labels = () if fields.get("problem_type") == config.REGRESSION else ("bad", "good")
    return config.ClassificationInputConfig(**{**lengths, "labels": labels, **fields})
