"""A tiny vocabulary and options for the tests of summarization."""

from etcmodel.tasks.summarization import config
from etcmodel.text.seq2seq_tokenizer import Seq2SeqTokenizer
from etcmodel.tools.demos import summarization as demo


def write_vocab(folder):
    """The path of the demo's vocabulary of byte-level BPE, in which each word is a token."""
    name, text = demo.vocabulary_file(demo.vocabulary())
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def tokenizer(folder):
    return Seq2SeqTokenizer(write_vocab(folder))


def input_config(**fields):
    lengths = {"long_seq_length": 8, "target_length": 6}
    return config.SummarizationInputConfig(**{**lengths, **fields})
